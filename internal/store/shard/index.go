package shard

import (
	"context"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"
)

// Sales lists the ids of all sales that the index names, in order.
func (s *Client) Sales(ctx context.Context) ([]string, error) {
	ids, err := behind(s.redis).SMembers(ctx, s.SalesKey()).Result()
	if err != nil {
		return nil, Explain(err)
	}
	slices.Sort(ids)
	return ids, nil
}

// IndexSale adds a sale to the index.
func (s *Client) IndexSale(ctx context.Context, sale string) error {
	return Explain(behind(s.redis).SAdd(ctx, s.SalesKey(), sale).Err())
}

// Deleted returns the sales that were deleted on purpose, with the epoch that each had.
func (s *Client) Deleted(ctx context.Context) (map[string]string, error) {
	deleted, err := behind(s.redis).HGetAll(ctx, s.DeletedKey()).Result()
	return deleted, Explain(err)
}

// DeletedEpoch is the epoch of a sale that was deleted on purpose; 0: it was not.
func (s *Client) DeletedEpoch(ctx context.Context, sale string) (int64, error) {
	return s.epochIn(ctx, s.DeletedKey(), sale)
}

// ReloadedEpoch is the epoch that a sale had when it was deleted on purpose, before it was loaded again;
// 0: it was not.
func (s *Client) ReloadedEpoch(ctx context.Context, sale string) (int64, error) {
	return s.epochIn(ctx, s.ReloadedKey(), sale)
}

func (s *Client) epochIn(ctx context.Context, key, sale string) (int64, error) {
	epoch, err := behind(s.redis).HGet(ctx, key, sale).Int64()
	if err != nil && !errors.Is(err, redis.Nil) {
		return 0, Explain(err)
	}
	return epoch, nil
}

// NoteDeleted notes that the sale of an epoch is deleted on purpose.
func (s *Client) NoteDeleted(ctx context.Context, sale string, epoch int64) error {
	return Explain(behind(s.redis).HSet(ctx, s.DeletedKey(), sale, epoch).Err())
}

// DropDeleted drops that note.
func (s *Client) DropDeleted(ctx context.Context, sale string) error {
	return Explain(behind(s.redis).HDel(ctx, s.DeletedKey(), sale).Err())
}

// Announce adds sales to the index. Of one that was deleted it keeps which epoch that was: a ledger may
// still have it.
func (s *Client) Announce(ctx context.Context, ids []string) error {
	names := make([]any, len(ids))
	for i, id := range ids {
		names[i] = id
	}
	deleted, err := behind(s.redis).HMGet(ctx, s.DeletedKey(), ids...).Result()
	if err != nil {
		return Explain(err)
	}
	pipe := behind(s.redis).Pipeline()
	pipe.SAdd(ctx, s.SalesKey(), names...)
	for i, epoch := range deleted {
		if epoch == nil {
			continue
		}
		now, err := behind(s.redis).HGet(ctx, s.ShardKeys(ids[i])[MetaKey], "epoch").Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return Explain(err)
		}
		if now != epoch { // else it was to be deleted, and was not
			pipe.HSet(ctx, s.ReloadedKey(), ids[i], epoch) // first: a call that breaks off between the two is made again
		}
	}
	pipe.HDel(ctx, s.DeletedKey(), ids...)
	_, err = pipe.Exec(ctx)
	return Explain(err)
}

// Unindex takes a deleted sale out of the index, drops the counters of its stored answers, what dry runs
// have noted, what edges have counted and the keys of its fence, and tells the edges.
func (s *Client) Unindex(ctx context.Context, sale string, epoch int64) error {
	pipe := behind(s.redis).Pipeline()
	pipe.HSet(ctx, s.DeletedKey(), sale, epoch) // a call that was refused may have dropped the note
	pipe.SRem(ctx, s.SalesKey(), sale)
	pipe.Del(ctx, s.AnswersKey(sale), s.ShadowKey(sale), s.CountsKeys(sale)[1])
	pipe.Del(ctx, s.QueueAnswersKeys(sale, "")[1:]...)
	pipe.Unlink(ctx, s.FenceKeys(sale)[EdgesKey:]...)
	pipe.Publish(ctx, s.Channel(), saleNotice(sale))
	_, err := pipe.Exec(ctx)
	return Explain(err)
}

// NotifySale tells the edges that a sale has changed.
func (s *Client) NotifySale(ctx context.Context, sale string) error {
	return Explain(behind(s.redis).Publish(ctx, s.Channel(), saleNotice(sale)).Err())
}

func saleNotice(sale string) string { return "sale " + sale + " 0" }

// Listen calls heard whenever something is published on a channel, until ctx ends.
func (s *Client) Listen(ctx context.Context, channel string, heard func()) {
	sub := behind(s.redis).Subscribe(ctx, channel)
	defer sub.Close()
	notices := sub.Channel()
	for {
		select {
		case _, ok := <-notices:
			if !ok {
				return
			}
			heard()
		case <-ctx.Done():
			return
		}
	}
}

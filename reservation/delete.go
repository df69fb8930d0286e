package reservation

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/lua"
	"github.com/stockgate/stockgate/sale"
	"github.com/stockgate/stockgate/shard"
)

// Delete removes a closed sale from Redis, with its reservations and its journal, so that its
// items are ordinary ones again. The error wraps shard.ErrRefused if the sale is not closed,
// if a hold is open or an order has no stock, or if the ledger or the outbox's receiver does
// not have all of its journal; force ignores these two. A deleted sale is not a lost one: its
// name and epoch are kept.
func (s *Store) Delete(ctx context.Context, id string, force bool) error {
	epoch, err := s.epochOf(ctx, id)
	switch {
	case err != nil:
		return err
	case epoch == "":
		return s.finishDelete(ctx, id)
	}
	// first: an edge that misses the sale must know why
	if err := s.shard.Redis.HSet(ctx, s.shard.DeletedKey(), id, epoch).Err(); err != nil {
		return shard.Explain(err)
	}
	arg := "0"
	if force {
		arg = "1"
	}
	replies, err := s.shard.RunReplicated(ctx, s.shard.Scripts.Settle, id, shard.Op("delete", arg, epoch))
	if err != nil {
		return err // the same again finishes it
	}
	if code := replies[0].Code(); code == lua.OK || code == lua.NoSale { // or another call has deleted it
		return s.unname(ctx, id, epoch)
	}
	if err := s.shard.Redis.HDel(ctx, s.shard.DeletedKey(), id).Err(); err != nil {
		return shard.Explain(err)
	}
	switch now, err := s.epochOf(ctx, id); {
	case err != nil:
		return err
	case now == "": // another call has deleted it since, whose note is gone now
		return s.unname(ctx, id, epoch)
	}
	return deleteRefused(id, replies[0])
}

// epochOf is the epoch of a sale; empty: Redis does not have it.
func (s *Store) epochOf(ctx context.Context, id string) (string, error) {
	epoch, err := s.shard.Redis.HGet(ctx, s.shard.ShardKeys(id)[shard.MetaKey], "epoch").Result()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	return epoch, shard.Explain(err)
}

// finishDelete answers a repeated call, and ends one that broke off after the sale was gone.
func (s *Store) finishDelete(ctx context.Context, id string) error {
	epoch, err := s.shard.Redis.HGet(ctx, s.shard.DeletedKey(), id).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return shard.ErrNoSale
	case err != nil:
		return shard.Explain(err)
	}
	return s.unname(ctx, id, epoch)
}

// unname takes a deleted sale out of the index, drops the counters of its stored answers, what
// dry runs have noted and the keys of its fence, and tells the edges.
func (s *Store) unname(ctx context.Context, id, epoch string) error {
	pipe := s.shard.Redis.Pipeline()
	pipe.HSet(ctx, s.shard.DeletedKey(), id, epoch) // a call that was refused may have dropped the note
	pipe.SRem(ctx, s.shard.SalesKey(), id)
	pipe.Del(ctx, s.shard.AnswersKey(id), s.shard.ShadowKey(id))
	pipe.Del(ctx, s.shard.QueueAnswersKeys(id, "")[1:]...)
	pipe.Unlink(ctx, s.shard.FenceKeys(id)[shard.EdgesKey:]...)
	pipe.Publish(ctx, s.shard.Channel(), "sale "+id+" 0")
	if _, err := pipe.Exec(ctx); err != nil {
		return shard.Explain(err)
	}
	switch now, err := s.epochOf(ctx, id); {
	case err != nil:
		return err
	case now != "": // it was loaded anew meanwhile, and its name is in the index no more
		if err := s.journal.Announce(ctx, id); err != nil {
			return err
		}
	}
	return s.shard.AwaitReplicas(ctx)
}

func deleteRefused(id string, r shard.Reply) error {
	switch r.Code() {
	case lua.Conflict:
		if status := r.Text(1); status != string(sale.Open) && status != string(sale.Paused) && status != string(sale.Draft) {
			return shard.Refused("sale %s is being rebuilt: finish that first", id)
		}
		return shard.Refused("sale %s is %s: only a closed sale is deleted, see `caddy stockgate sale close %s`", id, r.Text(1), id)
	case lua.InUse:
		return shard.Refused("sale %s has %d open holds and %d orders without stock: resolve them first, `caddy stockgate holds %s` lists them", id, r.Number(1), r.Number(2), id)
	case lua.Short:
		return shard.Refused("the ledger or the outbox's receiver lacks %d movements of sale %s, which nothing has after it is deleted: wait, or use --force", r.Number(1), id)
	}
	return fmt.Errorf("%w: delete gave %q", shard.ErrUnavailable, r.Code())
}

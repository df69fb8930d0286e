package journal

import (
	"context"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/shard"
)

// Sales lists the ids of all sales that the index names.
func (j *Journal) Sales(ctx context.Context) ([]string, error) {
	ids, err := j.shard.Redis.SMembers(ctx, j.shard.SalesKey()).Result()
	if err != nil {
		return nil, shard.Explain(err)
	}
	slices.Sort(ids)
	return ids, nil
}

// Deleted returns the sales that were deleted on purpose, with the epoch that each had.
func (j *Journal) Deleted(ctx context.Context) (map[string]string, error) {
	deleted, err := j.shard.Redis.HGetAll(ctx, j.shard.DeletedKey()).Result()
	return deleted, shard.Explain(err)
}

// DeletedEpoch returns the last epoch of a sale that was deleted on purpose, also if the sale
// was loaded anew since; 0: it never was.
func (j *Journal) DeletedEpoch(ctx context.Context, id string) (int64, error) {
	last := int64(0)
	for _, key := range []string{j.shard.DeletedKey(), j.shard.ReloadedKey()} {
		epoch, err := j.shard.Redis.HGet(ctx, key, id).Int64()
		if err != nil && !errors.Is(err, redis.Nil) {
			return 0, shard.Explain(err)
		}
		last = max(last, epoch)
	}
	return last, nil
}

// Replaced reports whether the sale of one epoch was deleted on purpose, and that of another one was
// loaded anew since. deleted is what DeletedEpoch returns.
func Replaced(old, deleted, now int64) bool { return old <= deleted && deleted < now }

// Announce adds sales to the index, so that edges notice when Redis has lost one. Of one that
// was deleted it keeps which epoch that was: a ledger may still have it.
func (j *Journal) Announce(ctx context.Context, ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	names := make([]any, len(ids))
	for i, id := range ids {
		names[i] = id
	}
	deleted, err := j.shard.Redis.HMGet(ctx, j.shard.DeletedKey(), ids...).Result()
	if err != nil {
		return shard.Explain(err)
	}
	pipe := j.shard.Redis.Pipeline()
	pipe.SAdd(ctx, j.shard.SalesKey(), names...)
	for i, epoch := range deleted {
		if epoch == nil {
			continue
		}
		now, err := j.shard.Redis.HGet(ctx, j.shard.ShardKeys(ids[i])[shard.MetaKey], "epoch").Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return shard.Explain(err)
		}
		if now != epoch { // else it was to be deleted, and was not
			pipe.HSet(ctx, j.shard.ReloadedKey(), ids[i], epoch) // first: a call that breaks off between the two is made again
		}
	}
	pipe.HDel(ctx, j.shard.DeletedKey(), ids...)
	_, err = pipe.Exec(ctx)
	return shard.Explain(err)
}

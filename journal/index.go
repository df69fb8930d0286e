package journal

import (
	"context"
	"github.com/stockgate/stockgate/shard"
	"slices"
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

// Announce adds sales to the index, so that edges notice when Redis has lost one.
func (j *Journal) Announce(ctx context.Context, ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	names := make([]any, len(ids))
	for i, id := range ids {
		names[i] = id
	}
	pipe := j.shard.Redis.Pipeline()
	pipe.SAdd(ctx, j.shard.SalesKey(), names...)
	pipe.HDel(ctx, j.shard.DeletedKey(), ids...)
	_, err := pipe.Exec(ctx)
	return shard.Explain(err)
}

package journal

import "context"

// Sales lists the ids of all sales that the index names.
func (j *Journal) Sales(ctx context.Context) ([]string, error) { return j.shard.Sales(ctx) }

// Deleted returns the sales that were deleted on purpose, with the epoch that each had.
func (j *Journal) Deleted(ctx context.Context) (map[string]string, error) {
	return j.shard.Deleted(ctx)
}

// DeletedEpoch returns the last epoch of a sale that was deleted on purpose, also if the sale
// was loaded again since; 0: it never was.
func (j *Journal) DeletedEpoch(ctx context.Context, id string) (int64, error) {
	deleted, err := j.shard.DeletedEpoch(ctx, id)
	if err != nil {
		return 0, err
	}
	reloaded, err := j.shard.ReloadedEpoch(ctx, id)
	return max(deleted, reloaded), err
}

// Replaced reports whether the sale of one epoch was deleted on purpose, and that of another one was
// loaded again since. deleted is what DeletedEpoch returns.
func Replaced(old, deleted, now int64) bool { return old <= deleted && deleted < now }

// Announce adds sales to the index, so that edges notice when Redis has lost one. Of one that
// was deleted it keeps which epoch that was: a ledger may still have it.
func (j *Journal) Announce(ctx context.Context, ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	return j.shard.Announce(ctx, ids)
}

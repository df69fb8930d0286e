package journal

import (
	"context"
	"time"

	"github.com/stockgate/stockgate/lua"
	"github.com/stockgate/stockgate/shard"
)

// JournalLeast is how many of the newest movements are never trimmed: edges follow the
// journal, and one that finds its place gone has to begin anew.
const MinJournal = 10_000

// trimPiece bounds the movements that Redis drops in one call.
const trimPiece = 10_000

// TrimJournal drops the movements of a sale's journal up to a number, except the newest
// JournalLeast, by whole entries. With ledger, and where a ledger was heard of less than
// patience ago, only those are dropped that the ledger has; and where an outbox was well
// less than patience ago, only those that its receiver has. It returns the last number
// that is gone.
func (j *Journal) Trim(ctx context.Context, sale string, h Head, upTo int64, ledger bool, patience time.Duration) (int64, error) {
	if h.First == 0 || upTo < h.First {
		return 0, nil
	}
	follows := 0
	if ledger {
		follows = 1
	}
	for piece := min(h.First-1+trimPiece, upTo); ; piece = min(piece+trimPiece, upTo) {
		args := []any{lua.Schema, piece, MinJournal, follows, patience.Milliseconds()}
		raw, err := j.shard.Eval(ctx, j.shard.Redis, j.shard.Scripts.Trim, j.shard.ShardKeys(sale), args, 0)
		if err != nil {
			return 0, err
		}
		r := shard.Reply(raw)
		switch r.Code() {
		case lua.OK:
		case lua.NewerSchema:
			return 0, shard.ErrNewerSchema
		default:
			return 0, shard.ErrNoSale
		}
		if r.Number(1) < piece || piece == upTo {
			return r.Number(2), nil
		}
	}
}

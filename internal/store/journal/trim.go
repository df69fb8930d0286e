package journal

import (
	"context"
	"time"

	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// MinJournal is how many of the newest movements are never trimmed: edges follow the journal,
// and an edge whose position is gone has to start over.
const MinJournal = 10_000

// trimPiece bounds the movements that Redis drops in one call.
const trimPiece = 10_000

// Trim removes the movements of a sale's journal up to a number, by whole entries, except the
// newest MinJournal. With ledger, and while a ledger acknowledged less than patience ago, it
// removes only what the ledger has. While an outbox worked less than patience ago, it removes
// only what its receiver has. It returns the last number that is gone.
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
		raw, err := j.shard.Eval(ctx, lua.Trim, j.shard.ShardKeys(sale), args, 0)
		if err != nil {
			return 0, err
		}
		r := shard.Reply(raw)
		switch r.Code() {
		case lua.OK:
		case lua.NewerSchema:
			return 0, shard.NewerSchema(r.Number(1))
		default:
			return 0, shard.ErrNoSale
		}
		if r.Number(1) < piece || piece == upTo {
			return r.Number(2), nil
		}
	}
}

package reservation

import (
	"context"
	"time"

	"github.com/stockgate/stockgate/lua"
)

// JournalLeast is how many of the newest movements are never trimmed: edges follow the
// journal, and one that finds its place gone has to begin anew.
const JournalLeast = 10_000

// trimPiece bounds the movements that Redis drops in one call.
const trimPiece = 10_000

// TrimJournal drops the movements of a sale's journal up to a number, except the newest
// JournalLeast, by whole entries. With ledger, and where a ledger was heard of less than
// patience ago, only those are dropped that the ledger has; and where an outbox was well
// less than patience ago, only those that its receiver has. It returns the last number
// that is gone.
func (s *Store) TrimJournal(ctx context.Context, sale string, h JournalHead, upTo int64, ledger bool, patience time.Duration) (int64, error) {
	if h.First == 0 || upTo < h.First {
		return 0, nil
	}
	follows := 0
	if ledger {
		follows = 1
	}
	for piece := min(h.First-1+trimPiece, upTo); ; piece = min(piece+trimPiece, upTo) {
		args := []any{lua.Schema, piece, JournalLeast, follows, patience.Milliseconds()}
		raw, err := s.eval(ctx, s.redis, s.scripts.Trim, s.shardKeys(sale), args, 0)
		if err != nil {
			return 0, err
		}
		r := reply(raw)
		switch r.code() {
		case lua.OK:
		case lua.NewerSchema:
			return 0, ErrNewerSchema
		default:
			return 0, ErrNoSale
		}
		if r.number(1) < piece || piece == upTo {
			return r.number(2), nil
		}
	}
}

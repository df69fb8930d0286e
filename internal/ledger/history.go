package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/stockgate/stockgate/internal/store/journal"
)

// Entry is a movement as Stockgate publishes it. Sale, epoch and number together are unique.
type Entry struct {
	Sale string `json:"sale"`
	// Epoch is the life of the shard: a new one means that Redis had lost the sale, and that
	// the numbers started over.
	Epoch int64 `json:"epoch"`
	journal.Movement
}

// Entries puts movements of one epoch of a sale into entries.
func Entries(sale string, epoch int64, movements []journal.Movement) []Entry {
	out := make([]Entry, len(movements))
	for i := range movements {
		out[i] = Entry{sale, epoch, movements[i]}
	}
	return out
}

// History reads the movements of sales from their journals, and trimmed ones from a ledger.
type History struct {
	Journals interface {
		Movements(ctx context.Context, sale string, after int64, most int) ([]journal.Movement, error)
	}
	Ledger Ledger // nil: none
}

// ErrLedger wraps the error of a ledger that cannot be read.
var ErrLedger = errors.New("the ledger does not answer")

// Read reads up to most movements that follow number after; fewer only at the end, or
// where the ledger's part ends. The epoch is that of the journal. A GapError names the
// movements that neither has.
func (h History) Read(ctx context.Context, sale string, epoch, after int64, most int) ([]journal.Movement, error) {
	movements, err := h.Journals.Movements(ctx, sale, after, most)
	gap, trimmed := errors.AsType[*journal.GapError](err)
	if !trimmed || h.Ledger == nil || gap.Have == 0 {
		return movements, err
	}
	movements, err = h.Old(ctx, sale, epoch, after, int(min(int64(most), gap.Have-1-after)))
	if err == nil && len(movements) == 0 {
		err = gap
	}
	return movements, err
}

// Old reads movements of any epoch from the ledger; without a ledger there are none.
func (h History) Old(ctx context.Context, sale string, epoch, after int64, most int) ([]journal.Movement, error) {
	if h.Ledger == nil {
		return nil, nil
	}
	out := make([]journal.Movement, 0, most)
	err := h.Ledger.Movements(ctx, sale, epoch, after, most, func(m *journal.Movement) error {
		if want := after + 1 + int64(len(out)); m.Seq != want {
			return &journal.GapError{Sale: sale, Want: want, Have: m.Seq}
		}
		out = append(out, *m)
		return nil
	})
	if _, gap := errors.AsType[*journal.GapError](err); gap {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLedger, err)
	}
	return out, nil
}

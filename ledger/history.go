package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/stockgate/stockgate/reservation"
)

// Entry is a movement as Stockgate publishes it. Sale, epoch and number together are unique.
type Entry struct {
	Sale string `json:"sale"`
	// Epoch is the life of the shard: a new one means that Redis had lost the sale, and
	// its numbers started over.
	Epoch int64 `json:"epoch"`
	reservation.Movement
}

// Entries puts movements of one epoch of a sale into entries.
func Entries(sale string, epoch int64, movements []reservation.Movement) []Entry {
	out := make([]Entry, len(movements))
	for i := range movements {
		out[i] = Entry{sale, epoch, movements[i]}
	}
	return out
}

// History reads the movements of sales from their journals, and trimmed ones from a ledger.
type History struct {
	Journals interface {
		Journal(ctx context.Context, sale string, after int64, most int) ([]reservation.Movement, error)
	}
	Ledger Ledger // nil: none
}

// ErrLedger wraps the error of a ledger that cannot be read.
var ErrLedger = errors.New("the ledger does not answer")

// Read reads up to most movements that follow number after; fewer only at the end, or
// where the ledger's part ends. The epoch is that of the journal. A GapError names the
// movements that neither has.
func (h History) Read(ctx context.Context, sale string, epoch, after int64, most int) ([]reservation.Movement, error) {
	movements, err := h.Journals.Journal(ctx, sale, after, most)
	gap, trimmed := errors.AsType[*reservation.GapError](err)
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
func (h History) Old(ctx context.Context, sale string, epoch, after int64, most int) ([]reservation.Movement, error) {
	if h.Ledger == nil {
		return nil, nil
	}
	out := make([]reservation.Movement, 0, most)
	err := h.Ledger.Movements(ctx, sale, epoch, after, most, func(m *reservation.Movement) error {
		if want := after + 1 + int64(len(out)); m.Seq != want {
			return &reservation.GapError{Sale: sale, Want: want, Have: m.Seq}
		}
		out = append(out, *m)
		return nil
	})
	if _, gap := errors.AsType[*reservation.GapError](err); gap {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLedger, err)
	}
	return out, nil
}

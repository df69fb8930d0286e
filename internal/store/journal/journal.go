package journal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// Journal reads the movements of sales in one Redis. It is safe for concurrent use.
type Journal struct {
	shard *shard.Client
	heads sync.Map // sale id → Head: the last one that was read
}

// New reads the journals in a Redis.
func New(shard *shard.Client) *Journal { return &Journal{shard: shard} }

// Movement is one record of a sale's journal. They are in the order in which they happened.
type Movement struct {
	// Seq counts 1, 2, 3, … without a gap.
	Seq int64 `json:"seq"`
	// Kind is a state that a reservation has entered, or recreated, extended, returned,
	// adjusted, loaded, applied, open, paused, closed, rebuilt, repaired, missing.
	Kind string `json:"kind"`
	// Time is by the shard's clock, in ms. It never goes back.
	Time time.Time `json:"time"`
	// ID is that of the reservation or the adjustment, the sale's version, or what was
	// repaired.
	ID string `json:"id"`
	// Was is the state that the reservation has left; empty: it did not exist, or the movement
	// is not about a reservation.
	Was record.State `json:"was,omitempty"`
	// Lines are the units that moved; negative: they were taken out of the stock.
	Lines []record.CellUnits `json:"lines,omitempty"`
	// Buyer is a keyed hash.
	Buyer string `json:"buyer,omitempty"`
	Cause string `json:"cause,omitempty"`
	// Record is the reservation after the movement, where it begins (held, recreated) or where
	// more than its state has changed; nil elsewhere.
	Record *record.Record `json:"record,omitempty"`
}

// GapError says that a journal lacks movements: they were trimmed, or Redis has lost them.
type GapError struct {
	Sale       string
	Want, Have int64 // Have 0: there are no more
}

func (e *GapError) Error() string {
	if e.Have == 0 {
		return fmt.Sprintf("the journal of sale %s ends before entry %d, which was there: redis has lost what it had acknowledged, "+
			"as in a crash without appendfsync always, or in a failover without replica_acks; pause the sale and run `caddy stockgate reconcile %s`", e.Sale, e.Want, e.Sale)
	}
	return fmt.Sprintf("the journal of sale %s has a gap: entry %d is wanted and %d comes next; they were trimmed before a reader had them, or redis has lost them",
		e.Sale, e.Want, e.Have)
}

// Movements reads up to most movements that follow the one with the number after. It returns a
// GapError when the next movement does not have the next number.
func (j *Journal) Movements(ctx context.Context, sale string, after int64, most int) ([]Movement, error) {
	var out []Movement
	// an entry may have a hundred movements, so it does not read as many entries as might be
	// needed
	for atOnce := max(most/16, 16); len(out) < most; {
		next := after + 1 + int64(len(out))
		entries, err := j.shard.Entries(ctx, sale, next, int64(atOnce))
		if err != nil {
			return nil, err
		}
		for _, m := range entries {
			if out, err = follow(out, sale, next, m); err != nil {
				return nil, err
			}
			next = after + 1 + int64(len(out))
		}
		if len(entries) < atOnce {
			break
		}
	}
	return out[:min(len(out), most)], nil
}

// follow appends the movements of an entry, from the number next on.
func follow(out []Movement, sale string, next int64, m shard.Entry) ([]Movement, error) {
	e, err := EntryOf(m)
	if err == nil {
		switch {
		case e.First() > next:
			return nil, &GapError{sale, next, e.First()}
		case e.First() < next && len(out) > 0:
			err = errors.New("its numbers were given before: something else has changed the sale's keys")
		default:
			err = e.tell(func(m Movement) {
				if m.Seq >= next {
					out = append(out, m)
				}
			})
		}
	}
	if err != nil {
		return nil, fmt.Errorf("entry %s of the journal of sale %s: %w", m.ID, sale, err)
	}
	return out, nil
}

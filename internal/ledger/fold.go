package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/record"
)

// Changes are what a batch does to the projections.
type Changes struct {
	// Cells are the amounts to add to each cell's columns, sorted by name.
	Cells []Cell
	// Whole are reservations that the batch contains completely, in their state at its end.
	// Anew are the ids of those that the ledger may already have: they are overwritten.
	Whole []*Reservation
	Anew  []string
	// Moved are reservations of which only a part has changed.
	Moved []*Move
}

// Move is what a batch does to a reservation that was there before.
type Move struct {
	ID string
	// From is the state in which it must be.
	From record.State
	// State, Changed and Cause are those at the end of the batch.
	State   record.State
	Changed time.Time
	Cause   string
}

// Fold computes what a batch does, from the movements alone. The error names the
// movement that it cannot interpret; the batch must then be discarded.
func Fold(batch []journal.Movement) (*Changes, error) {
	f := folding{units: record.NewStock(), whole: map[string]*Reservation{}, moved: map[string]*Move{}}
	for i := range batch {
		if err := f.add(&batch[i]); err != nil {
			return nil, fmt.Errorf("movement %d (%s %s): %w", batch[i].Seq, batch[i].Kind, batch[i].ID, err)
		}
	}
	out := &Changes{Anew: f.anew}
	for name, c := range f.units.Cells {
		c.Balance()
		out.Cells = append(out.Cells, CellOf(name, c))
	}
	for _, r := range f.whole {
		out.Whole = append(out.Whole, r)
	}
	for _, m := range f.moved {
		out.Moved = append(out.Moved, m)
	}
	// in an order that a second run repeats
	slices.SortFunc(out.Cells, func(a, b Cell) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(out.Whole, func(a, b *Reservation) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(out.Moved, func(a, b *Move) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}

type folding struct {
	units *record.Totals // what changes
	// a reservation is in one of these, if it is in the batch
	whole map[string]*Reservation
	moved map[string]*Move
	anew  []string
}

var (
	ErrNoRecord = errors.New("it has no record of the reservation")
	errNoWas    = errors.New("it does not name the reservation's previous state")
)

func (f *folding) add(m *journal.Movement) error {
	if effect, _ := journal.EffectOf(m.Kind); effect.Reservation {
		if err := f.follow(m, effect); err != nil {
			return err
		}
	}
	return m.ApplyAlone(f.units)
}

// follow records what a movement does to its reservation.
func (f *folding) follow(m *journal.Movement, effect journal.Effect) error {
	switch {
	case effect.Enters == "":
		return f.tell(m)
	case m.Was != "":
		if m.Was.Column() == record.NoColumn {
			return fmt.Errorf("the state before it, %q, is not known", m.Was)
		}
		return f.change(m, m.Was, effect.Enters)
	case !effect.Begins && m.Record == nil:
		return errNoWas // a movement that a rebuild merges has its record
	}
	return f.tell(m)
}

// tell records a whole reservation.
func (f *folding) tell(m *journal.Movement) error {
	if m.Record == nil {
		return ErrNoRecord
	}
	_, told := f.whole[m.ID]
	if m.Kind == "held" && (told || f.moved[m.ID] != nil) {
		return errors.New("the reservation is there already")
	}
	if m.Kind != "held" && !told {
		f.anew = append(f.anew, m.ID)
		delete(f.moved, m.ID)
	}
	f.whole[m.ID] = &Reservation{m.ID, *m.Record}
	return nil
}

// change records that a reservation has left a state.
func (f *folding) change(m *journal.Movement, from, to record.State) error {
	r, told := f.whole[m.ID]
	switch {
	case told && r.State != from:
		return fmt.Errorf("the reservation was %s", r.State)
	case m.Record != nil:
		return f.tell(m)
	case told:
		r.State, r.Changed, r.Cause = to, m.Time, record.Plain(m.Cause)
		return nil
	}
	move, ok := f.moved[m.ID]
	switch {
	case !ok:
		move = &Move{ID: m.ID, From: from, State: from}
		f.moved[m.ID] = move
	case move.State != from:
		return fmt.Errorf("the reservation was %s", move.State)
	}
	move.State, move.Changed, move.Cause = to, m.Time, record.Plain(m.Cause)
	return nil
}

package journal

import (
	"slices"

	"github.com/stockgate/stockgate/internal/store/record"
)

// Apply adds to totals what a movement changes, and returns its reservation after it; nil: it is of none.
// before is the reservation before it; nil: there was none, or the caller does not know it. The error is
// ErrKind.
func (m *Movement) Apply(t *record.Totals, before *record.Record) (after *record.Record, err error) {
	effect, known := EffectOf(m.Kind)
	switch {
	case !known:
		return nil, ErrKind
	case effect.Stock:
		t.AddStock(m.Lines)
		return nil, nil
	case !effect.Reservation:
		return nil, nil
	}
	after = m.after(effect, before)
	if before != nil {
		t.Count(before, -1)
	}
	t.Count(after, 1)
	return after, nil
}

// ApplyAlone is Apply for a caller that does not keep reservations: it adds the units that the movement tells
// of. What a reservation charges only its record tells.
func (m *Movement) ApplyAlone(t *record.Totals) error {
	alone, before := *m, &record.Record{State: m.Was, Lines: m.Lines}
	alone.Record = nil
	if effects[m.Kind].Returned {
		before.State = record.Confirmed
	}
	_, err := alone.Apply(t, before)
	return err
}

// after is the reservation after a movement: its record, where the movement has it.
func (m *Movement) after(effect Effect, before *record.Record) *record.Record {
	if m.Record != nil {
		return m.Record
	}
	after := record.Record{Buyer: m.Buyer, Lines: m.Lines}
	if before != nil {
		after = *before
	}
	if effect.Enters != "" {
		after.State = effect.Enters
	}
	if effect.Returned {
		after.Returned = slices.Concat(after.Returned, m.Lines)
	}
	after.Changed, after.Cause = m.Time, record.Plain(m.Cause)
	return &after
}

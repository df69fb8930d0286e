package journal_test

import (
	"errors"
	"testing"

	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/record"
)

// A caller that keeps reservations and one that has the movements alone find the same units.
func TestApply(t *testing.T) {
	one := []record.CellUnits{{Cell: "a", Units: 1}}
	three := []record.CellUnits{{Cell: "a", Units: 3}}
	begun := &record.Record{State: record.Held, Lines: three, Charges: "f|-|ann 3", Unpaid: "buyer|ann"}
	back := *begun
	back.State, back.Returned = record.Confirmed, one
	kept, alone := record.NewTotals(), record.NewStock()
	var reservation *record.Record
	for _, step := range []struct {
		m      journal.Movement
		want   record.Cell
		unpaid int64
	}{
		{m: journal.Movement{Kind: "loaded", Lines: []record.CellUnits{{Cell: "a", Units: 10}}}, want: record.Cell{Available: 10}},
		{m: journal.Movement{Kind: "held", Lines: three, Record: begun}, want: record.Cell{Available: 7, Held: 3}, unpaid: 1},
		{m: journal.Movement{Kind: "in_doubt", Was: record.Held, Lines: three}, want: record.Cell{Available: 7, InDoubt: 3}},
		{m: journal.Movement{Kind: "released", Was: record.InDoubt, Lines: three}, want: record.Cell{Available: 10}},
		{m: journal.Movement{Kind: "unbacked", Was: record.Released, Lines: three}, want: record.Cell{Available: 10}},
		{m: journal.Movement{Kind: "confirmed", Was: record.Unbacked, Lines: three}, want: record.Cell{Available: 7, Confirmed: 3}},
		{m: journal.Movement{Kind: "returned", Was: record.Confirmed, Lines: one, Record: &back}, want: record.Cell{Available: 8, Confirmed: 2}},
		{m: journal.Movement{Kind: "adjusted", Lines: []record.CellUnits{{Cell: "a", Units: -1}}}, want: record.Cell{Available: 7, Confirmed: 2}},
		{m: journal.Movement{Kind: "closed"}, want: record.Cell{Available: 7, Confirmed: 2}},
	} {
		after, err := step.m.Apply(kept, reservation)
		if err != nil {
			t.Fatal(err)
		}
		if after != nil {
			reservation = after
		}
		if err := step.m.ApplyAlone(alone); err != nil {
			t.Fatal(err)
		}
		for what, totals := range map[string]*record.Totals{"kept": kept, "alone": alone} {
			c := *totals.Cell("a")
			c.Balance()
			if c.Stock = 0; c != step.want {
				t.Errorf("after %s, %s: %+v, want %+v", step.m.Kind, what, c, step.want)
			}
		}
		if kept.Unpaid["buyer|ann"] != step.unpaid {
			t.Errorf("after %s: %v unpaid", step.m.Kind, kept.Unpaid)
		}
	}
	if reservation.State != record.Confirmed || kept.Limits["f|-|ann"] != (record.Count{Charged: 3}) {
		t.Errorf("the reservation is %+v, the limits are %v", reservation, kept.Limits)
	}
	unknown := journal.Movement{Kind: "later"}
	if _, err := unknown.Apply(kept, nil); !errors.Is(err, journal.ErrKind) || !errors.Is(unknown.ApplyAlone(alone), journal.ErrKind) {
		t.Errorf("a kind of a later version: %v", err)
	}
}

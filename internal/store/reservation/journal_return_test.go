package reservation_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// Which return a movement tells of, and which adjustment belongs to one, is read in Go as the
// scripts write it.
func TestReturnsInTheJournal(t *testing.T) {
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		c.reserve("r1", ofLines(sale.Line{SKU: "a", Quantity: 5}))
		c.must("confirmed")(c.Confirm(stocktest.Soon(t), "s", "r1", reservation.SourceAnswer, ""))
		one := []sale.Line{{SKU: "a", Quantity: 1}}
		before := c.seq()
		for _, r := range []reservation.Return{
			{ID: "gone", Lines: one, Cause: "fell to pieces"}, {ID: "bare", Lines: one}, {ID: "back", Lines: one, Restock: true, Cause: "r1 did not fit"},
		} {
			if _, err := c.Return(stocktest.Soon(t), "s", "r1", r); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range []string{"back", "gone-too"} { // the first has the id of the return before it
			if _, err := c.Adjust(stocktest.Soon(t), "s", id, "a", 1, "ann"); err != nil {
				t.Fatal(err)
			}
		}
		movements, err := c.Journal().Movements(stocktest.Soon(t), "s", int64(before), 100)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		var last *journal.Movement
		for i := range movements {
			m := &movements[i]
			if m.Kind == "returned" {
				got = append(got, m.Kind+" "+m.ReturnID())
			} else {
				got = append(got, fmt.Sprint(m.Kind, " ", m.ID, " ", m.OfReturn(last)))
			}
			last = m
		}
		want := []string{"returned gone", "adjusted gone true", "returned bare", "adjusted bare true", "returned back", "adjusted back false", "adjusted gone-too false"}
		if !slices.Equal(got, want) {
			t.Errorf("the journal tells %q, want %q", got, want)
		}
		if movements[1].OfReturn(&movements[2]) || movements[1].OfReturn(nil) {
			t.Error("an adjustment belongs to a return that is not before it")
		}
	})
}

package reservation_test

import (
	"testing"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// The units of a reservation are in the column of its state, in Go as in the scripts.
func TestColumnsAreThoseOfTheScripts(t *testing.T) {
	for state, prepare := range intoState {
		t.Run(state, func(t *testing.T) {
			eachClock(t, 4, func(t *testing.T, c *clocked) {
				c.reserve("r1", inMode(record.ModeBackend))
				prepare(c)
				want := record.Cell{SKU: "a", Stock: 4, Available: 3}
				*want.Units(record.State(state).Column())++
				if got := stocktest.CellA(t, c.Store); got != want {
					t.Errorf("the units are %+v, want %+v", got, want)
				}
			})
		})
	}
	if c := record.State("tombstone").Column(); c != record.NoColumn || c.Taken() {
		t.Errorf("a tombstone's units are in column %d", c)
	}
}

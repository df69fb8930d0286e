package reservation_test

import (
	"testing"

	"github.com/stockgate/stockgate/reservation"
)

// The units of a reservation are in the column of its state, in Go as in the scripts.
func TestColumnsAreThoseOfTheScripts(t *testing.T) {
	for state, prepare := range intoState {
		t.Run(state, func(t *testing.T) {
			eachClock(t, 4, func(t *testing.T, c *clocked) {
				c.reserve("r1", inMode(reservation.Backend))
				prepare(c)
				want := reservation.Cell{SKU: "a", Stock: 4, Available: 3}
				*want.Units(reservation.State(state).Column())++
				if got := cellA(t, c.Store); got != want {
					t.Errorf("the units are %+v, want %+v", got, want)
				}
			})
		})
	}
	if c := reservation.State("tombstone").Column(); c != reservation.NoColumn || c.Taken() {
		t.Errorf("a tombstone's units are in column %d", c)
	}
}

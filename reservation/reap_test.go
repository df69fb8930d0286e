package reservation_test

import (
	"fmt"
	"testing"

	"github.com/stockgate/stockgate/reservation"
)

// Sales whose Redis does not answer delay the end of no other's holds.
func TestDeadSalesKeepNoHold(t *testing.T) {
	const dead = 7
	f := newFaulty(t, long)
	var calls []string
	for i := range dead {
		id := fmt.Sprint("dead", i)
		load(t, f.direct, openSale(id, 3))
		calls = append(calls, "EVALSHA "+id)
	}
	look(t, f.edge)
	f.proxy.HoldRequests(calls...)
	f.edge.Start()
	if err := f.proxy.WaitHeld(soon(t)); err != nil {
		t.Fatal(err)
	}
	short := terms
	short.HoldFor, short.Mode = 0, reservation.Backend
	for i := range 3 { // in one round after the other
		id := fmt.Sprint("r", i)
		holdFor(f, id, short)
		eventually(t, "an ended hold", func() bool { return state(t, f.direct, id) == reservation.Expired })
	}
	f.proxy.ReleaseRequests()
	f.audit()
}

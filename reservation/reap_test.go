package reservation_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/redistest"
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

// Edges forget what is over by themselves.
func TestReaperForgets(t *testing.T) {
	b := redistest.Embedded(t)
	began := time.Now()
	b.SetTime(began)
	e := newEdge(t, options(b), reservation.EdgeOptions{})
	var passed atomic.Int64
	e.Store.Measure(func() time.Time { return time.Now().Add(time.Duration(passed.Load())) })
	load(t, e.Store, openSale("s", 10))
	look(t, e)
	mustHold(t, e, "refused", "Ann", 1)
	mustHold(t, e, "held", "Bob", 1)
	if _, err := e.Store.Release(soon(t), "s", "refused", reservation.Shop, "status_409"); err != nil {
		t.Fatal(err)
	}
	passed.Store(int64(24 * time.Hour))
	b.SetTime(began.Add(24 * time.Hour))
	e.Start()
	records := func() map[string]string {
		all, err := b.Client().HGetAll(soon(t), e.Store.ShardKeys("s")[3]).Result()
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	eventually(t, "the refused order is forgotten", func() bool { return records()["refused"] == "" })
	if records()["held"] == "" {
		t.Error("a hold was forgotten")
	}
}

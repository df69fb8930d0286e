package reservation_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// Sales whose Redis does not answer delay the end of no other's holds.
func TestDeadSalesKeepNoHold(t *testing.T) {
	const dead = 7
	f := stocktest.NewFaulty(t, stocktest.Long)
	var calls []string
	for i := range dead {
		id := fmt.Sprint("dead", i)
		stocktest.Load(t, f.Direct, stocktest.OpenSale(id, 3))
		calls = append(calls, "EVALSHA "+id)
	}
	stocktest.Look(t, f.Edge)
	f.Proxy.HoldRequests(calls...)
	f.Edge.Start()
	if err := f.Proxy.WaitHeld(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	short := stocktest.HoldOptions
	short.HoldFor, short.Mode = 0, record.ModeBackend
	for i := range 3 { // in one round after the other
		id := fmt.Sprint("r", i)
		stocktest.HoldFor(f, id, short)
		stocktest.Eventually(t, "an ended hold", func() bool { return stocktest.State(t, f.Direct, id) == record.Expired })
	}
	f.Proxy.ReleaseRequests()
	f.Audit()
}

// Edges forget what is over by themselves.
func TestReaperForgets(t *testing.T) {
	b := redistest.Embedded(t)
	began := time.Now()
	b.SetTime(began)
	e := stocktest.NewEdge(t, stocktest.Options(b), edge.Options{})
	var passed atomic.Int64
	e.Store.Shard().Measure(func() time.Time { return time.Now().Add(time.Duration(passed.Load())) })
	stocktest.Load(t, e.Store, stocktest.OpenSale("s", 10))
	stocktest.Look(t, e)
	stocktest.MustHold(t, e, "refused", "Ann", 1)
	stocktest.MustHold(t, e, "held", "Bob", 1)
	if _, err := e.Store.Release(stocktest.Soon(t), "s", "refused", reservation.SourceShop, "status_409"); err != nil {
		t.Fatal(err)
	}
	passed.Store(int64(24 * time.Hour))
	b.SetTime(began.Add(24 * time.Hour))
	e.Start()
	records := func() map[string]string {
		all, err := b.Client().HGetAll(stocktest.Soon(t), e.Store.Shard().ShardKeys("s")[3]).Result()
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	stocktest.Eventually(t, "the refused order is forgotten", func() bool { return records()["refused"] == "" })
	if records()["held"] == "" {
		t.Error("a hold was forgotten")
	}
}

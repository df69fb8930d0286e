package reservation_test

import (
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// Counters go when their window is over, and not before; those without an end stay.
func TestSweep(t *testing.T) {
	b := redistest.Embedded(t)
	hour := time.Now().UTC().Truncate(time.Hour) // of a sale that is open now
	b.SetTime(hour.Add(time.Minute))
	e := stocktest.NewEdge(t, stocktest.Options(b), edge.Options{})
	var passed time.Duration
	e.Store.Shard().Measure(func() time.Time { return time.Now().Add(passed) })
	if err := e.Refresh(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	stocktest.Load(t, e.Store, stocktest.OpenSale("s", 10,
		sale.Limit{Per: "buyer", Every: "hour", Max: 5, Count: "units"}, sale.Limit{Per: "buyer", Every: "sale", Max: 5, Count: "units"}))
	if err := e.Refresh(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	stocktest.MustHold(t, e, "r1", "Ann", 1)
	counters := func() int64 {
		n, err := b.Client().HLen(stocktest.Soon(t), e.Store.Shard().ShardKeys("s")[2]).Result()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	sweep := func() (dropped int) {
		for cursor := "0"; ; {
			next, n, err := e.Store.Sweep(stocktest.Soon(t), "s", cursor)
			if err != nil {
				t.Fatal(err)
			}
			dropped += n
			if cursor = next; cursor == "0" {
				return dropped
			}
		}
	}
	passed = 59*time.Minute - time.Millisecond
	b.SetTime(hour.Add(time.Hour - time.Millisecond))
	if n := sweep(); n != 0 || counters() != 2 {
		t.Errorf("within the hour %d counters were dropped, %d are left", n, counters())
	}
	b.SetTime(hour.Add(time.Hour))
	if n := sweep(); n != 1 || counters() != 1 {
		t.Errorf("after the hour %d counters were dropped, %d are left; want 1 and 1", n, counters())
	}
	// what was charged in the hour that is gone gives back nothing there
	if state, err := e.Store.Release(stocktest.Soon(t), "s", "r1", reservation.SourceShop, ""); err != nil || state != record.Released {
		t.Errorf("released: %s, %v", state, err)
	}
	if counters() != 0 {
		t.Errorf("%d counters are left of a released reservation", counters())
	}
}

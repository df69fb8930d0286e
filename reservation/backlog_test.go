package reservation_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stockgate/stockgate/internal/redistest"
	"github.com/stockgate/stockgate/reservation"
)

// untold is an edge, not started, whose outcomes cannot be told: Confirm and Free with
// the context that it returns go to the backlog.
func untold(t *testing.T, counts *counter) (*reservation.Edge, context.Context) {
	e := newEdge(t, options(redistest.Embedded(t)), reservation.EdgeOptions{Metrics: counts})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	return e, ended
}

func TestBacklogIsBounded(t *testing.T) {
	var counts counter
	e, ended := untold(t, &counts)
	const half = reservation.BacklogOfSale / 2
	for i := range half {
		e.Abandon("s", fmt.Sprint("r", i))
		e.Free(ended, "s", fmt.Sprint("f", i))
	}
	if n, dropped := e.Backlog(), counts.dropped.Load(); n != half || dropped != half {
		t.Errorf("%d internal outcomes wait and %d were dropped, want half of %d each", n, dropped, reservation.BacklogOfSale)
	}
	// the other half is for what the shop has said
	for i := range half + 3 {
		if _, err := e.ConfirmEventually(ended, "s", fmt.Sprint("c", i), ""); !errors.Is(err, reservation.ErrUnavailable) {
			t.Fatal(err)
		}
	}
	if n, dropped := e.Backlog(), counts.dropped.Load(); n != reservation.BacklogOfSale || dropped != half+3 {
		t.Errorf("%d outcomes wait and %d were dropped, want %d and %d", n, dropped, reservation.BacklogOfSale, half+3)
	}
}

// However many sales have a full backlog, another one has its share, and all of them
// together have a bound.
func TestBacklogIsShared(t *testing.T) {
	var counts counter
	e, ended := untold(t, &counts)
	const full = reservation.BacklogSize / reservation.BacklogOfSale
	for sale := range full {
		for i := range reservation.BacklogOfSale {
			_, _ = e.ConfirmEventually(ended, fmt.Sprint("full", sale), fmt.Sprint(i), "")
		}
	}
	if n, dropped := e.Backlog(), counts.dropped.Load(); n != reservation.BacklogSize || dropped != 0 {
		t.Fatalf("%d outcomes wait and %d were dropped, want %d and none", n, dropped, reservation.BacklogSize)
	}
	for i := range reservation.BacklogOfSale {
		_, _ = e.ConfirmEventually(ended, "late", fmt.Sprint(i), "")
	}
	_, _ = e.ConfirmEventually(ended, "full0", "one more", "")
	const share = reservation.BacklogSize / (full + 1)
	if n := e.Backlog() - reservation.BacklogSize; n != share {
		t.Errorf("another sale has room for %d outcomes, want its share of %d", n, share)
	}
}

// The same outcome of one reservation waits once.
func TestBacklogHasNothingTwice(t *testing.T) {
	e, ended := untold(t, new(counter))
	for range 3 {
		e.Abandon("s", "r1")
		_, _ = e.ConfirmEventually(ended, "s", "r2", "")
		_, _ = e.DoubtEventually(ended, "s", "r2", "timeout")
	}
	if n := e.Backlog(); n != 3 {
		t.Errorf("%d outcomes wait, want 3", n)
	}
}

// A sale whose Redis does not answer delays the outcomes of no other.
func TestADeadSaleDelaysNoOther(t *testing.T) {
	f := newFaulty(t, long)
	load(t, f.direct, openSale("dead", 3))
	mustHold(t, f.edge, "r1", "Ann", 1)
	f.net.cut()
	for i := range 20 {
		f.edge.Abandon("dead", fmt.Sprint(i))
	}
	if _, err := f.edge.ConfirmEventually(soon(t), "s", "r1", ""); !errors.Is(err, reservation.ErrUnavailable) {
		t.Fatal(err)
	}
	f.proxy.HoldRequests("EVALSHA dead")
	f.net.lead(f.proxy.Addr())
	f.edge.Start()
	if err := f.proxy.WaitHeld(soon(t)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a healthy sale's outcome", func() bool { return f.edge.Backlog() == 20 })
	if got := state(t, f.direct, "r1"); got != reservation.Confirmed {
		t.Errorf("r1 is %s, want confirmed", got)
	}
	f.proxy.ReleaseRequests()
	eventually(t, "an empty backlog", func() bool { return f.edge.Backlog() == 0 })
}

// Thirty times the connection ends under as many attempts as may be under way: all of
// them are given back, in few calls.
func TestManyCutsFitTheBacklog(t *testing.T) {
	var counts counter
	f := newFaulty(t, long)
	f.edge.SetMetrics(&counts)
	const outcomes = 30 * 2 * reservation.MostTogether
	f.net.cut()
	for i := range outcomes {
		f.edge.Abandon("s", fmt.Sprint("r", i))
	}
	if n, dropped := f.edge.Backlog(), counts.dropped.Load(); n != outcomes || dropped != 0 {
		t.Fatalf("%d outcomes wait and %d were dropped, want %d and none", n, dropped, outcomes)
	}
	before := f.proxy.Requests("EVALSHA")
	f.net.lead(f.proxy.Addr())
	f.told()
	if n := f.proxy.Requests("EVALSHA") - before; n > outcomes/10 {
		t.Errorf("%d calls told %d outcomes", n, outcomes)
	}
	if n := len(f.audit().tombstones); n != outcomes {
		t.Errorf("redis has heard of %d of %d", n, outcomes)
	}
}

// One outcome that Redis cannot take keeps none of those that go with it.
func TestABadOutcomeKeepsNoOther(t *testing.T) {
	f := newFaulty(t, long)
	for i := range 3 {
		mustHold(t, f.edge, fmt.Sprint("r", i), fmt.Sprint(i), 1)
	}
	records := f.direct.ShardKeys("s")[3]
	good := f.server.Client().HGet(soon(t), records, "r1").Val()
	if err := f.server.Client().HSet(soon(t), records, "r1", strings.Replace(good, "\ta 1\t", "\tno_cell 1\t", 1)).Err(); err != nil {
		t.Fatal(err)
	}
	f.net.cut()
	for i := range 3 {
		if _, err := f.edge.ConfirmEventually(soon(t), "s", fmt.Sprint("r", i), ""); !errors.Is(err, reservation.ErrUnavailable) {
			t.Fatal(err)
		}
	}
	f.net.lead(f.proxy.Addr())
	f.edge.Start()
	eventually(t, "the others told", func() bool { return f.edge.Backlog() == 1 })
	if err := f.server.Client().HSet(soon(t), records, "r1", good).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an empty backlog", func() bool { return f.edge.Backlog() == 0 })
	for i := range 3 {
		if got := state(t, f.direct, fmt.Sprint("r", i)); got != reservation.Confirmed {
			t.Errorf("r%d is %s, want confirmed", i, got)
		}
	}
	f.audit()
}

// While connections break as soon as they are made, only what was on its way when they broke
// may have run. Later attempts are not sent, and leave nothing to tell.
func TestBrokenConnectionsLeaveNoBacklog(t *testing.T) {
	f := newFaulty(t, long)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	})
	t.Cleanup(func() { ln.Close(); accepting.Wait() })

	f.net.cut()
	f.net.lead(ln.Addr().String())
	if _, _, err := hold(soon(t), f.edge, "first-of-all", "Ann", 1); !errors.Is(err, reservation.ErrUnavailable) {
		t.Fatal(err) // this one may have been on its way
	}
	before := f.edge.Backlog()
	for i := range 50 {
		if _, _, err := hold(soon(t), f.edge, fmt.Sprint("r", i), fmt.Sprint("b", i), 1); !errors.Is(err, reservation.ErrUnavailable) {
			t.Fatal(err)
		}
	}
	if n := f.edge.Backlog() - before; n != 0 {
		t.Errorf("%d of 50 attempts that were not sent left a release to tell", n)
	}
	f.net.lead(f.proxy.Addr())
	mustHold(t, f.edge, "last", "Ann", 1)
	f.told()
	f.audit()
}

package edge_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/store/combine"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// untold is an edge, not started, whose outcomes cannot be sent: Confirm and Free with
// the context that it returns go to the backlog.
func untold(t *testing.T, counts *stocktest.Counter) (*edge.Edge, context.Context) {
	e := stocktest.NewEdge(t, stocktest.Options(redistest.Embedded(t)), edge.Options{Metrics: counts})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	return e, ended
}

func TestBacklogIsBounded(t *testing.T) {
	var counts stocktest.Counter
	e, ended := untold(t, &counts)
	const half = edge.BacklogOfSale / 2
	for i := range half {
		e.Abandon("s", fmt.Sprint("r", i))
		e.Free(ended, "s", fmt.Sprint("f", i))
	}
	if n, dropped := e.Backlog(), counts.Dropped.Load(); n != half || dropped != half {
		t.Errorf("%d internal outcomes wait and %d were dropped, want half of %d each", n, dropped, edge.BacklogOfSale)
	}
	// the other half is for what the shop has said
	for i := range half + 3 {
		if _, err := e.ConfirmEventually(ended, "s", fmt.Sprint("c", i), ""); !errors.Is(err, shard.ErrUnavailable) {
			t.Fatal(err)
		}
	}
	if n, dropped := e.Backlog(), counts.Dropped.Load(); n != edge.BacklogOfSale || dropped != half+3 {
		t.Errorf("%d outcomes wait and %d were dropped, want %d and %d", n, dropped, edge.BacklogOfSale, half+3)
	}
}

// However many sales have a full backlog, another one has its share, and all of them
// together have a bound.
func TestBacklogIsShared(t *testing.T) {
	var counts stocktest.Counter
	e, ended := untold(t, &counts)
	const full = edge.BacklogSize / edge.BacklogOfSale
	for sale := range full {
		for i := range edge.BacklogOfSale {
			_, _ = e.ConfirmEventually(ended, fmt.Sprint("full", sale), fmt.Sprint(i), "")
		}
	}
	if n, dropped := e.Backlog(), counts.Dropped.Load(); n != edge.BacklogSize || dropped != 0 {
		t.Fatalf("%d outcomes wait and %d were dropped, want %d and none", n, dropped, edge.BacklogSize)
	}
	for i := range edge.BacklogOfSale {
		_, _ = e.ConfirmEventually(ended, "late", fmt.Sprint(i), "")
	}
	_, _ = e.ConfirmEventually(ended, "full0", "one more", "")
	const share = edge.BacklogSize / (full + 1)
	if n := e.Backlog() - edge.BacklogSize; n != share {
		t.Errorf("another sale has room for %d outcomes, want its share of %d", n, share)
	}
}

// The same outcome of one reservation waits once.
func TestBacklogHasNothingTwice(t *testing.T) {
	e, ended := untold(t, new(stocktest.Counter))
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
	f := stocktest.NewFaulty(t, stocktest.Long)
	stocktest.Load(t, f.Direct, stocktest.OpenSale("dead", 3))
	stocktest.MustHold(t, f.Edge, "r1", "Ann", 1)
	f.Net.Cut()
	for i := range 20 {
		f.Edge.Abandon("dead", fmt.Sprint(i))
	}
	if _, err := f.Edge.ConfirmEventually(stocktest.Soon(t), "s", "r1", ""); !errors.Is(err, shard.ErrUnavailable) {
		t.Fatal(err)
	}
	f.Proxy.HoldRequests("EVALSHA dead")
	f.Net.Lead(f.Proxy.Addr())
	f.Edge.Start()
	if err := f.Proxy.WaitHeld(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	stocktest.Eventually(t, "a healthy sale's outcome", func() bool { return f.Edge.Backlog() == 20 })
	if got := stocktest.State(t, f.Direct, "r1"); got != record.Confirmed {
		t.Errorf("r1 is %s, want confirmed", got)
	}
	f.Proxy.ReleaseRequests()
	stocktest.Eventually(t, "an empty backlog", func() bool { return f.Edge.Backlog() == 0 })
}

// Thirty times the connection ends under as many attempts as may be under way: all of
// them are given back, in few calls.
func TestManyCutsFitTheBacklog(t *testing.T) {
	var counts stocktest.Counter
	f := stocktest.NewFaulty(t, stocktest.Long)
	f.Edge.SetMetrics(&counts)
	const outcomes = 30 * 2 * combine.MaxTogether
	f.Net.Cut()
	for i := range outcomes {
		f.Edge.Abandon("s", fmt.Sprint("r", i))
	}
	if n, dropped := f.Edge.Backlog(), counts.Dropped.Load(); n != outcomes || dropped != 0 {
		t.Fatalf("%d outcomes wait and %d were dropped, want %d and none", n, dropped, outcomes)
	}
	before := f.Proxy.Requests("EVALSHA")
	f.Net.Lead(f.Proxy.Addr())
	f.Told()
	if n := f.Proxy.Requests("EVALSHA") - before; n > outcomes/10 {
		t.Errorf("%d calls told %d outcomes", n, outcomes)
	}
	if n := len(f.Audit().Tombstones); n != outcomes {
		t.Errorf("redis has heard of %d of %d", n, outcomes)
	}
}

// One outcome that Redis cannot take keeps none of those that go with it.
func TestABadOutcomeKeepsNoOther(t *testing.T) {
	f := stocktest.NewFaulty(t, stocktest.Long)
	for i := range 3 {
		stocktest.MustHold(t, f.Edge, fmt.Sprint("r", i), fmt.Sprint(i), 1)
	}
	records := f.Direct.Shard().ShardKeys("s")[3]
	good := f.Server.Client().HGet(stocktest.Soon(t), records, "r1").Val()
	if err := f.Server.Client().HSet(stocktest.Soon(t), records, "r1", strings.Replace(good, "\ta 1\t", "\tno_cell 1\t", 1)).Err(); err != nil {
		t.Fatal(err)
	}
	f.Net.Cut()
	for i := range 3 {
		if _, err := f.Edge.ConfirmEventually(stocktest.Soon(t), "s", fmt.Sprint("r", i), ""); !errors.Is(err, shard.ErrUnavailable) {
			t.Fatal(err)
		}
	}
	f.Net.Lead(f.Proxy.Addr())
	f.Edge.Start()
	stocktest.Eventually(t, "the others told", func() bool { return f.Edge.Backlog() == 1 })
	if err := f.Server.Client().HSet(stocktest.Soon(t), records, "r1", good).Err(); err != nil {
		t.Fatal(err)
	}
	stocktest.Eventually(t, "an empty backlog", func() bool { return f.Edge.Backlog() == 0 })
	for i := range 3 {
		if got := stocktest.State(t, f.Direct, fmt.Sprint("r", i)); got != record.Confirmed {
			t.Errorf("r%d is %s, want confirmed", i, got)
		}
	}
	f.Audit()
}

// While connections break as soon as they are made, only what was on its way when they broke
// may have run. Later attempts are not sent, and leave nothing to tell.
func TestBrokenConnectionsLeaveNoBacklog(t *testing.T) {
	f := stocktest.NewFaulty(t, stocktest.Long)
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

	f.Net.Cut()
	f.Net.Lead(ln.Addr().String())
	if _, _, err := stocktest.Hold(stocktest.Soon(t), f.Edge, "first-of-all", "Ann", 1); !errors.Is(err, shard.ErrUnavailable) {
		t.Fatal(err) // this one may have been on its way
	}
	before := f.Edge.Backlog()
	for i := range 50 {
		if _, _, err := stocktest.Hold(stocktest.Soon(t), f.Edge, fmt.Sprint("r", i), fmt.Sprint("b", i), 1); !errors.Is(err, shard.ErrUnavailable) {
			t.Fatal(err)
		}
	}
	if n := f.Edge.Backlog() - before; n != 0 {
		t.Errorf("%d of 50 attempts that were not sent left a release to tell", n)
	}
	f.Net.Lead(f.Proxy.Addr())
	stocktest.MustHold(t, f.Edge, "last", "Ann", 1)
	f.Told()
	f.Audit()
}

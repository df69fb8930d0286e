package edge_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/edge/fence"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// pair is a primary with a replica, and edges that are led from one to the other.
type pair struct {
	t       *testing.T
	primary *redistest.Server
	replica *redistest.Server
	at      atomic.Pointer[string] // where edges connect
}

func newPair(t *testing.T, limits ...sale.Limit) *pair {
	t.Helper()
	p := &pair{t: t, primary: redistest.Start(t)}
	p.replica = stocktest.Replica(t, p.primary)
	p.lead(p.primary)
	stocktest.Load(t, stocktest.OpenStore(t, p.options()), stocktest.OpenSale("s", 1000, limits...))
	return p
}

func (p *pair) lead(s *redistest.Server) {
	addr := s.Addr()
	p.at.Store(&addr)
}

func (p *pair) options() shard.Options {
	o := stocktest.Options(p.primary)
	o.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, *p.at.Load())
	}
	return o
}

// edge is one that runs.
func (p *pair) edge(o shard.Options) *edge.Edge {
	p.t.Helper()
	e := stocktest.NewEdge(p.t, o, edge.Options{})
	e.Start()
	if err := e.Refresh(stocktest.Soon(p.t)); err != nil {
		p.t.Fatal(err)
	}
	stocktest.Eventually(p.t, "an edge that follows the journal", func() bool { _, ok := e.Followed("s"); return ok })
	return e
}

// stall keeps what is written from now on from the replica.
func (p *pair) stall() {
	p.t.Helper()
	if err := p.replica.Client().Do(stocktest.Soon(p.t), "REPLICAOF", "127.0.0.1", "1").Err(); err != nil {
		p.t.Fatal(err)
	}
}

// promote has the replica take over.
func (p *pair) promote() {
	p.t.Helper()
	if err := p.replica.Client().Do(stocktest.Soon(p.t), "REPLICAOF", "NO", "ONE").Err(); err != nil {
		p.t.Fatal(err)
	}
	p.lead(p.replica)
}

// sells waits until an edge sells again.
func (p *pair) sells(e *edge.Edge, id string) {
	p.t.Helper()
	n := 0
	stocktest.Eventually(p.t, "an edge that sells again", func() bool {
		n++
		_, no, err := stocktest.Hold(stocktest.Soon(p.t), e, fmt.Sprintf("%s-%d", id, n), fmt.Sprint(id, n), 1)
		// Those before it that were not heard in time hold units until they are released.
		if no != nil && (n == 1 || no.Reason != sale.AllHeld) {
			p.t.Fatalf("refused: %+v", no)
		}
		return err == nil && no == nil
	})
}

// settled waits until an edge has released what it sent in vain.
func (p *pair) settled(e *edge.Edge) {
	p.t.Helper()
	stocktest.Eventually(p.t, "an empty backlog", func() bool { return e.Backlog() == 0 })
}

// A server that has lost nothing is sold from as soon as the edges have said so.
func TestCleanFailover(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	a, b := p.edge(p.options()), p.edge(p.options())
	stocktest.MustHold(t, a, "r1", "Ann", 1)
	stocktest.MustHold(t, b, "r2", "Bob", 1)
	stocktest.Replicated(t, a.Store.Shard())
	p.primary.Kill()
	p.promote()
	p.sells(a, "a")
	p.sells(b, "b")
	for _, id := range []string{"r1", "r2"} {
		if got := stocktest.State(t, a.Store, id); got != record.Held {
			t.Errorf("%s is %q, want held", id, got)
		}
	}
}

// What the replica lacks comes back from the edges: nothing is sold twice, and what the shop
// has said is not forgotten.
func TestLossyFailover(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	a, b := p.edge(p.options()), p.edge(p.options())
	stocktest.MustHold(t, a, "r1", "Ann", 1)
	stocktest.MustHold(t, b, "r2", "Bob", 1)
	stocktest.Replicated(t, a.Store.Shard())
	p.stall()
	var all sync.WaitGroup
	for i := range 50 {
		for name, e := range map[string]*edge.Edge{"a": a, "b": b} {
			all.Go(func() { stocktest.MustHold(t, e, fmt.Sprintf("%s%02d", name, i), fmt.Sprint(name, i), 2) })
		}
	}
	all.Wait()
	for i, e := range map[string]*edge.Edge{"r1": a, "a01": a, "b02": b} {
		if _, err := e.ConfirmEventually(stocktest.Soon(t), "s", i, ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.ReleaseEventually(stocktest.Soon(t), "s", "b03", reservation.SourceShop, ""); err != nil {
		t.Fatal(err)
	}
	before := stocktest.CellA(t, stocktest.OpenStore(t, stocktest.Options(p.primary)))
	p.primary.Kill()
	p.promote()
	p.sells(a, "x")
	p.settled(a)
	after := stocktest.CellA(t, a.Store)
	for id, want := range map[string]record.State{"r1": record.Confirmed, "a01": record.Confirmed, "b02": record.Confirmed, "b03": record.Released, "a49": record.Held, "b49": record.Held} {
		if got := stocktest.State(t, a.Store, id); got != want {
			t.Errorf("%s is %q, want %q", id, got, want)
		}
	}
	if after.Confirmed != before.Confirmed || after.Held != before.Held+1 || after.Available != before.Available-1 {
		t.Errorf("before %+v, after the failover and one more hold %+v", before, after)
	}
	stocktest.Balanced(t, p.replica.Client(), a.Store, "s")
}

// A single server that is started again with all that it had goes on.
func TestRestartedServer(t *testing.T) {
	s := redistest.Start(t, redistest.Config("appendonly yes", "appendfsync always"))
	e := stocktest.NewEdge(t, stocktest.Options(s), edge.Options{})
	stocktest.Load(t, e.Store, stocktest.OpenSale("s", 10))
	e.Start()
	stocktest.Look(t, e)
	stocktest.MustHold(t, e, "r1", "Ann", 1)
	s.Kill()
	s.Restart()
	p := &pair{t: t}
	p.sells(e, "x")
	stocktest.Eventually(t, "an empty backlog", func() bool { return e.Backlog() == 0 })
	if c := stocktest.CellA(t, e.Store); c.Held != 2 {
		t.Errorf("%d units are held, want 2", c.Held)
	}
}

// A server that starts twice from the same old file gets twice what it lacks, also where nothing was
// sold in between.
func TestRestartedTwice(t *testing.T) {
	s := redistest.Start(t)
	e := stocktest.NewEdge(t, stocktest.Options(s), edge.Options{})
	stocktest.Load(t, e.Store, stocktest.OpenSale("s", 10))
	e.Start()
	stocktest.Look(t, e)
	stocktest.MustHold(t, e, "r1", "Ann", 1)
	if err := s.Client().Save(stocktest.Soon(t)).Err(); err != nil {
		t.Fatal(err)
	}
	if err := e.Store.SetStatus(stocktest.Soon(t), "s", sale.Paused, "test"); err != nil { // which is told by the journal only
		t.Fatal(err)
	}
	stocktest.Eventually(t, "an edge that has read everything", func() bool {
		seq, ok := e.Followed("s")
		return ok && seq == e.Store.Shard().Seq("s")
	})
	for range 2 {
		s.Kill()
		s.Restart()
		stocktest.Eventually(t, "a sale that is paused again", func() bool {
			l, err := e.Store.Load(stocktest.Soon(t), "s")
			return err == nil && l.Status == sale.Paused
		})
	}
}

// A server that gets its first replica changes its id, and has lost nothing: no attempt and no
// outcome notices.
func TestFirstReplica(t *testing.T) {
	s := redistest.Start(t)
	e := stocktest.NewEdge(t, stocktest.Options(s), edge.Options{})
	stocktest.Load(t, e.Store, stocktest.OpenSale("s", 10))
	e.Start()
	stocktest.Look(t, e)
	stocktest.MustHold(t, e, "r1", "Ann", 1)
	stocktest.Replica(t, s)
	stocktest.MustHold(t, e, "r2", "Bob", 1)
	if state, err := e.ConfirmEventually(stocktest.Soon(t), "s", "r1", ""); err != nil || state != record.Confirmed {
		t.Errorf("the confirm says %q, %v", state, err)
	}
	if r, err := fence.Read(stocktest.Soon(t), e.Store.Shard(), "s"); err != nil || !r.Armed || r.Fenced || !r.Began.IsZero() {
		t.Errorf("%+v, %v", r, err)
	}
}

// An old primary that comes back is not sold from by an edge that knows its successor.
func TestOldPrimary(t *testing.T) {
	p := newPair(t)
	e := p.edge(p.options())
	stocktest.MustHold(t, e, "r1", "Ann", 1)
	stocktest.Replicated(t, e.Store.Shard()) // or it has not even the sale
	p.stall()
	p.promote()
	p.primary.Client().ClientKillByFilter(stocktest.Soon(t), "TYPE", "normal")
	p.sells(e, "x")
	p.lead(p.primary)
	p.replica.Client().ClientKillByFilter(stocktest.Soon(t), "TYPE", "normal")
	for i := range 5 {
		if _, no, err := stocktest.Hold(stocktest.Soon(t), e, fmt.Sprint("y", i), fmt.Sprint("y", i), 1); no == nil && !errors.Is(err, shard.ErrUnavailable) {
			t.Fatalf("the old primary sold: %v, %v", no, err)
		}
	}
}

// Whatever has happened comes back as it was: units, records, limits, keys and the journal.
func TestTailOfEveryKind(t *testing.T) {
	t.Parallel()
	p := newPair(t, stocktest.PerBuyer(100), sale.Limit{Per: "buyer", Every: "day", Max: 100, Count: "orders"})
	e := p.edge(p.options())
	stocktest.MustHold(t, e, "r0", "Ann", 1)
	stocktest.Replicated(t, e.Store.Shard())
	p.stall()
	for _, id := range []string{"r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9"} {
		stocktest.MustHold(t, e, id, id, 2)
	}
	backend := stocktest.HoldOptions
	backend.Mode, backend.HoldFor, backend.Margin = record.ModeBackend, 50*time.Millisecond, time.Millisecond
	if _, no, err := stocktest.HoldOn(stocktest.Soon(t), e, "short", "Eve", 1, backend); no != nil || err != nil {
		t.Fatal(no, err)
	}
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, store := stocktest.Soon(t), e.Store
	must(store.Confirm(ctx, "s", "r4", reservation.SourceShop, ""))
	must(store.Doubt(ctx, "s", "r6", "timeout"))
	all := stocktest.EveryOperation("r1", "r2", "r3", "r4", "r5", "r6")
	for _, name := range []string{"reserve", "adjust", "confirm", "release", "doubt", "return", "extend", "probed"} {
		if err := all[name](ctx, e); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	must(store.Confirm(ctx, "s", "r7", reservation.SourceShop, "paid"))
	must(store.Return(ctx, "s", "r7", reservation.Return{ID: "back", Restock: false, Cause: "broken"}))
	must(store.Release(ctx, "s", "r8", reservation.SourceShop, "no"))
	must(store.Confirm(ctx, "s", "r8", reservation.SourceAnswer, "yes after all"))
	must(store.Confirm(ctx, "s", "r0", reservation.SourceShop, ""))
	must(store.Confirm(ctx, "s", "r9", reservation.SourceShop, ""))
	must(store.Return(ctx, "s", "r9", reservation.Return{ID: "some", Restock: true, Lines: stocktest.UnitsOfA(1)}))
	stocktest.Eventually(t, "the end of the short hold", func() bool { return stocktest.State(t, store, "short") == record.Expired })
	must(nil, store.SetStatus(ctx, "s", sale.Paused, "me"))
	must(nil, store.SetStatus(ctx, "s", sale.Open, "me"))
	stocktest.Eventually(t, "an edge that has read everything", func() bool {
		seq, ok := e.Followed("s")
		return ok && seq == store.Shard().Seq("s")
	})
	before := stocktest.Balanced(t, p.primary.Client(), store, "s")
	if n := len(before.Limits); n < 10 {
		t.Fatalf("%d counters of limits: the test proves nothing about them", n)
	}
	p.primary.Kill()
	p.promote()
	replica := p.replica.Client()
	stocktest.Eventually(t, "the end of the fence", func() bool {
		report, err := fence.Read(ctx, store.Shard(), "s")
		return err == nil && !report.Fenced && report.Replayed > 20
	})
	after := stocktest.Balanced(t, replica, store, "s")
	for _, field := range []string{"beat", "clock", "fenced", "replid", "run_id", "term", "terms"} { // of the server
		delete(before.Meta, field)
		delete(after.Meta, field)
	}
	if err := after.Differs(before); err != nil {
		t.Error(err)
	}
}

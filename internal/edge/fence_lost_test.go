package edge_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/edge/fence"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// linked is an edge with a link of its own.
type linked struct {
	*edge.Edge
	*stocktest.Network
	stocktest.Counter
	log *observer.ObservedLogs
}

// link starts an edge on the primary.
func (p *pair) link() *linked {
	p.t.Helper()
	core, log := observer.New(zapcore.InfoLevel)
	l := &linked{Network: &stocktest.Network{Addr: p.primary.Addr()}, log: log}
	p.t.Cleanup(func() {
		for _, e := range log.All() {
			p.t.Log(l.Leases().ID(), e.Message, e.ContextMap())
		}
	})
	o := stocktest.Options(p.primary)
	o.Dialer = l.Dial
	l.Edge = stocktest.NewEdge(p.t, o, edge.Options{Log: zap.New(core), Metrics: &l.Counter})
	l.Start()
	stocktest.Look(p.t, l.Edge)
	stocktest.Eventually(p.t, "an edge that follows the journal", func() bool { _, ok := l.Followed("s"); return ok })
	return l
}

// read waits until an edge has read what it was promised.
func (p *pair) read(l *linked) {
	p.t.Helper()
	stocktest.Eventually(p.t, "an edge that has read everything", func() bool {
		seq, ok := l.Followed("s")
		return ok && seq == l.Store.Shard().Seq("s")
	})
}

// holds waits until an edge holds a unit again, and returns the reservation. Each try has an id of
// its own: what failed is released.
func (p *pair) holds(l *linked, name string) (id string) {
	p.t.Helper()
	n := 0
	stocktest.Eventually(p.t, "an edge that sells again", func() bool {
		n++
		id = fmt.Sprint(name, "-", n)
		_, no, err := stocktest.Hold(stocktest.Soon(p.t), l.Edge, id, id, 1)
		if no != nil {
			p.t.Fatalf("refused: %+v", no)
		}
		return err == nil
	})
	return id
}

// replicas waits until all replicas have everything.
func (p *pair) replicas(l *linked) {
	p.t.Helper()
	stocktest.Replicated(p.t, l.Store.Shard())
}

// become makes a replica a primary, or keeps it from every primary.
func (p *pair) become(s *redistest.Server, of ...any) {
	p.t.Helper()
	if err := s.Client().Do(stocktest.Soon(p.t), append([]any{"REPLICAOF"}, of...)...).Err(); err != nil {
		p.t.Fatal(err)
	}
}

// states checks the states of reservations in a store.
func (p *pair) states(s *reservation.Store, want map[string]record.State) {
	p.t.Helper()
	for _, id := range slices.Sorted(maps.Keys(want)) {
		if got := stocktest.State(p.t, s, id); got != want[id] {
			p.t.Errorf("%s is %q, want %q", id, got, want[id])
		}
	}
}

// said reports whether an error in the log has a message and these texts.
func (l *linked) said(message string, texts ...string) bool {
	return slices.ContainsFunc(l.log.All(), func(e observer.LoggedEntry) bool {
		fields := fmt.Sprint(e.ContextMap())
		return e.Level == zapcore.ErrorLevel && strings.Contains(e.Message, message) &&
			!slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(fields, text) })
	})
}

// An edge that sold what no other process knows does not come: the sale goes on without it, and
// log, metrics and report name it and the number after which it may know more. When it comes
// at last, what can be had is held again, and orders whose units are gone are unbacked.
func TestEdgeThatComesLate(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	a, b := p.link(), p.link()
	stocktest.MustHold(t, a.Edge, "r1", "Ann", 1)
	stocktest.MustHold(t, b.Edge, "r2", "Bob", 1)
	p.replicas(a)
	p.stall()
	base := b.Store.Shard().Seq("s")
	a.Cut()
	stocktest.MustHold(t, b.Edge, "b1", "Cid", 3)
	stocktest.MustHold(t, b.Edge, "b2", "Dan", 1)
	stocktest.MustHold(t, b.Edge, "b3", "Eve", 1)
	for _, id := range []string{"b1", "b3", "r2"} {
		if _, err := b.ConfirmEventually(stocktest.Soon(t), "s", id, ""); err != nil {
			t.Fatal(err)
		}
	}
	b.Cut()
	p.primary.Kill()
	killed := time.Now()
	p.promote()
	a.Lead(p.replica.Addr())
	stocktest.GiveUp(t, a.Edge, b.Edge)
	p.holds(a, "a1")

	r, err := fence.Read(stocktest.Soon(t), a.Store.Shard(), "s")
	if err != nil || r.Fenced || r.Absent != 1 || len(r.Edges) != 1 || r.Edges[0].ID != b.Leases().ID() || r.Base != base {
		t.Errorf("%+v, %v; want the edge %s and the number %d", r, err, b.Leases().ID(), base)
	}
	if at := r.Edges[0].Heard; !at.Before(killed) {
		t.Errorf("the edge was heard at %v, after its server was gone at %v", at, killed)
	}
	if n := a.Absent.Load(); n != 1 {
		t.Errorf("%d edges are counted that did not come", n)
	}
	if !a.said("the sale goes on without what redis may have lost", b.Leases().ID(), fmt.Sprint("number:", base)) {
		t.Errorf("the log does not name the edge: %v", a.log.All())
	}
	p.states(a.Store, map[string]record.State{"r1": record.Held, "r2": record.Held, "b1": "", "b2": "", "b3": ""})

	stocktest.MustHold(t, a.Edge, "rest", "Fay", stocktest.CellA(t, a.Store).Available-2)
	b.Lead(p.replica.Addr())
	stocktest.Eventually(t, "what the late edge was promised", func() bool { return b.Lacking.Load() > 0 })
	p.states(a.Store, map[string]record.State{"b1": record.Unbacked, "b2": record.Held, "b3": record.Confirmed, "r2": record.Confirmed, "rest": record.Held})
	if !b.said("redis has lost reservations whose units other buyers have by now", "b1") || b.said("redis has lost reservations whose units", "b2") {
		t.Errorf("the log of the late edge: %v", b.log.All())
	}
	if s, err := a.Store.SaleStock(stocktest.Soon(t), "s"); err != nil || s.Unbacked != 1 {
		t.Errorf("%d orders are unbacked, want 1, %v", s.Unbacked, err)
	}
	stocktest.Balanced(t, p.replica.Client(), a.Store, "s")
}

// An operator ends a fence that does not end by itself. What the edges were promised is told
// again; a sale that is not fenced does not change.
func TestUnfenceByHand(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	still := stocktest.NewEdge(t, stocktest.Options(p.primary), edge.Options{}) // it never starts
	unchanged := func(what string, s *redistest.Server) {
		t.Helper()
		keys := still.Store.Shard().FenceKeys("s")
		before := dump(t, s, keys)
		if was, err := still.Leases().Resume(stocktest.Soon(t), "s"); was || err != nil {
			t.Errorf("%s: it was fenced: %v, %v", what, was, err)
		}
		if after := dump(t, s, keys); !slices.Equal(after, before) {
			t.Errorf("%s: before %q, after %q", what, before, after)
		}
	}
	unchanged("a sale without a term", p.primary)
	e := stocktest.NewEdge(t, stocktest.Options(p.primary), edge.Options{})
	e.Start()
	stocktest.Look(t, e)
	stocktest.MustHold(t, e, "r0", "Ann", 1)
	if err := e.Stop(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	unchanged("a sale that is sold", p.primary)

	a := p.link()
	stocktest.MustHold(t, a.Edge, "r1", "Ann", 1)
	p.replicas(a)
	p.stall()
	l, _ := a.Catalogue().Sale("s")
	file := *l.Sale
	file.Items = slices.Clone(file.Items)
	file.Items[0].Stock++
	stocktest.Apply(t, a.Edge, &file)
	stocktest.MustHold(t, a.Edge, "r2", "Bob", 1)
	p.read(a)
	p.primary.Kill()
	p.promote()
	a.Lead(p.replica.Addr())
	stocktest.GiveUp(t, a.Edge) // the replica may not have heard that an edge has stopped
	stocktest.Eventually(t, "a fence that does not end by itself", func() bool {
		s := a.Leases().States()
		return len(s) == 1 && s[0].Stuck > 0
	})
	if was, err := a.Leases().Resume(stocktest.Soon(t), "s"); !was || err != nil {
		t.Fatalf("it was fenced: %v, %v", was, err)
	}
	p.holds(a, "x")
	stocktest.Eventually(t, "what was promised before", func() bool { return stocktest.State(t, a.Store, "r2") == record.Held })
	p.states(a.Store, map[string]record.State{"r0": record.Held, "r1": record.Held})
	stocktest.Balanced(t, p.replica.Client(), a.Store, "s")
}

// dump is what keys have.
func dump(t *testing.T, s *redistest.Server, keys []string) (all []string) {
	t.Helper()
	for _, key := range keys {
		text, err := s.Client().Dump(stocktest.Soon(t), key).Result()
		if err != nil && err.Error() != "redis: nil" {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	return all
}

// One edge sold from a primary that was cut off, another from its successor, under the same
// numbers. A third server gets the history of the newer term, and what the first edge was
// promised is held under other numbers.
func TestContradictedHistories(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	third := stocktest.Replica(t, p.primary)
	x, y := p.link(), p.link()
	stocktest.MustHold(t, x.Edge, "r1", "Ann", 1)
	stocktest.MustHold(t, y.Edge, "r2", "Bob", 1)
	p.replicas(x)
	p.read(y)
	p.stall()
	p.become(third, "127.0.0.1", "1")
	y.Cut()
	want := map[string]record.State{"r1": record.Held, "r2": record.Held}
	for i := range 3 {
		id := fmt.Sprint("x", i)
		stocktest.MustHold(t, x.Edge, id, id, 2)
		want[id] = record.Held
	}
	p.read(x)
	x.Cut()
	p.promote()
	y.Lead(p.replica.Addr())
	stocktest.GiveUp(t, y.Edge, x.Edge)
	for i := range 5 {
		want[p.holds(y, fmt.Sprint("y", i))] = record.Held
	}
	p.read(y)
	second := stocktest.Balanced(t, p.replica.Client(), y.Store, "s")
	y.Cut()
	p.primary.Kill()
	p.replica.Kill()
	p.become(third, "NO", "ONE")
	x.Lead(third.Addr())
	y.Lead(third.Addr())
	p.holds(x, "x9")
	p.holds(y, "y9")
	stocktest.Eventually(t, "all that was promised", func() bool { return stocktest.State(t, x.Store, "x2") != "" })
	p.states(x.Store, want)
	now := stocktest.Balanced(t, third.Client(), x.Store, "s")
	for i, e := range second.Journal {
		if got := now.Journal[i]; got.ID != e.ID || got.Kind != e.Kind {
			t.Errorf("movement %d is %s %s, and was %s %s on the second server", i+1, got.Kind, got.ID, e.Kind, e.ID)
		}
	}
}

// Two replicas were promoted at the same time, and an edge sold from each. When the first is
// gone, its edge tells the other server what it was promised under numbers that are taken.
func TestTwoPrimaries(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	third := stocktest.Replica(t, p.primary)
	x, y := p.link(), p.link()
	stocktest.MustHold(t, x.Edge, "r1", "Ann", 1)
	stocktest.MustHold(t, y.Edge, "r2", "Bob", 1)
	p.replicas(x)
	p.primary.Kill()
	x.Cut()
	y.Cut()
	p.promote()
	p.become(third, "NO", "ONE")
	x.Lead(p.replica.Addr())
	y.Lead(third.Addr())
	stocktest.GiveUp(t, x.Edge, y.Edge)
	stocktest.GiveUp(t, y.Edge, x.Edge)
	want := map[string]record.State{"r1": record.Held, "r2": record.Held}
	want[p.holds(x, "x1")] = record.Held
	last := p.holds(x, "x2")
	want[last] = record.Held
	for i := range 5 {
		want[p.holds(y, fmt.Sprint("y", i))] = record.Held
	}
	x.Cut()
	p.replica.Kill()
	x.Lead(third.Addr())
	p.holds(x, "x9")
	stocktest.Eventually(t, "what the first edge was promised", func() bool { return stocktest.State(t, y.Store, last) != "" })
	p.states(y.Store, want)
	stocktest.Balanced(t, third.Client(), y.Store, "s")
}

// A primary sold something that no edge but a lost one heard of. Its history comes back after its
// successor was lost: the log says so, an operator decides, and what was promised is told again.
func TestTheOldHistoryComesBack(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	third := stocktest.Replica(t, p.primary)
	x, lost := p.link(), p.link()
	stocktest.MustHold(t, x.Edge, "r1", "Ann", 1)
	p.replicas(x)
	p.stall()
	x.Cut()
	stocktest.MustHold(t, lost.Edge, "lost", "Bob", 1)
	stocktest.Eventually(t, "a replica that has it", func() bool {
		seq, err := third.Client().HGet(stocktest.Soon(t), lost.Store.Shard().ShardKeys("s")[0], "seq").Int64()
		return err == nil && seq == lost.Store.Shard().Seq("s")
	})
	lost.Cut()
	p.primary.Kill()
	p.promote()
	x.Lead(p.replica.Addr())
	stocktest.GiveUp(t, x.Edge, lost.Edge)
	id := p.holds(x, "x1")
	x.Cut()
	p.replica.Kill()
	p.become(third, "NO", "ONE")
	x.Lead(third.Addr())
	stocktest.Eventually(t, "a fence that does not end by itself", func() bool {
		s := x.Leases().States()
		return len(s) == 1 && s[0].Stuck > 0 && s[0].Contradicted
	})
	if !x.said("redis has other movements than the edges know") || x.said("does not tell in full") {
		t.Errorf("the log: %v", x.log.All())
	}
	if was, err := x.Leases().Resume(stocktest.Soon(t), "s"); !was || err != nil {
		t.Fatalf("it was fenced: %v, %v", was, err)
	}
	p.holds(x, "x9")
	p.states(x.Store, map[string]record.State{"r1": record.Held, "lost": record.Held, id: record.Held})
	stocktest.Balanced(t, third.Client(), x.Store, "s")
}

// The server that was promoted dies while it waits for an edge: the next one begins a fence of
// its own, and gets everything.
func TestFencedTwice(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	third := stocktest.Replica(t, p.primary)
	a, b := p.link(), p.link()
	stocktest.MustHold(t, a.Edge, "r1", "Ann", 1)
	stocktest.MustHold(t, b.Edge, "r2", "Bob", 1)
	p.replicas(a)
	p.stall()
	p.become(third, "127.0.0.1", "1")
	const more = 201 // than one call of lua/fence.lua applies
	want := map[string]record.State{"r1": record.Confirmed, "r2": record.Held}
	for i := range more {
		id := fmt.Sprint("a", i)
		stocktest.MustHold(t, a.Edge, id, id, 1)
		want[id] = record.Held
	}
	b.Cut()
	if _, err := a.ConfirmEventually(stocktest.Soon(t), "s", "r1", ""); err != nil {
		t.Fatal(err)
	}
	p.read(a)
	p.primary.Kill()
	p.promote()
	a.Lead(p.replica.Addr())
	first := stocktest.OpenStore(t, stocktest.Options(p.replica))
	var before fence.Report
	stocktest.Eventually(t, "a fence that waits", func() bool {
		r, err := fence.Read(stocktest.Soon(t), first.Shard(), "s")
		before = r
		return err == nil && r.Fenced && len(r.Edges) == 1
	})
	if before.Edges[0].ID != b.Leases().ID() {
		t.Errorf("the fence waits for %s", before.Edges[0].ID)
	}
	p.replica.Kill()
	p.become(third, "NO", "ONE")
	a.Lead(third.Addr())
	b.Lead(third.Addr())
	p.holds(a, "x")
	p.holds(b, "y")
	p.states(a.Store, want)
	r, err := fence.Read(stocktest.Soon(t), a.Store.Shard(), "s")
	if err != nil || r.Fenced || r.Absent+r.Missing != 0 || r.Replayed != more+1 {
		t.Errorf("%+v, %v", r, err)
	}
	stocktest.Balanced(t, third.Client(), a.Store, "s")
}

package risk_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/edge/risk"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/ports"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// pair is a primary and a replica, with an open sale of 1,000 units.
type pair struct {
	t                *testing.T
	primary, replica *redistest.Server
}

func newPair(t *testing.T) *pair {
	p := &pair{t: t, primary: redistest.Start(t)}
	p.replica = stocktest.Replica(t, p.primary)
	stocktest.Load(t, stocktest.OpenStore(t, stocktest.Options(p.primary)), stocktest.OpenSale("s", 1000))
	return p
}

// edge starts an edge, and waits until it knows what is at risk.
func (p *pair) edge(o edge.Options) *edge.Edge {
	p.t.Helper()
	e := p.started(o)
	p.eventually(e, 0)
	return e
}

func (p *pair) started(o edge.Options) *edge.Edge {
	p.t.Helper()
	e := stocktest.NewEdge(p.t, stocktest.Options(p.primary), o)
	stocktest.Look(p.t, e)
	e.Start()
	return e
}

func (p *pair) eventually(e *edge.Edge, units int64) {
	p.t.Helper()
	stocktest.Eventually(p.t, fmt.Sprint(units, " units at risk"), func() bool {
		s := e.AtRisk("s")
		return s.Units == units && !s.Partial
	})
}

func (p *pair) is(e *edge.Edge, units int64) {
	p.t.Helper()
	if s := e.AtRisk("s"); s.Units != units {
		p.t.Errorf("%d units are at risk, want %d", s.Units, units)
	}
}

// sells reserves units as soon as there is room for them, and no fence.
func (p *pair) sells(e *edge.Edge, id string, units int64) {
	p.t.Helper()
	n := 0 // a hold that was not heard in time is given up
	stocktest.Eventually(p.t, "a hold", func() bool {
		n++
		_, no, err := stocktest.Hold(stocktest.Soon(p.t), e, fmt.Sprint(id, "-", n), "Ann", units)
		return err == nil && no == nil
	})
}

// beats waits for more heartbeats.
func (p *pair) beats(n int) {
	p.t.Helper()
	// each question is an INFO too
	asked, began := 0, p.calls("info")
	stocktest.Eventually(p.t, "heartbeats", func() bool { asked++; return p.calls("info")-began-asked >= n })
}

// calls is how often the primary was sent a command, which it has answered.
func (p *pair) calls(command string) int {
	p.t.Helper()
	info, err := p.primary.Client().Info(stocktest.Soon(p.t), "commandstats").Result()
	if err != nil {
		p.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(info, "cmdstat_"+command+":calls=")
	number, _, _ := strings.Cut(rest, ",")
	calls, _ := strconv.Atoi(number)
	return calls
}

// What was sold is at risk at once, on the edge that sold it, and soon on the others; until
// the replica has it.
func TestUnitsAtRisk(t *testing.T) {
	p := newPair(t)
	e := p.edge(edge.Options{})
	stocktest.MustHold(t, e, "before", "Ann", 4)
	p.eventually(e, 0)
	other := p.edge(edge.Options{})
	p.replica.Pause()
	for i := range int64(5) {
		stocktest.MustHold(t, e, fmt.Sprint("r", i), "Ann", 2)
		p.is(e, 2*(i+1))
	}
	p.eventually(other, 10)
	stocktest.MustHold(t, other, "x", "Bob", 3)
	p.eventually(e, 13)
	if age := e.AtRisk("s").Age; age <= 0 {
		t.Errorf("the oldest has been at risk for %v", age)
	}
	late := p.started(edge.Options{})
	p.beats(2)
	if !late.AtRisk("s").Partial {
		t.Error("an edge that comes late says that it knows all that is at risk")
	}
	p.replica.Resume()
	for _, e := range []*edge.Edge{e, other, late} {
		p.eventually(e, 0)
		if age := e.AtRisk("s").Age; age != 0 {
			t.Errorf("nothing has been at risk for %v", age)
		}
	}
}

// A release gives units back on the primary; a failover may still lose both. A confirm is no
// second sale.
func TestWhatCountsAsSold(t *testing.T) {
	p := newPair(t)
	e := p.edge(edge.Options{})
	p.replica.Pause()
	stocktest.MustHold(t, e, "r1", "Ann", 1)
	stocktest.MustHold(t, e, "r2", "Ann", 2)
	if _, err := e.ConfirmEventually(stocktest.Soon(t), "s", "r1", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := e.ReleaseEventually(stocktest.Soon(t), "s", "r2", reservation.SourceShop, ""); err != nil {
		t.Fatal(err)
	}
	if err := stocktest.EveryOperation("r1", "r2", "r3", "r4", "r5", "r6")["recreate"](stocktest.Soon(t), e); err != nil {
		t.Fatal(err)
	}
	p.eventually(e, 4)
	p.replica.Resume()
	p.eventually(e, 0)
}

// What the ledger has is safe.
func TestTheLedgerCounts(t *testing.T) {
	p := newPair(t)
	e := p.edge(edge.Options{})
	p.replica.Pause()
	stocktest.MustHold(t, e, "r1", "Ann", 1)
	h, err := e.Store.Journal().Head(stocktest.Soon(t), "s")
	if err != nil {
		t.Fatal(err)
	}
	stocktest.MustHold(t, e, "r2", "Ann", 2)
	p.beats(1)
	p.is(e, 3)
	if err := e.Store.Journal().Acknowledge(stocktest.Soon(t), "s", h.Epoch, h.Last); err != nil {
		t.Fatal(err)
	}
	p.eventually(e, 2)
	p.replica.Resume()
	p.eventually(e, 0)
}

// A replica that has left may still be promoted: it lacks what was sold since.
func TestAReplicaThatHasLeft(t *testing.T) {
	p := newPair(t)
	e := p.edge(edge.Options{})
	stocktest.MustHold(t, e, "before", "Ann", 1)
	p.eventually(e, 0)
	p.replica.Stop()
	c := p.primary.Client()
	stocktest.Eventually(t, "no replica", func() bool {
		info, err := c.Info(stocktest.Soon(t), "replication").Result()
		return err == nil && strings.Contains(info, "connected_slaves:0")
	})
	stocktest.MustHold(t, e, "r1", "Ann", 1)
	p.beats(2)
	p.is(e, 1)
	p.replica.Restart()
	p.eventually(e, 0)
}

// What a failover has lost is no longer at risk, and the sale goes on at the new primary.
func TestALossyFailover(t *testing.T) {
	p := newPair(t)
	net := &stocktest.Network{Addr: p.primary.Addr()}
	o := stocktest.Options(p.primary)
	o.Dialer = net.Dial
	e := stocktest.NewEdge(t, o, edge.Options{AtRisk: risk.Bound{Units: 5}})
	stocktest.Look(t, e)
	e.Start()
	p.sells(e, "before", 1) // a replica that has heard of no edge waits for any that may be
	p.eventually(e, 0)
	c := p.replica.Client()
	if err := c.ReplicaOf(stocktest.Soon(t), "127.0.0.1", "1").Err(); err != nil { // it keeps what it has
		t.Fatal(err)
	}
	stocktest.MustHold(t, e, "lost", "Ann", 5)
	p.is(e, 5)
	p.primary.Kill()
	if err := c.ReplicaOf(stocktest.Soon(t), "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	net.Lead(p.replica.Addr())
	p.eventually(e, 0)
	p.sells(e, "next", 5)
	p.eventually(e, 0)
}

// Without a replica none can take over, and nothing that is sold is at risk, at no moment; with the
// first one it is.
func TestWithoutAReplica(t *testing.T) {
	p := &pair{t: t, primary: redistest.Start(t)}
	stocktest.Load(t, stocktest.OpenStore(t, stocktest.Options(p.primary)), stocktest.OpenSale("s", 100_000))
	e := p.edge(edge.Options{})
	for i := range 4 {
		stocktest.MustHold(t, e, fmt.Sprint("r", i), "Ann", 2)
		p.is(e, 0)
	}
	p.replica = stocktest.Replica(t, p.primary)
	n := 0
	stocktest.Eventually(t, "a heartbeat that waits for the replica", func() bool {
		n++ // no heartbeat comes where nothing is at risk
		_, no, err := stocktest.Hold(stocktest.Soon(t), e, fmt.Sprint("x", n), "Ann", 1)
		if no != nil || err != nil && !errors.Is(err, shard.ErrNoLease) { // the first replica begins another term: an answer of the moment may not count
			t.Fatal(no, err)
		}
		return p.calls("wait") > 0
	})
	p.eventually(e, 0) // the replica has it
	p.replica.Pause()
	stocktest.MustHold(t, e, "y", "Ann", 1)
	p.is(e, 1)
	p.replica.Resume()
	p.eventually(e, 0)
}

// The embedded server has no replicas.
func TestTheEmbeddedServer(t *testing.T) {
	e := stocktest.Selling(t, stocktest.Options(redistest.Embedded(t)), 5)
	e.Start()
	stocktest.MustHold(t, e, "r1", "Ann", 1)
	if s := e.AtRisk("s"); s != (risk.State{}) {
		t.Errorf("%+v", s)
	}
}

// In a cluster each sale's own server counts.
func TestUnitsAtRiskInACluster(t *testing.T) {
	start := func(bus string) *redistest.Server {
		return redistest.Start(t, redistest.Config("cluster-enabled yes", "cluster-port "+bus, "cluster-node-timeout 60000"))
	}
	bus := ports.For(t)
	p := &pair{t: t, primary: start(bus), replica: start(ports.For(t))}
	c, r := p.primary.Client(), p.replica.Client()
	if err := c.ClusterAddSlotsRange(stocktest.Soon(t), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	host, port, _ := strings.Cut(p.primary.Addr(), ":")
	if err := r.Do(stocktest.Soon(t), "CLUSTER", "MEET", host, port, bus).Err(); err != nil {
		t.Fatal(err)
	}
	id := c.ClusterMyID(stocktest.Soon(t)).Val()
	stocktest.Eventually(t, "a replica that knows its primary", func() bool { return r.ClusterReplicate(stocktest.Soon(t), id).Err() == nil })
	stocktest.Eventually(t, "a cluster with a replica", func() bool {
		info, err := c.ClusterInfo(stocktest.Soon(t)).Result()
		follows, err2 := c.Info(stocktest.Soon(t), "replication").Result()
		return err == nil && err2 == nil && strings.Contains(info, "cluster_state:ok") && strings.Contains(follows, "state=online")
	})
	o := stocktest.Options(p.primary)
	o.Cluster = true
	stocktest.Load(t, stocktest.OpenStore(t, o), stocktest.OpenSale("s", 1000))
	e := stocktest.NewEdge(t, o, edge.Options{AtRisk: risk.Bound{Units: 5}})
	stocktest.Look(t, e)
	e.Start()
	p.sells(e, "before", 1) // a client of a cluster asks any node for its commands
	p.eventually(e, 0)
	p.replica.Pause()
	stocktest.MustHold(t, e, "r1", "Ann", 5)
	p.beats(2)
	p.is(e, 5)
	if _, no, err := stocktest.Hold(stocktest.Soon(t), e, "r2", "Ann", 1); err != nil || no == nil || no.Reason != sale.Unavailable {
		t.Errorf("beyond the bound: %+v, %v", no, err)
	}
	p.replica.Resume()
	p.eventually(e, 0)
	if n := c.Exists(stocktest.Soon(t), "stockgate:{s.0}:heartbeat").Val(); n != 1 {
		t.Error("nothing was written that reaches the replicas")
	}
}

// At the bound reserves are unavailable, none too early and none too late; when the replica
// catches up they go on. The log says each once.
func TestAtRiskBoundsUnits(t *testing.T) {
	p := newPair(t)
	core, logged := observer.New(zap.InfoLevel)
	e := p.edge(edge.Options{AtRisk: risk.Bound{Units: 5}, Log: zap.New(core)})
	p.replica.Pause()
	for i := range 8 {
		_, no, err := stocktest.Hold(stocktest.Soon(t), e, fmt.Sprint("r", i), "Ann", 1)
		if err != nil || (no != nil) != (i >= 5) || no != nil && no.Reason != sale.Unavailable {
			t.Errorf("reserve %d: %+v, %v", i, no, err)
		}
	}
	if s := e.AtRisk("s"); s.Units != 5 || !s.Stopped {
		t.Errorf("%+v", s)
	}
	if n := e.Backlog(); n != 0 {
		t.Errorf("%d outcomes wait, and nothing was sent", n)
	}
	// what was sold is settled all the same
	if _, err := e.ConfirmEventually(stocktest.Soon(t), "s", "r0", ""); err != nil {
		t.Error(err)
	}
	p.replica.Resume()
	stocktest.Eventually(t, "a sale that goes on", func() bool { return !e.AtRisk("s").Stopped })
	for i := range 20 {
		p.sells(e, fmt.Sprint("again", i), 1)
	}
	stocktest.Eventually(t, "the end in the log", func() bool { return logged.FilterMessage("selling: the replicas have what was sold").Len() == 1 })
	if n := logged.FilterMessageSnippet("not selling: as much is at risk as at_risk allows").Len(); n < 1 {
		t.Errorf("the beginning was logged %d times", n)
	}
	if _, no, err := stocktest.Hold(stocktest.Soon(t), e, "large", "Ann", 6); err != nil || no == nil || no.Reason != sale.Unavailable {
		t.Errorf("more units than the bound: %+v, %v", no, err)
	}
}

// A crowd gets no more than the bound either: each edge has one batch of a sale under way,
// and sends only what there is room for.
func TestAtRiskBoundsACrowd(t *testing.T) {
	p := newPair(t)
	const edges, bound, each = 2, 20, 150
	var all []*edge.Edge
	for range edges {
		all = append(all, p.edge(edge.Options{AtRisk: risk.Bound{Units: bound}}))
	}
	p.replica.Pause()
	var sold [edges]atomic.Int64
	var crowd sync.WaitGroup
	for n, e := range all {
		for i := range each {
			crowd.Go(func() {
				_, no, err := stocktest.Hold(context.Background(), e, fmt.Sprintf("%d-%d", n, i), fmt.Sprint(i), 1)
				if err != nil {
					t.Error(err)
				} else if no == nil {
					sold[n].Add(1)
				}
			})
		}
	}
	crowd.Wait()
	total := int64(0)
	for n := range all {
		if got := sold[n].Load(); got > bound {
			t.Errorf("edge %d has sold %d units, want at most %d", n, got, bound)
		}
		total += sold[n].Load()
	}
	if total < bound {
		t.Errorf("only %d units were sold, want at least %d", total, bound)
	}
	for _, e := range all {
		p.eventually(e, total)
	}
	p.replica.Resume()
	for n, e := range all {
		p.eventually(e, 0)
		stocktest.MustHold(t, e, fmt.Sprint("after", n), "Ann", 1)
	}
}

// A replica that keeps up stops nothing, however small the bound: a batch that finds no room
// waits for a heartbeat.
func TestAReplicaThatKeepsUp(t *testing.T) {
	p := newPair(t)
	e := p.edge(edge.Options{AtRisk: risk.Bound{Units: 2}})
	for i := range 100 {
		p.sells(e, fmt.Sprint("r", i), 2)
	}
}

func TestAtRiskBoundsAge(t *testing.T) {
	p := newPair(t)
	e := p.edge(edge.Options{AtRisk: risk.Bound{Age: time.Second}})
	p.replica.Pause()
	n := 0
	stocktest.Eventually(t, "the bound", func() bool {
		n++
		_, no, err := stocktest.Hold(stocktest.Soon(t), e, fmt.Sprint("r", n), "Ann", 1)
		if err != nil {
			t.Fatal(err)
		}
		if age := e.AtRisk("s").Age; no == nil && age > 2*time.Second && n > 1 {
			t.Logf("sold %v after the oldest unit at risk", age) // a busy machine: the answer came late
		}
		return no != nil
	})
	if s := e.AtRisk("s"); s.Age < time.Second || !s.Stopped {
		t.Errorf("it stops at %+v", s)
	}
	p.replica.Resume()
	stocktest.Eventually(t, "a sale that goes on", func() bool { return !e.AtRisk("s").Stopped })
	stocktest.MustHold(t, e, "after", "Ann", 1)
}

// A user without the right to WAIT is told so, and with a bound nothing is sold.
func TestWithoutTheRight(t *testing.T) {
	p := newPair(t)
	if err := p.primary.Client().Do(stocktest.Soon(t), "ACL", "SETUSER", "gate", "on", ">word", "~stockgate:*", "&stockgate:*", "+@all", "-wait").Err(); err != nil {
		t.Fatal(err)
	}
	o := stocktest.Options(p.primary)
	o.Username, o.Password = "gate", "word"
	core, logged := observer.New(zap.WarnLevel)
	e := stocktest.NewEdge(t, o, edge.Options{AtRisk: risk.Bound{Units: 5}, Log: zap.New(core)})
	stocktest.Look(t, e)
	e.Start()
	stocktest.Eventually(t, "a warning", func() bool { return logged.FilterMessageSnippet("units at risk are not known").Len() == 1 })
	if _, no, err := stocktest.Hold(stocktest.Soon(t), e, "r1", "Ann", 1); err != nil || no == nil || no.Reason != sale.Unavailable {
		t.Errorf("%+v, %v", no, err)
	}
	if s := e.AtRisk("s"); s.Err == nil || !strings.Contains(s.Err.Error(), "its user may not run what stockgate needs") || !s.Partial {
		t.Errorf("%+v", s)
	}
	if err := p.primary.Client().Do(stocktest.Soon(t), "ACL", "SETUSER", "gate", "+wait").Err(); err != nil {
		t.Fatal(err)
	}
	p.eventually(e, 0)
	p.sells(e, "r2", 1)
}

// What counting costs for each batch of reserve requests, and asking for room where there is
// no bound.
func BenchmarkSold(b *testing.B) {
	tracker := risk.New(stocktest.OpenStore(b, shard.Options{Addresses: []string{"127.0.0.1:1"}}).Shard(), risk.Bound{}, zap.NewNop())
	tracker.Began("s", "e", 0, 0)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if tracker.Admit(context.Background(), "s", 128, nil) == nil {
				tracker.Sold("s", 1, 1)
			}
		}
	})
}

// What a reserve costs on a server without replicas, from one caller and from many.
func BenchmarkReserve(b *testing.B) {
	server := redistest.Start(b)
	e := stocktest.NewEdge(b, stocktest.Options(server), edge.Options{})
	stocktest.Load(b, e.Store, stocktest.OpenSale("s", 1_000_000_000))
	if err := e.Refresh(stocktest.Soon(b)); err != nil {
		b.Fatal(err)
	}
	e.Start()
	var n atomic.Int64
	hold := func() {
		if _, no, err := stocktest.Hold(context.Background(), e, fmt.Sprint("r", n.Add(1)), "Ann", 1); err != nil || no != nil {
			b.Error(no, err)
		}
	}
	b.Run("one", func(b *testing.B) {
		for range b.N {
			hold()
		}
	})
	b.Run("many", func(b *testing.B) {
		b.SetParallelism(64)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				hold()
			}
		})
	})
}

package queue_test

import (
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// named waits until a fence of a server waits for an edge.
func (s *shop) named(server *redistest.Server, edge string) {
	s.t.Helper()
	meta := s.Store.Shard().ShardKeys("s")[shard.MetaKey]
	stocktest.Eventually(s.t, "a fence that waits for the edge", func() bool {
		absent, err := server.Client().HGet(stocktest.Soon(s.t), meta, "absent").Result()
		return err == nil && strings.Contains(absent, edge)
	})
}

// Edges come to a fence one after the other. What waits and what is at the shop for an edge that came
// later stays as it is: nothing of it is lost.
func TestFencedFailoverToWhichAllCome(t *testing.T) {
	t.Parallel()
	primary, replica, link := failover(t)
	a, toA := link("A")
	a.queue.Edge = a.Leases().ID()
	b, toB := link("B")
	b.queue.Edge = b.Leases().ID()
	b.line("b1", "b2")
	a.line("a1")
	a.gets(a.queue.Edge)
	b.gets(b.queue.Edge)
	stocktest.Replicated(t, a.Store.Shard())
	toB.Cut()
	primary.Kill()
	if err := replica.Client().Do(stocktest.Soon(t), "REPLICAOF", "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	toA.Cut()
	toA.Lead(replica.Addr())
	a.named(replica, b.queue.Edge)
	toB.Lead(replica.Addr())
	for _, s := range []*shop{a, b} {
		s.over()
	}
	a.gets(a.queue.Edge)
	for id, want := range map[string]record.State{"b1": record.Held, "b2": record.Waiting, "a1": record.Waiting} {
		if p := a.place(id); p.State != want {
			t.Errorf("%s is %+v, want %s: its edge came", id, p, want)
		}
	}
	b.confirm("b1")
	b.gets(b.queue.Edge, "b2 1")
	stocktest.Balanced(t, replica.Client(), a.Store, "s")
}

// An edge has an order sent, comes to the fence, and stops before it can tell that again. The new
// server lacks it: the order is in doubt, and no other edge sends it.
func TestASenderThatStopsInTheFence(t *testing.T) {
	t.Parallel()
	primary, replica, link := failover(t)
	a, toA := link("A")
	a.queue.Edge = a.Leases().ID()
	b, toB := link("B")
	b.queue.Edge = b.Leases().ID()
	c, toC := link("C")
	c.queue.Edge = c.Leases().ID()
	b.line("b1", "b2")
	for _, s := range []*shop{a, b, c} {
		s.gets(s.queue.Edge)
	}
	stocktest.Replicated(t, a.Store.Shard())
	b.blind(primary, replica)
	b.confirm("b1")
	b.gets(b.queue.Edge, "b2 1")
	b.mustSend("b2", 1)
	toC.Cut() // the fence waits for it
	primary.Kill()
	if err := replica.Client().Do(stocktest.Soon(t), "REPLICAOF", "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	toA.Cut()
	toB.Cut()
	toB.Lead(replica.Addr())
	reports := a.Store.Shard().FenceKeys("s")[shard.EdgesKey+1]
	stocktest.Eventually(t, "the report of an edge", func() bool {
		said, err := replica.Client().HGet(stocktest.Soon(t), reports, b.queue.Edge).Result()
		return err == nil && strings.HasPrefix(said, "ready")
	})
	toB.Cut()
	toA.Lead(replica.Addr())
	stocktest.GiveUp(t, a.Edge, b.Edge, c.Edge)
	stocktest.Eventually(t, "a fence that does not wait for what B has to tell", func() bool {
		r, _, _, err := a.Store.Shard().Beat(stocktest.Soon(t), "s", &shard.Beat{Edge: a.queue.Edge, Does: "beat"})
		return err == nil && r.Code() == "ok"
	})
	a.over()
	a.gets(a.queue.Edge)
	if got := a.state("b2"); got != record.InDoubt {
		t.Errorf("b2 is %s, and the edge that stopped has sent it", got)
	}
	stocktest.Balanced(t, replica.Client(), a.Store, "s")
}

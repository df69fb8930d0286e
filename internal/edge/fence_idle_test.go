package edge_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// edgesKey is the hash of the edges that were heard, see lua/fence.lua.
func edgesKey(c *shard.Client) string {
	return strings.TrimSuffix(c.ShardKeys("s")[shard.MetaKey], "meta") + "edges"
}

// An edge says that it lives before it sells: a replica that was cut off before the first buyer
// came waits for it all the same.
func TestAReplicaThatMissedAllSales(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	e := p.edge(p.options())
	p.heard(e)
	stocktest.Replicated(t, e.Store.Shard())
	p.stall()
	p.keeps(e, func(*edge.Edge) {})
}

// So does one that has not even heard that the sale has a fence: the edge knows it.
func TestAReplicaWithoutATerm(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.keeps(p.unheard(), func(e *edge.Edge) { stocktest.GiveUp(t, e) })
}

// An edge goes on with a server on which another edge, which knew of no fence, has begun one in the
// place of its own, and tells it what it was promised.
func TestAnotherFirstTerm(t *testing.T) {
	t.Parallel()
	for _, sold := range []bool{false, true} {
		t.Run(fmt.Sprint("sold ", sold), func(t *testing.T) {
			p := newPair(t)
			e := p.unheard()
			if sold {
				stocktest.MustHold(t, e, "r1", "Ann", 1)
			}
			p.primary.Kill()
			if err := p.replica.Client().Do(stocktest.Soon(t), "REPLICAOF", "NO", "ONE").Err(); err != nil {
				t.Fatal(err)
			}
			other := stocktest.NewEdge(t, stocktest.Options(p.replica), edge.Options{})
			other.Start()
			if err := other.Refresh(stocktest.Soon(t)); err != nil {
				t.Fatal(err)
			}
			stocktest.MustHold(t, other, "r2", "Bob", 1)
			p.promote()
			p.sells(e, "x")
			want := map[string]record.State{"r2": record.Held}
			if sold {
				want["r1"] = record.Held
			}
			for id, state := range want {
				if got := stocktest.State(t, e.Store, id); got != state {
					t.Errorf("%s is %q, want %s", id, got, state)
				}
			}
			stocktest.Balanced(t, p.replica.Client(), e.Store, "s")
		})
	}
}

// keeps sells a unit of which the replica does not hear, and fails the test unless it is sold after
// the failover, once the fence has met.
func (p *pair) keeps(e *edge.Edge, met func(*edge.Edge)) {
	p.t.Helper()
	stocktest.MustHold(p.t, e, "r1", "Ann", 1)
	if _, err := e.ConfirmEventually(stocktest.Soon(p.t), "s", "r1", ""); err != nil {
		p.t.Fatal(err)
	}
	p.primary.Kill()
	p.promote()
	met(e)
	p.sells(e, "x")
	if got := stocktest.State(p.t, e.Store, "r1"); got != record.Confirmed {
		p.t.Errorf("r1 is %q, and was sold", got)
	}
	stocktest.Balanced(p.t, p.replica.Client(), e.Store, "s")
}

// unheard starts an edge of which the replica does not hear.
func (p *pair) unheard() *edge.Edge {
	p.t.Helper()
	stocktest.Replicated(p.t, stocktest.OpenStore(p.t, p.options()).Shard())
	p.stall()
	e := p.edge(p.options())
	p.heard(e)
	return e
}

// heard waits until the primary has heard of the only edge.
func (p *pair) heard(e *edge.Edge) {
	p.t.Helper()
	stocktest.Eventually(p.t, "an edge that is heard", func() bool {
		n, err := p.primary.Client().HLen(stocktest.Soon(p.t), edgesKey(e.Store.Shard())).Result()
		return err == nil && n == 1
	})
}

// A replica that has heard of no edge for more than a minute does not know which ones have sold: it
// waits for them, although all come of which it knows.
func TestAReplicaThatWasCutOff(t *testing.T) {
	t.Parallel()
	b := newBeats(t)
	b.say(&shard.Beat{Edge: "a", Does: "beat", Wait: time.Hour})
	long := time.Now().Add(-3 * time.Minute).UnixMilli()
	if err := b.p.primary.Client().HSet(stocktest.Soon(t), edgesKey(b.c), "a", long).Err(); err != nil {
		t.Fatal(err)
	}
	b.failOver()
	ready := &shard.Beat{Edge: "a", Does: "ready", Known: b.seq, Wait: time.Hour}
	if r := b.say(ready); r.Code() != "fenced" || r.Text(1) != "collect" || r.Number(3) != 0 {
		t.Fatalf("the only edge of which it knows gets %v, want collect", r)
	}
	ready.Wait = 0
	if r := b.say(ready); !over(r) {
		t.Errorf("an edge that does not wait gets %v", r)
	}
}

// An edge that has the fence off takes nothing from one that has it on, also on a server that was
// promoted: that one goes on in the next term.
func TestFenceOffAtAnotherEdge(t *testing.T) {
	b := newBeats(t)
	b.fenced()
	beat := func(does string) shard.Reply {
		return b.say(&shard.Beat{Edge: "a", Does: does, Known: b.seq, Wait: time.Hour})
	}
	beat("ready")
	if r := b.say(&shard.Beat{Edge: "b", Does: "ready", Known: b.seq, Wait: time.Hour}); !over(r) {
		t.Fatalf("the last edge gets %v", r)
	}
	for range 3 {
		if r := beat("beat"); r.Code() != "ok" {
			t.Fatalf("the edge with the fence on gets %v", r)
		}
		if r := b.say(&shard.Beat{Edge: "c", Does: "off", Known: b.seq}); r.Code() != "no_fence" {
			t.Fatalf("the edge with the fence off gets %v", r)
		}
	}
}

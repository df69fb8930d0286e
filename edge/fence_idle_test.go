package edge_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/stocktest"
	"github.com/stockgate/stockgate/record"
	"github.com/stockgate/stockgate/shard"
)

// edgesKey is the hash of the edges that were heard, see lua/fence.lua.
func edgesKey(c *shard.Client) string {
	return strings.TrimSuffix(c.ShardKeys("s")[shard.MetaKey], "meta") + "edges"
}

// An edge says that it lives before it sells: a replica that was cut off before the first buyer
// came waits for it all the same.
func TestAReplicaThatMissedAllSales(t *testing.T) {
	p := newPair(t)
	e := p.edge(p.options())
	stocktest.Eventually(t, "an edge that is heard", func() bool {
		n, err := p.primary.Client().HLen(stocktest.Soon(t), edgesKey(e.Store.Shard())).Result()
		return err == nil && n == 1
	})
	if err := e.Store.Shard().AwaitAllReplicas(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	p.stall()
	stocktest.MustHold(t, e, "r1", "Ann", 1)
	if _, err := e.ConfirmEventually(stocktest.Soon(t), "s", "r1", ""); err != nil {
		t.Fatal(err)
	}
	p.primary.Kill()
	p.promote()
	p.sells(e, "x")
	if got := stocktest.State(t, e.Store, "r1"); got != record.Confirmed {
		t.Errorf("r1 is %q, and was sold", got)
	}
	stocktest.Balanced(t, p.replica.Client(), e.Store, "s")
}

// A replica that has heard of no edge for more than a minute does not know which ones have sold: it
// waits for them, although all come of which it knows.
func TestAReplicaThatWasCutOff(t *testing.T) {
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

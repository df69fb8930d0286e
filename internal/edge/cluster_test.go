package edge_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/ports"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// twoNodes is a cluster whose second node has the slot of sale s alone. The first one has all
// else: sale other, the index of sales and the secret.
type twoNodes struct {
	t     *testing.T
	nodes [2]*redistest.Server
	slot  int
}

func newTwoNodes(t *testing.T) *twoNodes {
	c := &twoNodes{t: t}
	for i := range c.nodes {
		c.nodes[i] = redistest.Start(t, redistest.Config("cluster-enabled yes", "cluster-require-full-coverage no", "cluster-node-timeout 60000", "cluster-allow-replica-migration no",
			"appendonly yes", "appendfsync always", "cluster-port "+ports.For(t)))
	}
	first := c.nodes[0].Client()
	c.slot = int(first.ClusterKeySlot(stocktest.Soon(t), "{s.0}").Val())
	c.do(1, "CLUSTER", "ADDSLOTS", c.slot)
	c.do(0, "CLUSTER", "ADDSLOTSRANGE", 0, c.slot-1, c.slot+1, 16383)
	c.do(1, "CLUSTER", "SET-CONFIG-EPOCH", 2)
	c.do(0, "CLUSTER", "SET-CONFIG-EPOCH", 1)
	host, port, _ := net.SplitHostPort(c.nodes[1].Addr())
	c.do(0, "CLUSTER", "MEET", host, port, c.nodes[1].Client().ConfigGet(stocktest.Soon(t), "cluster-port").Val()["cluster-port"])
	c.whole()
	return c
}

// whole waits until both nodes agree on the owners of the slots.
func (c *twoNodes) whole() {
	for _, n := range c.nodes {
		stocktest.Eventually(c.t, "a cluster that is whole", func() bool {
			shards, err := n.Client().ClusterShards(stocktest.Soon(c.t)).Result()
			ranges := 0
			for _, s := range shards {
				ranges += len(s.Slots)
			}
			info := n.Client().ClusterInfo(stocktest.Soon(c.t)).Val()
			return err == nil && ranges == 3 && strings.Contains(info, "cluster_state:ok")
		})
	}
}

func (c *twoNodes) do(node int, args ...any) *redis.Cmd {
	c.t.Helper()
	cmd := c.nodes[node].Client().Do(stocktest.Soon(c.t), args...)
	if err := cmd.Err(); err != nil {
		c.t.Fatalf("%v: %v", args, err)
	}
	return cmd
}

// selling is an edge that sells both sales.
func (c *twoNodes) selling() *edge.Edge {
	o := stocktest.Options(c.nodes[0])
	o.Cluster = true
	e := stocktest.Ready(c.t, o)
	stocktest.Load(c.t, e.Store, stocktest.OpenSale("s", 9))
	stocktest.Load(c.t, e.Store, stocktest.OpenSale("other", 9))
	if err := e.Refresh(stocktest.Soon(c.t)); err != nil {
		c.t.Fatal(err)
	}
	return e
}

// holdIn reserves a unit of a sale.
func holdIn(ctx context.Context, e *edge.Edge, of, id string) error {
	l, ok := e.Catalogue().Sale(of)
	if !ok {
		return errors.New("the edge does not know sale " + of)
	}
	a := &sale.Attempt{Sale: of, Buyer: id, Lines: []sale.Line{{SKU: "a", Quantity: 1}}, Key: id, Print: "print"}
	_, refusal, err := e.Hold(ctx, id, l, a, a.Lines, stocktest.HoldOptions)
	if refusal != nil {
		return errors.New(string(refusal.Reason))
	}
	return err
}

func (c *twoNodes) holds(e *edge.Edge, of, id string) {
	c.t.Helper()
	if err := holdIn(stocktest.Soon(c.t), e, of, id); err != nil {
		c.t.Errorf("a reserve in sale %s ends with %v", of, err)
	}
}

// While the keys of a sale move to another node, its attempts are unavailable, and those of
// other sales are not. Afterwards it sells at the new node, and no unit is lost.
func TestSlotMigration(t *testing.T) {
	t.Parallel()
	c := newTwoNodes(t)
	e := c.selling()
	c.holds(e, "s", "r1")
	ids := [2]string{c.do(0, "CLUSTER", "MYID").Val().(string), c.do(1, "CLUSTER", "MYID").Val().(string)}
	c.do(0, "CLUSTER", "SETSLOT", c.slot, "IMPORTING", ids[1])
	c.do(1, "CLUSTER", "SETSLOT", c.slot, "MIGRATING", ids[0])
	host, port, _ := net.SplitHostPort(c.nodes[0].Addr())
	torn := false
	for {
		keys, err := c.nodes[1].Client().ClusterGetKeysInSlot(stocktest.Soon(t), c.slot, 1).Result()
		if err != nil {
			t.Fatal(err)
		}
		if len(keys) == 0 {
			break
		}
		c.do(1, "MIGRATE", host, port, keys[0], 0, 10_000)
		err = holdIn(stocktest.Soon(t), e, "s", "torn")
		if !errors.Is(err, shard.ErrUnavailable) {
			t.Fatalf("while keys move a reserve ends with %v, want %v", err, shard.ErrUnavailable)
		}
		torn = torn || strings.Contains(err.Error(), "being moved to another node")
		c.holds(e, "other", keys[0])
	}
	if !torn {
		t.Error("no error said that the keys are being moved")
	}
	c.do(0, "CLUSTER", "SETSLOT", c.slot, "NODE", ids[0])
	c.do(1, "CLUSTER", "SETSLOT", c.slot, "NODE", ids[0])
	stocktest.Eventually(t, "a reserve at the new node", func() bool { return holdIn(stocktest.Soon(t), e, "s", "r2") == nil })
	e.Start()
	stocktest.Eventually(t, "a release of what was not answered", func() bool { return e.Backlog() == 0 })
	for id, want := range map[string]record.State{"r1": record.Held, "r2": record.Held, "torn": ""} {
		if got := stocktest.State(t, e.Store, id); got != want {
			t.Errorf("%s is %q, want %q", id, got, want)
		}
	}
	if r := stocktest.Balanced(t, c.nodes[0].Client(), e.Store, "s"); r.Cells["a"] != "9 7 2 0 0" {
		t.Errorf("at the new node the cell is %q, want two units held", r.Cells["a"])
	}
}

// A node that does not answer stops only its sales, for however long, and they go on when it
// is back.
func TestDeadNodeStopsOnlyItsSales(t *testing.T) {
	t.Parallel()
	c := newTwoNodes(t)
	e := c.selling()
	c.nodes[1].Kill()
	for i, id := range []string{"o1", "o2"} {
		if err := e.Refresh(stocktest.Soon(t)); err != nil {
			t.Errorf("look %d at the sales fails with %v", i, err)
		}
		if err := e.Ready(); err != nil {
			t.Errorf("the edge is not ready: %v", err)
		}
		if err := holdIn(stocktest.Soon(t), e, "s", "s"+id); !errors.Is(err, shard.ErrUnavailable) {
			t.Errorf("a reserve at the dead node ends with %v, want %v", err, shard.ErrUnavailable)
		}
		c.holds(e, "other", id)
	}
	c.nodes[1].Restart()
	c.whole()
	stocktest.Eventually(t, "a reserve at the node that is back", func() bool { return holdIn(stocktest.Soon(t), e, "s", "r1") == nil })

	c.nodes[0].Kill()
	c.nodes[1].Kill()
	if err := e.Refresh(stocktest.Soon(t)); !errors.Is(err, shard.ErrUnavailable) {
		t.Errorf("with no node at all a look at the sales ends with %v, want %v", err, shard.ErrUnavailable)
	}
}

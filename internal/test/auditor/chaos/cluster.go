package chaos

import (
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor/rig"
)

// cluster has three primaries, each with a replica or none. Clients reach a node by its road;
// the bus between nodes is not broken.
type cluster struct {
	r    *Run
	all  []*rig.Redis
	road map[*rig.Redis]*rig.Proxy
	ids  map[string]*rig.Redis
}

const primaries, slots = 3, 16384

func newCluster(r *Run, replicas bool) *cluster {
	c := &cluster{r: r, road: map[*rig.Redis]*rig.Proxy{}, ids: map[string]*rig.Redis{}}
	n := primaries
	if replicas {
		n = 2 * primaries
	}
	for i := range n {
		c.add(i + 1)
	}
	for i, n := range c.all[:primaries] {
		c.do(n, "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(i*slots/primaries), strconv.Itoa((i+1)*slots/primaries-1))
	}
	for _, n := range c.all[1:] {
		c.do(c.all[0], "CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(n.Port), strconv.Itoa(n.Bus))
	}
	c.r.until("the cluster is whole", func() bool { return c.well() })
	for i, n := range c.all[primaries:] {
		c.do(n, "CLUSTER", "REPLICATE", c.id(c.all[i]))
	}
	c.whole()
	return c
}

func (c *cluster) add(epoch int) {
	road := c.r.link("")
	n := c.r.node("always", rig.Node, "cluster-require-full-coverage no", "cluster-node-timeout 2000", "cluster-allow-replica-migration no",
		"cluster-announce-ip 127.0.0.1", "cluster-announce-port "+port(road.Addr()))
	road.Lead(n.Addr())
	c.do(n, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(epoch))
	c.all, c.road[n] = append(c.all, n), road
	c.ids[c.id(n)] = n
}

func (c *cluster) do(n *rig.Redis, args ...string) string {
	var answer any
	c.r.insist("a node of the cluster obeys", func() (err error) {
		answer, err = n.Do(args...)
		return err
	})
	text, _ := answer.(string)
	return text
}

func (c *cluster) id(n *rig.Redis) string { return c.do(n, "CLUSTER", "MYID") }

// well reports whether all nodes are up and agree on the owners of the slots.
func (c *cluster) well() bool {
	for _, n := range c.all {
		answer, err := n.Do("CLUSTER", "NODES")
		text, _ := answer.(string)
		if err != nil || strings.Count(text, "\n") != len(c.all) || strings.Contains(text, "fail") || strings.Contains(text, "handshake") {
			return false
		}
		info, err := n.Do("CLUSTER", "INFO")
		if text, _ := info.(string); err != nil || !strings.Contains(text, "cluster_state:ok") {
			return false
		}
	}
	return true
}

func (c *cluster) option(int) string {
	return redisAt(c.road[c.all[0]].Addr()+" "+c.road[c.all[1]].Addr(), "cluster\n\t\tat_risk any")
}

func (c *cluster) nodes() []*rig.Redis     { return c.all }
func (c *cluster) rejoin(*rig.Redis) error { return nil }

func (c *cluster) links() (roads []*rig.Proxy) {
	for _, n := range c.all {
		roads = append(roads, c.road[n])
	}
	return roads
}

// home asks the nodes: the owner of a slot says so of itself.
func (c *cluster) home(sale string) *rig.Redis {
	for _, n := range c.all {
		if n.Alive() && n.Info("replication", "role") == "master" && c.owns(n, sale) {
			return n
		}
	}
	return nil
}

// owns reports whether a node serves a sale's slot.
func (c *cluster) owns(n *rig.Redis, sale string) bool {
	_, err := n.Do("HGET", rig.Key(sale, "meta"), "status")
	return err == nil
}

func (c *cluster) whole() {
	for _, road := range c.links() {
		road.Resume()
	}
	c.r.until("the cluster is whole", c.well)
	for _, n := range c.all {
		c.r.until("a replica of the cluster follows", func() bool { return n.Info("replication", "role") == "master" || n.Follows() })
	}
}

func (c *cluster) moves() map[string]func(Step) {
	return map[string]func(Step){"migrate": c.migrate, "promote": c.promote, "failover": c.failover}
}

// migrate moves the slot of a sale to another primary.
func (c *cluster) migrate(s Step) {
	sale := oneOf(s, c.r.sales)
	from := c.home(sale)
	if from == nil {
		return
	}
	var others []*rig.Redis
	for _, n := range c.all {
		if n != from && n.Alive() && n.Info("replication", "role") == "master" {
			others = append(others, n)
		}
	}
	if len(others) == 0 {
		return
	}
	var slot string
	c.r.insist("a node names the slot", func() (err error) {
		slot, err = rig.Slot(from, sale)
		return err
	})
	to := others[s.Amount%len(others)]
	// a node without room takes no key: the rest of them must follow, or the sale stays torn
	c.r.until("the slot is where it was moved to", func() bool {
		return c.owns(to, sale) || rig.MigrateSlot(from, to, slot, s.For/20) == nil && c.owns(to, sale)
	})
}

// promote kills the primary of a sale until its replica has taken over, or for a while.
func (c *cluster) promote(s Step) {
	sale := oneOf(s, c.r.sales)
	old := c.home(sale)
	if old == nil {
		return
	}
	old.Kill()
	end := time.Now().Add(15 * time.Second)
	for time.Now().Before(end) && c.home(sale) == nil {
		time.Sleep(50 * time.Millisecond)
	}
	time.Sleep(s.For / 2)
	c.r.must(old.Run())
	c.r.until("the cluster is whole", c.well)
}

// failover asks the replica of a sale's primary to take over: it waits until it has everything.
func (c *cluster) failover(s Step) {
	sale := oneOf(s, c.r.sales)
	old := c.home(sale)
	if old == nil {
		return
	}
	for _, n := range c.all {
		if n.Info("replication", "role") == "slave" && n.Info("replication", "master_port") == port(c.road[old].Addr()) {
			if _, err := n.Do("CLUSTER", "FAILOVER"); err != nil {
				c.r.note("CLUSTER FAILOVER: %v", err)
				return
			}
			// it gives up when its primary does not answer in time, or has no slot any more
			for end := time.Now().Add(10 * time.Second); time.Now().Before(end) && n.Info("replication", "role") != "master"; {
				time.Sleep(20 * time.Millisecond)
			}
			return
		}
	}
}

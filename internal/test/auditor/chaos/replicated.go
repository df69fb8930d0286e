package chaos

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor/rig"
)

// replicated is a primary with replicas, promoted by an operator who then leads the edges to
// the new primary.
type replicated struct {
	r       *Run
	all     []*rig.Redis
	primary *rig.Redis
	acks    int
	roads   []*rig.Proxy              // of the edges
	peers   map[*rig.Redis]*rig.Proxy // what replicas of a node hear it by
}

func newReplicated(r *Run, replicas, acks int) *replicated {
	p := &replicated{r: r, acks: acks, peers: map[*rig.Redis]*rig.Proxy{}}
	for range 1 + replicas {
		n := r.node("always")
		p.all = append(p.all, n)
		p.peers[n] = r.link(n.Addr())
	}
	p.primary = p.all[0]
	for range edges {
		p.roads = append(p.roads, r.link(p.primary.Addr()))
	}
	p.whole()
	return p
}

func (p *replicated) option(edge int) string { return redisAt(p.roads[edge].Addr(), acked(p.acks)) }
func (p *replicated) nodes() []*rig.Redis    { return p.all }
func (p *replicated) home(string) *rig.Redis { return p.primary }
func (p *replicated) links() []*rig.Proxy    { return p.roads }

func (p *replicated) rejoin(n *rig.Redis) error {
	if n == p.primary {
		return nil
	}
	return n.Follow(p.peers[p.primary].Addr())
}

// whole makes all other nodes follow the primary.
func (p *replicated) whole() {
	for _, n := range p.all {
		p.peers[n].Resume()
		if n == p.primary {
			continue
		}
		if n.Info("replication", "master_port") != port(p.peers[p.primary].Addr()) {
			p.r.insist("a node follows", func() error { return p.rejoin(n) })
		}
		p.r.until("a replica follows", n.Follows)
	}
}

func port(addr string) string {
	_, port, _ := strings.Cut(addr, ":")
	return port
}

// heirs are the replicas that have a link to the primary: the others may have nothing.
func (p *replicated) heirs() (able []*rig.Redis) {
	for _, n := range p.all {
		if n != p.primary && n.Alive() && n.Follows() {
			able = append(able, n)
		}
	}
	return able
}

// crown makes a node the primary of all that are alive, and leads some edges to it.
func (p *replicated) crown(heir *rig.Redis, roads []*rig.Proxy) {
	p.primary = heir
	for _, road := range roads {
		road.Lead(heir.Addr())
	}
}

func (p *replicated) moves() map[string]func(Step) {
	return map[string]func(Step){"promote": p.promote, "failover": p.failover, "split": p.split, "isolate": p.isolate}
}

// promote kills the primary and promotes a replica. The old primary comes back as a replica.
func (p *replicated) promote(s Step) {
	old, able := p.primary, p.heirs()
	if len(able) == 0 {
		return
	}
	heir := oneOf(s, able)
	old.Kill()
	p.r.insist("a replica is promoted", heir.Promote)
	p.crown(heir, p.roads)
	p.followCrown(old)
	time.Sleep(s.For)
	p.r.must(old.Run())
	p.r.insist("the old primary follows", func() error { return p.rejoin(old) })
}

// followCrown makes the others follow the new primary, but not the old one.
func (p *replicated) followCrown(old *rig.Redis) {
	for _, n := range p.all {
		if n != p.primary && n != old && n.Alive() {
			p.r.insist("a node follows", func() error { return p.rejoin(n) })
		}
	}
}

// failover is planned: the primary waits until the replica has everything, and they swap.
func (p *replicated) failover(s Step) {
	old, able := p.primary, p.heirs()
	if len(able) == 0 {
		return
	}
	heir := oneOf(s, able)
	if _, err := old.Do("FAILOVER", "TO", "127.0.0.1", strconv.Itoa(heir.Port), "TIMEOUT", "5000"); err != nil {
		p.r.note("FAILOVER: %v", err)
		return
	}
	p.r.until("the failover ends", func() bool { return old.Info("replication", "master_failover_state") == "no-failover" })
	if heir.Info("replication", "role") != "master" { // it gave up
		return
	}
	p.crown(heir, p.roads)
	for _, n := range p.all {
		if n != heir && n.Alive() {
			p.r.insist("a node follows", func() error { return p.rejoin(n) })
		}
	}
}

// split leaves one edge with the old primary, which has lost its replicas, while another one
// is led to the new primary.
func (p *replicated) split(s Step) {
	old, able := p.primary, p.heirs()
	if len(able) == 0 {
		return
	}
	heir := oneOf(s, able)
	p.peers[old].Cut()
	p.r.insist("a replica is promoted", heir.Promote)
	stays := s.Amount % len(p.roads)
	p.crown(heir, slices.Concat(p.roads[:stays], p.roads[stays+1:]))
	p.followCrown(old)
	time.Sleep(s.For)
	p.roads[stays].Lead(heir.Addr())
	p.r.insist("the old primary follows", func() error { return p.rejoin(old) })
	p.peers[old].Resume()
}

// isolate takes the replicas from the primary for a while: nothing reaches them, or late.
func (p *replicated) isolate(s Step) {
	road := p.peers[p.primary]
	if s.Amount < 50 {
		road.Stall()
	} else {
		road.Cut()
	}
	time.Sleep(s.For)
	road.Resume()
}

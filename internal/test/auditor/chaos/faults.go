package chaos

import (
	"slices"
	"strconv"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor/rig"
)

// around are the faults of a configuration that do not touch Redis's processes.
func around(c *Config) []string {
	names := []string{"cut-link", "stall-link", "cut-answers", "cut-answers", "kill-edge", "pause-edge", "full-memory", "flush-scripts", "close-connections", "cut-shop", "cut-shop-answers"}
	if c.ledger {
		names = append(names, "kill-sql", "pause-sql")
	}
	if c.clock {
		names = append(names, "step-clock", "step-clock")
	}
	if c.waits {
		names = append(names, "apply-list", "apply-list", "pause-sale", "reload-edges")
	}
	return names
}

// faults are all that the nemesis can do, by name.
func (r *Run) faults() map[string]func(Step) {
	all := map[string]func(Step){
		"kill": r.killNode, "pause": r.pauseNode, "slow-disk": r.slowDisk,
		"cut-link":          func(s Step) { r.link1(s, (*rig.Proxy).Cut) },
		"stall-link":        func(s Step) { r.link1(s, (*rig.Proxy).Stall) },
		"cut-answers":       func(s Step) { r.link1(s, (*rig.Proxy).Deafen) },
		"kill-edge":         r.killEdge,
		"pause-edge":        r.pauseEdge,
		"full-memory":       r.fullMemory,
		"flush-scripts":     func(s Step) { r.often(s, "SCRIPT", "FLUSH") },
		"close-connections": func(s Step) { r.often(s, "CLIENT", "KILL", "TYPE", "normal") },
		"cut-shop":          func(s Step) { r.shopFault(s, (*rig.Proxy).Cut) },
		"cut-shop-answers":  func(s Step) { r.shopFault(s, (*rig.Proxy).Deafen) },
		"kill-sql": func(s Step) {
			r.sql.Kill()
			time.Sleep(s.For)
			r.must(r.sql.Run())
		},
		"pause-sql": func(s Step) {
			r.sql.Stop()
			time.Sleep(s.For)
			r.sql.Continue()
		},
		"step-clock":   r.stepClock,
		"apply-list":   r.applyList,
		"pause-sale":   r.pauseSale,
		"reload-edges": r.reloadEdges,
	}
	for name, move := range r.store.moves() {
		all[name] = move
	}
	return all
}

// killNode kills a Redis with -9 and starts it again with what its disk has.
func (r *Run) killNode(s Step) {
	n := oneOf(s, r.store.nodes())
	n.Kill()
	time.Sleep(s.For)
	r.must(n.Run())
	r.insist("a node takes its role", func() error { return r.store.rejoin(n) })
}

func (r *Run) pauseNode(s Step) {
	n := oneOf(s, r.store.nodes())
	n.Stop()
	time.Sleep(s.For)
	n.Continue()
}

func (r *Run) slowDisk(s Step) {
	n := oneOf(s, r.store.nodes())
	r.must(n.SlowDisk(time.Duration(5+4*s.Amount) * time.Millisecond))
	time.Sleep(s.For)
	r.must(n.SlowDisk(0))
}

// link1 does something to one link between edges and Redis, or to all of them.
func (r *Run) link1(s Step, what func(*rig.Proxy)) {
	links := r.store.links()
	if s.Amount < 60 {
		links = []*rig.Proxy{oneOf(s, links)}
	}
	for _, l := range links {
		what(l)
	}
	time.Sleep(s.For)
	for _, l := range links {
		l.Resume()
	}
}

func (r *Run) shopFault(s Step, what func(*rig.Proxy)) {
	r.h.ShopFails, r.h.ShopAway = true, true
	what(r.road)
	time.Sleep(s.For)
	r.road.Resume()
}

func (r *Run) killEdge(s Step) {
	r.h.EdgesDie = true
	i := s.Target % len(r.edges)
	r.edges[i].Kill()
	time.Sleep(s.For / 2)
	r.must(r.edges[i].Run(r.sites[i]))
}

// pauseEdge stops an edge, sometimes beyond the deadline of its holds.
func (r *Run) pauseEdge(s Step) {
	e := oneOf(s, r.edges)
	e.Stop()
	if time.Sleep(s.For); s.Amount > 80 {
		time.Sleep(holdFor)
	}
	e.Continue()
}

// fullMemory lets every Redis have no more than it uses.
func (r *Run) fullMemory(s Step) {
	for _, n := range r.store.nodes() {
		if used, err := strconv.Atoi(n.Info("memory", "used_memory")); err == nil {
			n.Do("CONFIG", "SET", "maxmemory", strconv.Itoa(max(used-1000, 1)))
		}
	}
	time.Sleep(s.For)
	r.room()
}

// room takes every bound on memory back, also of a node that does not answer now.
func (r *Run) room() {
	for _, n := range r.store.nodes() {
		r.until("redis has room again", func() bool {
			_, err := n.Do("CONFIG", "SET", "maxmemory", "0")
			return err == nil
		})
	}
}

// often sends a command to every Redis again and again.
func (r *Run) often(s Step, command ...string) {
	for end := time.Now().Add(s.For); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		for _, n := range r.store.nodes() {
			n.Do(command...)
		}
	}
}

// stepClock sets the clock of one Redis ahead or back by up to 3 s, and right again.
func (r *Run) stepClock(s Step) {
	n := oneOf(s, r.store.nodes())
	r.must(n.Shift(time.Duration(s.Amount-50) * 60 * time.Millisecond))
	time.Sleep(s.For)
	r.must(n.Shift(0))
}

// unknown are the faults of a schedule that this run cannot do.
func (r *Run) unknown(schedule Schedule) (names []string) {
	all := r.faults()
	for _, s := range schedule {
		if all[s.Fault] == nil && !slices.Contains(names, s.Fault) {
			names = append(names, s.Fault)
		}
	}
	return names
}

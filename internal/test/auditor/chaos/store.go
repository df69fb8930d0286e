package chaos

import (
	"fmt"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor/rig"
)

// store is a topology of Redis: its processes, and the links that lead to them.
type store interface {
	// option is what an edge, by its number, has behind `redis`.
	option(edge int) string
	// nodes are all servers that have data, in the order in which they were started.
	nodes() []*rig.Redis
	// home is where a sale is now; nil: there is none at present.
	home(sale string) *rig.Redis
	// links lead from edges to Redis.
	links() []*rig.Proxy
	// rejoin brings a node that was started again into its role.
	rejoin(node *rig.Redis) error
	// moves are the faults that only this topology has.
	moves() map[string]func(Step)
	// whole waits until every node is in its role, after all faults have ended.
	whole()
}

// node starts a Redis that keeps what it has acknowledged, as far as sync says.
func (r *Run) node(sync string, settings ...string) *rig.Redis {
	n, err := rig.StartRedis(r.dir, append([]string{"appendonly yes", "appendfsync " + sync, "repl-diskless-sync-delay 0", "auto-aof-rewrite-percentage 0"}, settings...)...)
	r.must(err)
	if r.clock {
		r.must(n.FakeClock())
	}
	r.must(n.FakeDisk())
	r.must(n.Run())
	r.atEnd(func() { n.Kill() })
	return n
}

// link starts a link to a Redis or the shop.
func (r *Run) link(target string) *rig.Proxy {
	p, err := rig.NewProxy(target)
	r.must(err)
	r.atEnd(p.Close)
	return p
}

// oneOf is the thing that a step hits.
func oneOf[T any](s Step, all []T) T { return all[s.Target%len(all)] }

// single is one server; each edge has a link of its own.
type single struct {
	r      *Run
	server *rig.Redis
	roads  []*rig.Proxy
}

func newSingle(r *Run, sync string) *single {
	s := &single{r: r, server: r.node(sync)}
	for range edges {
		s.roads = append(s.roads, r.link(s.server.Addr()))
	}
	return s
}

func (s *single) option(edge int) string  { return redisAt(s.roads[edge].Addr(), "") }
func (s *single) nodes() []*rig.Redis     { return []*rig.Redis{s.server} }
func (s *single) home(string) *rig.Redis  { return s.server }
func (s *single) links() []*rig.Proxy     { return s.roads }
func (s *single) rejoin(*rig.Redis) error { return nil }
func (s *single) whole()                  {}
func (s *single) moves() map[string]func(Step) {
	return map[string]func(Step){
		// killed while a sync is under way, with writes that wait for it
		"slow-kill": func(step Step) {
			s.server.SlowDisk(time.Duration(500+20*step.Amount) * time.Millisecond)
			time.Sleep(1500 * time.Millisecond)
			s.server.Kill()
			s.server.SlowDisk(0)
			time.Sleep(step.For / 2)
			s.r.must(s.server.Run())
		},
	}
}

// redisAt is the redis option for some addresses.
func redisAt(addresses, more string) string {
	return fmt.Sprintf("{\n\t\taddress %s\n\t\ttimeout 1s\n\t\t%s\n\t}", addresses, more)
}

// acked waits for so many replicas, or says that nothing is waited for.
func acked(acks int) string {
	if acks == 0 {
		return "at_risk any"
	}
	return fmt.Sprintf("replica_acks %d 400ms", acks)
}

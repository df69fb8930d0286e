package chaos

import (
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor/rig"
)

// watched is a primary with replicas, and three sentinels that promote them. Each node is
// known to all others by its road alone.
type watched struct {
	r         *Run
	all       []*rig.Redis
	road      map[*rig.Redis]*rig.Proxy
	sentinels []*rig.Sentinel
	acks      int
}

// peer is the address that nodes and sentinels come from: a road can refuse them, and let
// edges in.
const peer = "127.0.0.2"

// down is after how long the sentinels take a primary for dead.
const down = 1500 * time.Millisecond

func newWatched(r *Run, replicas, acks int) *watched {
	w := &watched{r: r, acks: acks, road: map[*rig.Redis]*rig.Proxy{}}
	for range 1 + replicas {
		road := r.link("")
		n := r.node("always", "bind-source-addr "+peer, "replica-announce-ip 127.0.0.1", "replica-announce-port "+port(road.Addr()), "repl-timeout 10")
		road.Lead(n.Addr())
		w.all, w.road[n] = append(w.all, n), road
	}
	for _, n := range w.all[1:] {
		r.must(n.Follow(w.road[w.all[0]].Addr()))
		r.until("a replica follows", n.Follows)
	}
	for range 3 {
		s, err := rig.NewSentinel(r.dir, "main", w.road[w.all[0]].Addr(), 2, down, peer)
		r.must(err)
		r.atEnd(func() { s.Kill() })
		w.sentinels = append(w.sentinels, s)
	}
	w.known()
	return w
}

// knowing reports whether a sentinel knows the others and all replicas, and finds them well.
func (w *watched) knowing(s *rig.Sentinel) bool {
	main, err := s.Fields("SENTINEL", "MASTER", "main")
	if err != nil || main["flags"] != "master" {
		return false
	}
	replicas, _ := strconv.Atoi(main["num-slaves"])
	others, _ := strconv.Atoi(main["num-other-sentinels"])
	return replicas >= len(w.all)-1 && others >= len(w.sentinels)-1
}

func (w *watched) known() {
	for _, s := range w.sentinels {
		w.r.until("a sentinel knows all others", func() bool { return w.knowing(s) })
	}
}

func (w *watched) option(int) string {
	var addresses []string
	for _, s := range w.sentinels {
		addresses = append(addresses, s.Addr())
	}
	return redisAt(strings.Join(addresses, " "), "sentinel main\n\t\t"+acked(w.acks))
}

func (w *watched) nodes() []*rig.Redis     { return w.all }
func (w *watched) rejoin(*rig.Redis) error { return nil } // the sentinels do it

func (w *watched) links() (roads []*rig.Proxy) {
	for _, n := range w.all {
		roads = append(roads, w.road[n])
	}
	return roads
}

// primary is the node that most sentinels give, or nil.
func (w *watched) primary() *rig.Redis {
	votes := map[string]int{}
	for _, s := range w.sentinels {
		votes[s.Primary("main")]++
	}
	for _, n := range w.all {
		if votes[w.road[n].Addr()] > len(w.sentinels)/2 {
			return n
		}
	}
	return nil
}

func (w *watched) home(string) *rig.Redis { return w.primary() }

// whole waits until the sentinels agree on a primary that all others follow.
func (w *watched) whole() {
	for _, n := range w.all {
		w.road[n].Resume()
	}
	w.r.until("all nodes follow the primary", func() bool {
		primary := w.primary()
		if primary == nil || primary.Info("replication", "role") != "master" {
			return false
		}
		for _, n := range w.all {
			if n != primary && (n.Info("replication", "master_port") != port(w.road[primary].Addr()) || !n.Follows()) {
				return false
			}
		}
		return true
	})
	w.known()
}

func (w *watched) moves() map[string]func(Step) {
	return map[string]func(Step){"promote": w.promote, "failover": w.failover, "split": w.split}
}

// another waits until the sentinels give another primary than the old one; without a replica
// that they may promote they do not.
func (w *watched) another(old *rig.Redis) {
	end := time.Now().Add(4 * down)
	for time.Now().Before(end) && (w.primary() == old || w.primary() == nil) {
		time.Sleep(20 * time.Millisecond)
	}
}

// promote kills the primary until the sentinels have another one.
func (w *watched) promote(s Step) {
	old := w.primary()
	if old == nil {
		return
	}
	old.Kill()
	w.another(old)
	time.Sleep(s.For / 2)
	w.r.must(old.Run())
}

// failover is asked of a sentinel.
func (w *watched) failover(s Step) {
	old := w.primary()
	if _, err := oneOf(s, w.sentinels).Do("SENTINEL", "FAILOVER", "main"); err != nil || old == nil {
		w.r.note("SENTINEL FAILOVER: %v", err)
		return
	}
	w.another(old)
}

// split takes the primary from replicas and sentinels, but not from the edges, until there is
// another one.
func (w *watched) split(s Step) {
	old := w.primary()
	if old == nil {
		return
	}
	w.road[old].CutFrom(func(from net.IP) bool { return from.String() == peer })
	w.another(old)
	time.Sleep(s.For / 2)
	w.road[old].Resume()
}

package queue_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/store/queue"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
	"github.com/stockgate/stockgate/lua"
)

// shortly is a lease that a test can wait for.
const shortly = time.Second

// sends waits until the next order is sent without its request, and returns its id.
func (s *shop) sends() string {
	s.t.Helper()
	select {
	case id := <-s.sent:
		return id
	case <-stocktest.Soon(s.t).Done():
		s.t.Fatal("no order is sent")
		panic("unreachable")
	}
}

// An edge is killed with orders in the line: another one sends each of them once, in order.
func TestDeadEdge(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		a := openWith(t, "A", stocktest.Selling(t, stocktest.Options(b), 10), one, shortly)
		a.line("r1")
		for _, id := range []string{"r3", "r2", "r4"} {
			a.order(id)
		}
		a.queue.Stop()
		other := openWith(t, "B", stocktest.Ready(t, stocktest.Options(b)), one, shortly)
		other.confirm("r1")
		for _, want := range []string{"r3", "r2", "r4"} {
			if got := other.sends(); got != want {
				t.Fatalf("%s is sent, want %s", got, want)
			}
			other.confirm(want)
		}
		other.balanced(b, 0, 0)
		if n := len(other.sent); n > 0 {
			t.Errorf("%d orders are sent more than once", n)
		}
	})
}

// An edge is killed when it has a turn, and no other order waits: another one sends it.
func TestDeadTaker(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		a := quiet(t, "A", stocktest.Selling(t, stocktest.Options(b), 10), one)
		a.line("r1", "r2")
		a.confirm("r1")
		if got := a.ask("A", one, shortly, "gate"); !slices.Equal(got, []string{"r2 1"}) {
			t.Fatalf("A gets %q", got)
		}
		if st := a.show(); st.Waiting != 0 {
			t.Fatalf("the line is %+v", st)
		}
		other := openWith(t, "B", stocktest.Ready(t, stocktest.Options(b)), one, shortly)
		if got := other.sends(); got != "r2" {
			t.Errorf("%s is sent", got)
		}
		other.confirm("r2")
		other.balanced(b, 0, 0)
	})
}

// An edge is killed after it has said that it sends: the order is in doubt at its deadline, and
// no other edge sends it.
func TestDeadSender(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		a := quiet(t, "A", stocktest.Selling(t, stocktest.Options(b), 10), one)
		a.line("r1", "r2", "r3")
		a.confirm("r1")
		if got := a.ask("A", one, shortly, "gate"); !slices.Equal(got, []string{"r2 1"}) {
			t.Fatalf("A gets %q", got)
		}
		if _, err := a.queue.Send(stocktest.Soon(t), queue.Turn{Sale: "s", ID: "r2", Try: 1}, shortly, 0, record.ModeResponse); err != nil {
			t.Fatal(err)
		}
		other := openWith(t, "B", stocktest.Ready(t, stocktest.Options(b)), one, shortly)
		other.ends()["expiry"]("r2")
		if got := other.state("r2"); got != record.InDoubt {
			t.Errorf("r2 is %s", got)
		}
		if got := other.sends(); got != "r3" {
			t.Errorf("%s is sent, want r3", got)
		}
		other.confirm("r3")
		other.balanced(b, 0, 0)
		if n := len(other.sent); n > 0 {
			t.Errorf("%d more orders are sent", n)
		}
	})
}

// The reply to a reserve, to a call for turns and to a send is cut after Redis has done it: no
// order is lost, and none is sent twice.
func TestCutReplies(t *testing.T) {
	for _, what := range []string{"reserve", "turn", "send"} {
		t.Run(what, func(t *testing.T) {
			s := redistest.Start(t)
			proxy := redistest.NewProxy(t, s.Addr())
			direct := quiet(t, "X", stocktest.Selling(t, stocktest.Options(s), 10), one)
			o := stocktest.At(proxy.Addr(), stocktest.Long)
			a := openWith(t, "A", stocktest.Ready(t, o), one, shortly)
			direct.line("r1")
			a.line("r2") // all connections are open
			if what == "reserve" {
				proxy.CutReplies(1, "EVALSHA "+a.Store.Shard().Options.Scripts.Of(lua.Reserve).SHA)
			}
			_, w := a.order("r3")
			if w == nil {
				t.Fatal("r3 does not wait")
			}
			if what == "turn" {
				proxy.CutReplies(3, "EVALSHA turn")
			}
			direct.confirm("r1")
			if got := a.sends(); got != "r2" {
				t.Errorf("%s is sent", got)
			}
			if what == "send" {
				proxy.CutReplies(1, "EVALSHA send")
			}
			direct.confirm("r2")
			a.turn(w)
			direct.confirm("r3")
			if n := proxy.CutsLeft(); n > 0 {
				t.Errorf("%d replies were not cut", n)
			}
			direct.balanced(s, 0, 0)
			if n := len(a.sent); n > 0 {
				t.Errorf("%d orders are sent more than once", n)
			}
			journal, err := s.Client().XRange(stocktest.Soon(t), direct.Store.Shard().ShardKeys("s")[shard.JournalKey], "-", "+").Result()
			if err != nil {
				t.Fatal(err)
			}
			if n := countMovements(journal, "\tsent\theld\t"); n != 2 {
				t.Errorf("the journal says %d times that an order was sent, want 2", n)
			}
		})
	}
}

// The line survives a restart of Redis.
func TestRestartedRedis(t *testing.T) {
	s := redistest.Start(t, redistest.Config("appendonly yes", "appendfsync always"))
	a := open(t, "A", stocktest.Selling(t, stocktest.Options(s), 10), one)
	a.line("r1", "r2")
	_, w := a.order("r3")
	s.Kill()
	s.Restart()
	if st := a.show(); st.Waiting != 2 || st.AtShop != 1 {
		t.Errorf("the line is %+v", st)
	}
	a.confirm("r1")
	if got := a.sends(); got != "r2" {
		t.Errorf("%s is sent", got)
	}
	a.confirm("r2")
	a.turn(w)
	a.confirm("r3")
	a.balanced(s, 0, 0)
}

// A full Redis takes no new orders; those that wait get their turns, and what ends gives back
// what it took.
func TestFullRedis(t *testing.T) {
	s := redistest.Start(t)
	a := quiet(t, "A", stocktest.Selling(t, stocktest.Options(s), 10), one)
	a.line("r1", "r2", "r3", "r4")
	if err := s.Client().ConfigSet(stocktest.Soon(t), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	o := a.options()
	o.Order = []byte("x")
	options := stocktest.HoldOptions
	options.Queue = o
	if _, refusal, err := stocktest.HoldOn(stocktest.Soon(t), a.Edge, "r5", "Eve", 1, options); err == nil && refusal == nil {
		t.Error("a full redis takes an order")
	}
	a.confirm("r1")
	a.gets("A", "r2 1")
	a.mustSend("r2", 1)
	if err := a.again("r2", 1, 0); err != nil {
		t.Error(err)
	}
	a.gets("A", "r2 2")
	if err := a.queue.Yield(stocktest.Soon(t), queue.Turn{Sale: "s", ID: "r2", Try: 2}); err != nil {
		t.Error(err)
	}
	if err := a.queue.Cancel(stocktest.Soon(t), "s", "r3", "cancelled"); err != nil {
		t.Error(err)
	}
	if st, err := queue.Drain(stocktest.Soon(t), a.Store, "s", "me", 100); err != nil || st.Released != 2 {
		t.Errorf("drained: %+v, %v", st, err)
	}
	a.balanced(s, 0, 0)
}

// Redis has lost any of the keys of the line, and not the holds: orders whose requests are open
// wait again, in order, and the others are released. Nothing is sent twice.
func TestLostKeys(t *testing.T) {
	for _, place := range []int{shard.LineKey, shard.OrdersKey, shard.AtShopKey, shard.QueueKey, -1} {
		t.Run(fmt.Sprint(place), func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, b redistest.Backend) {
				a := quiet(t, "A", stocktest.Selling(t, stocktest.Options(b), 10), one)
				a.line("r1", "r5", "r2", "r4", "r3", "lost")
				keys := a.Store.Shard().ShardKeys("s")[shard.LineKey : shard.QueueKey+1]
				if place >= 0 {
					keys = keys[place-shard.LineKey:][:1]
				}
				a.confirm("r1")
				a.gets("A", "r5 1")
				a.mustSend("r5", 1)
				a.confirm("r5")
				if got := a.ask("A", one, 0, "gate"); !slices.Equal(got, []string{"r2 1"}) { // it ends at once
					t.Fatalf("A gets %q", got)
				}
				if err := b.Client().Del(stocktest.Soon(t), keys...).Err(); err != nil {
					t.Fatal(err)
				}
				rejoin := func(id string) error {
					packed, err := a.queue.Pack("s", id, &queue.Order{Gate: "gate"})
					if err != nil {
						t.Fatal(err)
					}
					r, _, err := a.Store.Do(stocktest.Soon(t), "s", shard.Op(lua.Rejoin, id, "A", "gate", packed))
					_, err = reservation.Judged(lua.Rejoin, r, err)
					return err
				}
				for _, id := range []string{"r3", "r4", "r2", "r3"} {
					if err := rejoin(id); err != nil {
						t.Errorf("%s: %v", id, err)
					}
				}
				if err := rejoin("r5"); err == nil {
					t.Error("an order that was sent waits again")
				}
				r, _, err := a.Store.Do(stocktest.Soon(t), "s", shard.Op(lua.Orphans, "0", 500, 0))
				gone := place == shard.LineKey || place == shard.OrdersKey || place == -1
				if err != nil || r.Text(1) != "0" || r.Number(2) == 1 != gone {
					t.Errorf("orphans: %v, %v", r, err)
				}
				if got := a.state("lost") == record.Released; got != gone {
					t.Errorf("lost is %s", a.state("lost"))
				}
				sent := map[string]int{}
				stocktest.Eventually(t, "all that wait", func() bool {
					for _, turn := range a.ask("A", one, 0, "gate") {
						var id string
						var try int64
						if _, err := fmt.Sscan(turn, &id, &try); err != nil {
							t.Fatal(err)
						}
						if try > 0 && a.send(id, try) == nil {
							sent[id]++
							a.confirm(id)
						}
					}
					st := a.show()
					return st.Waiting+st.AtShop == 0
				})
				if sent["r2"] != 1 || sent["r3"] != 1 || sent["r4"] != 1 || sent["r5"] != 0 || (sent["lost"] == 0) != gone {
					t.Errorf("sent: %v", sent)
				}
				a.balanced(b, 0, 0)
			})
		})
	}
}

// An edge whose order Redis has lost finds that by itself, lets it wait again, and has the
// orders released that no edge knows any more.
func TestRejoinByItself(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		a := openWith(t, "A", stocktest.Selling(t, stocktest.Options(b), 10), one, shortly)
		a.line("r1", "lost")
		_, w := a.order("r3")
		if err := b.Client().Del(stocktest.Soon(t), a.Store.Shard().ShardKeys("s")[shard.LineKey:shard.AtShopKey]...).Err(); err != nil {
			t.Fatal(err)
		}
		stocktest.Eventually(t, "the order that waits again", func() bool { return a.place("r3").Number == 1 })
		stocktest.Eventually(t, "the release of what is lost", func() bool { return a.state("lost") == record.Released })
		a.confirm("r1")
		a.turn(w)
		a.confirm("r3")
		a.balanced(b, 0, 0)
	})
}

// After a failover or a rebuild holds may wait whose orders are lost, and no request of them is open at
// any edge: they are released all the same.
func TestOrphansOfAnotherHistory(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		a := openWith(t, "A", stocktest.Selling(t, stocktest.Options(b), 10), one, shortly)
		a.line("r1", "lost")
		keys := a.Store.Shard().ShardKeys("s")
		if err := b.Client().Del(stocktest.Soon(t), keys[shard.LineKey:shard.QueueKey+1]...).Err(); err != nil {
			t.Fatal(err)
		}
		if err := b.Client().HSet(stocktest.Soon(t), keys[shard.MetaKey], "fenced", "2 1 1 0 0 0 1").Err(); err != nil {
			t.Fatal(err)
		}
		stocktest.Eventually(t, "the release of what is lost", func() bool { return a.state("lost") == record.Released })
		a.confirm("r1")
		a.balanced(b, 0, 0)
	})
}

// failover is a primary with a replica, and edges each with a network of its own.
func failover(t *testing.T) (primary, replica *redistest.Server, link func(name string) (*shop, *stocktest.Network)) {
	primary = redistest.Start(t)
	replica = stocktest.Replica(t, primary)
	stocktest.Load(t, stocktest.OpenStore(t, stocktest.Options(primary)), stocktest.OpenSale("s", 100))
	return primary, replica, func(name string) (*shop, *stocktest.Network) {
		n := &stocktest.Network{Addr: primary.Addr()}
		o := stocktest.Options(primary)
		o.Dialer = n.Dial
		e := stocktest.NewEdge(t, o, edge.Options{})
		e.Start()
		stocktest.Look(t, e)
		return quiet(t, name, e, reservation.Pace{AtOnce: 1}), n
	}
}

// blind cuts a replica off, and keeps edges from reading the journal: from now on they know only what
// they are promised.
func (s *shop) blind(primary, replica *redistest.Server) {
	s.t.Helper()
	if err := replica.Client().Do(stocktest.Soon(s.t), "REPLICAOF", "127.0.0.1", "1").Err(); err != nil {
		s.t.Fatal(err)
	}
	if err := primary.Client().Do(stocktest.Soon(s.t), "ACL", "SETUSER", "default", "-xread", "-xrange").Err(); err != nil {
		s.t.Fatal(err)
	}
	primary.Client().ClientKillByFilter(stocktest.Soon(s.t), "TYPE", "normal")
	stocktest.Eventually(s.t, "an edge that is connected anew", func() bool {
		_, err := queue.Show(stocktest.Soon(s.t), s.Store, "s")
		return err == nil
	})
}

// lead promotes a replica and leads the edge to it.
func (s *shop) lead(replica *redistest.Server, link *stocktest.Network) {
	s.t.Helper()
	if err := replica.Client().Do(stocktest.Soon(s.t), "REPLICAOF", "NO", "ONE").Err(); err != nil {
		s.t.Fatal(err)
	}
	link.Cut()
	link.Lead(replica.Addr())
}

// over waits until the fence has ended, and the edge knows it.
func (s *shop) over() {
	s.t.Helper()
	stocktest.Eventually(s.t, "the end of the fence", func() bool {
		_, err := queue.Show(stocktest.Soon(s.t), s.Store, "s")
		return err == nil && len(s.Leases().States()) == 0 && s.Store.Shard().Clock("s").LeaseRuns()
	})
}

// What an edge was promised is told to the new server as it was: an order that has gone to the shop
// does not wait for it, and one that waits does not count as gone, although the line says otherwise.
func TestPromisesKeepTheirPlace(t *testing.T) {
	for _, paused := range []bool{true, false} {
		t.Run(fmt.Sprint("paused ", paused), func(t *testing.T) {
			t.Parallel()
			primary, replica, link := failover(t)
			a, toA := link("A")
			a.queue.Edge = a.Leases().ID()
			turn := func(paused bool) {
				t.Helper()
				_, err := queue.Resume(stocktest.Soon(t), a.Store, "s")
				if paused {
					_, err = queue.Pause(stocktest.Soon(t), a.Store, "s")
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			a.line("a0") // the fence is known to the replica
			a.confirm("a0")
			turn(paused)
			stocktest.Replicated(t, a.Store.Shard())
			a.blind(primary, replica)
			turn(!paused) // the replica does not hear of it
			a.line("a1")
			before := a.show()
			primary.Kill()
			a.lead(replica, toA)
			a.over()
			if after := a.show(); after.Waiting != before.Waiting || after.AtShop != before.AtShop {
				t.Errorf("%d wait and %d are at the shop, before the failover %d and %d", after.Waiting, after.AtShop, before.Waiting, before.AtShop)
			}
			turn(false)
			if !paused {
				a.gets(a.queue.Edge, "a1 1")
				a.mustSend("a1", 1)
			}
			a.confirm("a1")
			stocktest.Balanced(t, replica.Client(), a.Store, "s")
		})
	}
}

// After a failover orders that waited are sent once. What was sent is not sent again, even if
// the new server has not heard of it: its edge says so. What an edge may have sent that does not
// come is in doubt.
func TestFencedFailover(t *testing.T) {
	t.Parallel()
	primary, replica, link := failover(t)
	a, toA := link("A")
	// the queue's edges have the names by which the fence knows them
	a.queue.Edge = a.Leases().ID()
	gone, toGone := link("B")
	gone.queue.Edge = gone.Leases().ID()
	a.line("a1", "a2", "a3", "a4")
	gone.line("b1", "b2")
	a.confirm("a1")
	a.gets(a.queue.Edge, "a2 1")
	a.gets(gone.queue.Edge)
	stocktest.Replicated(t, a.Store.Shard())
	if err := replica.Client().Do(stocktest.Soon(t), "REPLICAOF", "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
	a.mustSend("a2", 1) // the replica does not hear of it, nor that the buyers of a4 and a5 have left
	a.line("a5")
	for _, id := range []string{"a4", "a5"} {
		if err := a.queue.Cancel(stocktest.Soon(t), "s", id, "the buyer"); err != nil {
			t.Fatal(err)
		}
	}
	toGone.Cut()
	primary.Kill()
	a.lead(replica, toA)
	stocktest.GiveUp(t, a.Edge, gone.Edge)
	a.over()
	if p := a.place("a2"); p.State != record.Held {
		t.Errorf("a2 is %+v, and was sent", p)
	}
	sent := []string{}
	stocktest.Eventually(t, "all orders", func() bool {
		for _, turn := range a.ask(a.queue.Edge, one, lease, "gate") {
			var id string
			var try int64
			if _, err := fmt.Sscan(turn, &id, &try); err != nil {
				t.Fatal(err)
			}
			if try > 0 {
				a.mustSend(id, try)
				sent = append(sent, id)
				a.confirm(id)
			}
		}
		if a.state("a2") == record.Held {
			a.confirm("a2")
		}
		return a.show().Waiting == 0
	})
	if want := []string{"a3"}; !slices.Equal(sent, want) || a.state("a4") != record.Released || a.state("a5") != record.Released {
		t.Errorf("%v are sent, want %v; a4 is %s, a5 %s", sent, want, a.state("a4"), a.state("a5"))
	}
	for _, id := range []string{"b1", "b2"} {
		if got := a.state(id); got != record.InDoubt {
			t.Errorf("%s is %s, and an edge that did not come may have sent it", id, got)
		}
	}
	stocktest.Balanced(t, replica.Client(), a.Store, "s")
}

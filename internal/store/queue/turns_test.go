package queue_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/store/identity"
	"github.com/stockgate/stockgate/internal/store/queue"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
	"github.com/stockgate/stockgate/lua"
)

// one lets one order at a time be at the shop.
var one = reservation.Pace{AtOnce: 1}

// lease is that of asked turns.
const lease = time.Hour

// line reserves for ids one after the other; no loop asks for their turns.
func (s *shop) line(ids ...string) {
	s.t.Helper()
	for _, id := range ids {
		s.put(id, s.options())
	}
}

func (s *shop) put(id string, o *reservation.QueueOptions) reservation.Hold {
	s.t.Helper()
	return s.putOrder(id, o, &queue.Order{Gate: "gate"})
}

func (s *shop) putOrder(id string, o *reservation.QueueOptions, order *queue.Order) reservation.Hold {
	s.t.Helper()
	var err error
	if o.Order, err = s.queue.Pack("s", id, order); err != nil {
		s.t.Fatal(err)
	}
	options := stocktest.HoldOptions
	options.Queue = o
	hold, refusal, err := stocktest.HoldOn(stocktest.Soon(s.t), s.Edge, id, "buyer "+id, 1, options)
	if err != nil || refusal != nil {
		s.t.Fatalf("%s: refused %+v, %v", id, refusal, err)
	}
	return hold
}

// ask asks for turns once. It returns them as texts "id try".
func (s *shop) ask(edge string, pace reservation.Pace, lease time.Duration, gates string) (turns []string) {
	s.t.Helper()
	r, _, err := s.Store.Do(stocktest.Soon(s.t), "s", shard.Op(lua.Turn, edge, lease.Milliseconds(), pace.Orders, pace.Per.Milliseconds(), pace.AtOnce, 200, gates))
	if err != nil || r.Code() != "ok" {
		s.t.Fatalf("turn: %v, %v", r, err)
	}
	for i := 5; i+1 < len(r); i += 2 {
		turns = append(turns, fmt.Sprint(r.Text(i), " ", r.Number(i+1)))
	}
	return turns
}

// gets checks which turns an edge gets.
func (s *shop) gets(edge string, want ...string) {
	s.t.Helper()
	if got := s.ask(edge, s.pace, lease, "gate"); !slices.Equal(got, want) {
		s.t.Fatalf("%s gets %q, want %q", edge, got, want)
	}
}

// send sends an order as an edge that has the turn.
func (s *shop) send(id string, try int64) error {
	_, err := s.queue.Send(stocktest.Soon(s.t), queue.Turn{Sale: "s", ID: id, Try: try}, time.Hour, time.Minute, record.ModeResponse)
	return err
}

func (s *shop) mustSend(id string, try int64) {
	s.t.Helper()
	if err := s.send(id, try); err != nil {
		s.t.Fatalf("%s: %v", id, err)
	}
}

func (s *shop) show() queue.State {
	s.t.Helper()
	st, err := queue.Show(stocktest.Soon(s.t), s.Store, "s")
	if err != nil {
		s.t.Fatal(err)
	}
	return st
}

// again puts an order off that was sent with a try.
func (s *shop) again(id string, try int64, later time.Duration) error {
	packed, err := s.queue.Pack("s", id, &queue.Order{Gate: "gate"})
	if err != nil {
		s.t.Fatal(err)
	}
	return s.queue.Again(stocktest.Soon(s.t), queue.Turn{Sale: "s", ID: id, Try: try}, "gate", packed, time.Hour, time.Minute, later, 3)
}

// balanced checks the books, and that nothing is left in the line where nothing should be.
func (s *shop) balanced(b redistest.Backend, waiting, atShop int64) {
	s.t.Helper()
	stocktest.Balanced(s.t, b.Client(), s.Store, "s")
	st := s.show()
	if st.Waiting != waiting || st.AtShop != atShop || (waiting == 0 && st.Bytes != 0) {
		s.t.Errorf("in the end the line is %+v, want %d that wait and %d at the shop", st, waiting, atShop)
	}
}

// ends are the ways in which an order frees its place at the shop.
func (s *shop) ends() map[string]func(id string) {
	must := func(_ any, err error) {
		s.t.Helper()
		if err != nil {
			s.t.Fatal(err)
		}
	}
	ctx := stocktest.Soon(s.t)
	return map[string]func(string){
		"confirm": func(id string) { must(s.Store.Confirm(ctx, "s", id, reservation.SourceAnswer, "")) },
		"release": func(id string) { must(s.Store.Release(ctx, "s", id, reservation.SourceShop, "")) },
		"doubt":   func(id string) { must(s.Store.Doubt(ctx, "s", id, "")) },
		"expiry": func(id string) {
			stocktest.Eventually(s.t, "a deadline", func() bool {
				_, err := s.Store.Expire(ctx, "s")
				return err == nil && s.state(id) != record.Held
			})
		},
	}
}

// The shop has as many orders as it may, from all edges together. Each that ends, in whichever
// way, lets the next one go, in the order in which they came.
func TestAtOnce(t *testing.T) {
	for name := range (&shop{t: t}).ends() {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, b redistest.Backend) {
				a := quiet(t, "A", stocktest.Selling(t, stocktest.Options(b), 10), reservation.Pace{AtOnce: 2})
				other := quiet(t, "B", stocktest.Ready(t, stocktest.Options(b)), a.pace)
				end := a.ends()[name]
				a.line("r1")
				other.line("r2", "r3")
				a.line("r4", "r5")
				other.gets("B")
				a.gets("A")
				for _, id := range []string{"r1", "r2"} {
					if name == "expiry" { // of orders that were sent at once the deadline is hours away
						if _, err := a.Store.Doubt(stocktest.Soon(t), "s", id, ""); err != nil {
							t.Fatal(err)
						}
						continue
					}
					end(id)
				}
				a.gets("A", "r4 1") // and B gets r3, which came first
				other.gets("B", "r3 1")
				for s, id := range map[*shop]string{a: "r4", other: "r3"} {
					if _, err := s.queue.Send(stocktest.Soon(t), queue.Turn{Sale: "s", ID: id, Try: 1}, time.Millisecond, 0, record.ModeResponse); err != nil {
						t.Fatal(err)
					}
				}
				a.gets("A")
				end("r3")
				end("r4")
				a.gets("A", "r5 1")
				a.mustSend("r5", 1)
				a.balanced(b, 0, 1)
			})
		})
	}
}

// Many orders over two edges go in the order of their arrival.
func TestOrderOfArrival(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		a := open(t, "A", stocktest.Selling(t, stocktest.Options(b), 50), one)
		other := open(t, "B", stocktest.Ready(t, stocktest.Options(b)), one)
		both := []*shop{a, other}
		if _, w := a.order("r0"); w != nil {
			t.Fatal("the first order waits")
		}
		type arrival struct {
			*shop
			queue.Turn
		}
		turns := make(chan arrival, 50)
		for i := 1; i < 30; i++ {
			s := both[i*i%3%2]
			_, w := s.order(fmt.Sprintf("r%d", 100-i)) // not in the order of their names
			go func() { turns <- arrival{s, <-w.Turn} }()
		}
		a.confirm("r0")
		other.queue.Freed("s")
		for i := 1; i < 30; i++ {
			select {
			case got := <-turns:
				if want := fmt.Sprintf("r%d", 100-i); got.ID != want {
					t.Fatalf("the turn of %s comes, want %s", got.ID, want)
				}
				got.mustSend(got.ID, got.Try)
				got.confirm(got.ID)
			case <-stocktest.Soon(t).Done():
				t.Fatal("no turn came")
			}
		}
		a.balanced(b, 0, 0)
	})
}

// An edge that was paused for so long that its turn has ended must not send: another edge has.
func TestPausedTaker(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		a := quiet(t, "A", stocktest.Selling(t, stocktest.Options(b), 10), one)
		other := quiet(t, "B", stocktest.Ready(t, stocktest.Options(b)), one)
		a.line("r1", "r2", "r3")
		a.confirm("r1")
		if got := a.ask("A", one, 0, "gate"); !slices.Equal(got, []string{"r2 1"}) {
			t.Fatalf("A gets %q", got)
		}
		stocktest.Eventually(t, "the turn at the other edge", func() bool { return slices.Equal(other.ask("B", one, lease, "gate"), []string{"r2 2"}) })
		if err := a.send("r2", 1); !errors.Is(err, queue.ErrNotYours) {
			t.Errorf("A sends after its turn: %v", err)
		}
		if err := other.queue.Yield(stocktest.Soon(t), queue.Turn{Sale: "s", ID: "r2", Try: 1}); err == nil {
			t.Error("B yields a turn that was A's")
		}
		other.mustSend("r2", 2)
		if err := a.send("r2", 1); !errors.Is(err, queue.ErrNotYours) {
			t.Errorf("A sends what B has sent: %v", err)
		}
		if err := a.send("r2", 2); !errors.Is(err, queue.ErrNotYours) {
			t.Errorf("A sends with B's turn: %v", err)
		}
		other.mustSend("r2", 2) // the same again: its answer was lost
		a.balanced(b, 1, 1)
	})
}

// A turn that was not used goes back to the head of the line: a pause, the shop's wish to be
// left alone, and its pace hold for it too.
func TestTurnGivenAgain(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		a := quiet(t, "A", stocktest.Selling(t, stocktest.Options(b), 10), reservation.Pace{AtOnce: 3})
		a.line("r9", "r8", "r7", "r6", "r5", "r4", "r3")
		for _, id := range []string{"r9", "r8", "r7"} {
			a.confirm(id)
		}
		if got := a.ask("A", a.pace, 0, "gate"); !slices.Equal(got, []string{"r6 1", "r5 1", "r4 1"}) {
			t.Fatalf("A gets %q", got)
		}
		if _, err := queue.Pause(stocktest.Soon(t), a.Store, "s"); err != nil {
			t.Fatal(err)
		}
		stocktest.Eventually(t, "turns that are over", func() bool {
			if got := a.ask("B", a.pace, lease, "gate"); got != nil {
				t.Fatalf("B gets %q in a pause", got)
			}
			return a.show().Waiting == 4
		})
		if p := a.place("r6"); p.State != record.Waiting || p.Number != 1 || !p.Still {
			t.Errorf("r6 is %+v", p)
		}
		if _, err := queue.Resume(stocktest.Soon(t), a.Store, "s"); err != nil {
			t.Fatal(err)
		}
		slow := reservation.Pace{Orders: 1, Per: time.Hour, AtOnce: 3}
		if got := a.ask("B", slow, lease, "gate"); !slices.Equal(got, []string{"r6 2"}) {
			t.Errorf("B gets %q at a pace of one", got)
		}
		if got := a.ask("B", slow, lease, "gate"); got != nil {
			t.Errorf("B gets %q beyond the pace", got)
		}
	})
}

// An edge whose gate is another one gets no turn of a dead edge, and one that has the gate does, whichever
// edge asks.
func TestGates(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		a := quiet(t, "A", stocktest.Selling(t, stocktest.Options(b), 10), one)
		a.line("r1", "r2", "r3")
		for _, gates := range []string{"", "other", "gates gat"} {
			if got := a.ask("B", one, lease, gates); got != nil {
				t.Errorf("with the gates %q B gets %q", gates, got)
			}
		}
		if got := a.ask("C", one, lease, "other gate"); got != nil {
			t.Errorf("C gets %q", got)
		}
		a.confirm("r1")
		if got := a.ask("B", one, lease, "other"); got != nil {
			t.Errorf("B gets %q", got)
		}
		if got := a.ask("C", one, lease, "other gate"); !slices.Equal(got, []string{"r2 1"}) {
			t.Errorf("C gets %q", got)
		}
	})
}

// More orders than one call looks at are those that no edge can send: they are counted, and stop nothing
// behind them. They wait in their places again when an edge has their gate, or when their own edge is back.
func TestWhatNoEdgeCanSendIsSkipped(t *testing.T) {
	b := redistest.Start(t)
	const lost = 1100 // more than FAR
	a := quiet(t, "A", stocktest.Selling(t, stocktest.Options(b), 2*lost), one)
	at := func(gate, edge, id string) {
		o := a.options()
		o.Gate, o.Edge, o.Most = gate, edge, 2*lost
		a.putOrder(id, o, &queue.Order{Gate: gate})
	}
	at("gate", "A", "r0")
	for i := range lost {
		at("gone", []string{"X", "-"}[i%2], fmt.Sprint("lost", 1000+i))
	}
	at("gate", "A", "r1")
	a.confirm("r0")
	skipped, calls := int64(0), 0
	for got := ""; got != "r1 1"; calls++ {
		for _, turn := range a.ask("B", one, lease, "gate") {
			if n, ok := strings.CutPrefix(turn, "- "); ok {
				var more int64
				if _, err := fmt.Sscan(n, &more); err != nil {
					t.Fatal(err)
				}
				skipped += more
				continue
			}
			got = turn
		}
		if calls == 5 {
			t.Fatal("what is behind orders that no edge can send gets no turn")
		}
	}
	if st := a.show(); skipped != lost || st.Skipped != lost || st.Waiting != lost {
		t.Errorf("%d were put aside, the line is %+v", skipped, st)
	}
	if p := a.place("lost1000"); !p.Still || p.State != record.Waiting {
		t.Errorf("the place of one that is skipped is %+v", p)
	}
	at("gate", "A", "r2")
	if p := a.place("r2"); p.Number != 1 {
		t.Errorf("behind orders that are skipped the place is %+v", p)
	}
	if err := a.queue.Cancel(stocktest.Soon(t), "s", "lost1001", "its buyer"); err != nil {
		t.Error(err)
	}
	for range 2 { // its turns are not given again: the shop has one order
		if got := a.ask("X", one, lease, "other"); got != nil {
			t.Errorf("X gets %q", got)
		}
	}
	if st := a.show(); st.Skipped != lost/2-1 {
		t.Errorf("when their edge is back the line is %+v", st)
	}
	a.ask("Y", one, lease, "gone")
	if st, p := a.show(), a.place("lost1002"); st.Skipped != 0 || st.Waiting != lost || p.Number != 2 || p.Still {
		t.Errorf("when an edge has their gate the line is %+v, the place %+v", st, p)
	}
	if st, err := queue.Drain(stocktest.Soon(t), a.Store, "s", "me", 2*lost); err != nil || st.Waiting != 0 || st.Skipped != 0 {
		t.Errorf("drained: %+v, %v", st, err)
	}
}

// The pace counts when orders go, however late their turns are used; of the turns that an edge has got
// while it was cut off it hears only as many as it can use soon. The others wait on, in order.
func TestPaceOfLateTurns(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		many := reservation.Pace{AtOnce: 100}
		slow := reservation.Pace{Orders: 1, Per: time.Hour, AtOnce: 100}
		a := quiet(t, "A", stocktest.Selling(t, stocktest.Options(b), 20), one)
		a.line("r0", "r1", "r2", "r3", "r4", "r5")
		a.confirm("r0")
		a.ask("A", reservation.Pace{}, lease, "gate") // it lives
		a.ask("B", many, lease, "gate")
		if st := a.show(); st.Waiting != 0 || st.AtShop != 5 {
			t.Fatalf("the line is %+v", st)
		}
		if got := a.ask("A", slow, lease, "gate"); !slices.Equal(got, []string{"r1 1"}) {
			t.Fatalf("after it was cut off A gets %q", got)
		}
		if st := a.show(); st.Waiting != 4 || st.AtShop != 1 {
			t.Errorf("the line is %+v", st)
		}
		if n := went(t, a); n != 1 {
			t.Errorf("%d orders went to the shop, r0 did", n)
		}
		if got := a.ask("A", many, lease, "gate"); !slices.Equal(got, []string{"r2 1", "r3 1", "r4 1", "r5 1"}) {
			t.Fatalf("A gets %q", got)
		}
		defer a.queue.Serve("gate", &gate{pace: slow})()
		a.mustSend("r1", 1)
		a.mustSend("r1", 1) // the same again: its answer was lost
		early := make(chan error)
		go func() { early <- a.send("r2", 1) }()
		a.queue.Stop() // else it would go in an hour
		if err := <-early; !errors.Is(err, queue.ErrNotYours) {
			t.Errorf("an order that goes too early: %v", err)
		}
		if p := a.place("r2"); p.State != record.Waiting {
			t.Errorf("r2 is %+v", p)
		}
		if hold := a.put("r6", &reservation.QueueOptions{Pace: slow, Most: 100, Memory: 1 << 20, Longest: time.Hour, Edge: "A", Gate: "gate"}); hold.State != record.Waiting {
			t.Errorf("a new order is %s before the next one may go", hold.State)
		}
	})
}

// went is how many orders of the line have gone to the shop, by all the seconds that Redis counts.
func went(t *testing.T, s *shop) (orders int64) {
	t.Helper()
	c := s.Store.Shard()
	all, err := shard.Redis(c).HGetAll(stocktest.Soon(t), c.ShardKeys("s")[shard.QueueKey]).Result()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		second, n := int64(0), int64(0) // see lua/queue.lua
		if _, err := fmt.Sscan(all[fmt.Sprint("s", i)], &second, &n); err == nil {
			orders += n
		}
	}
	return orders
}

// What an edge yields goes to another one, in its place.
func TestYield(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		a := quiet(t, "A", stocktest.Selling(t, stocktest.Options(b), 10), one)
		a.line("r1", "r3", "r2")
		a.confirm("r1")
		a.gets("A", "r3 1")
		turn := queue.Turn{Sale: "s", ID: "r3", Try: 1}
		if err := a.queue.Yield(stocktest.Soon(t), turn); err != nil {
			t.Fatal(err)
		}
		if err := a.send("r3", 1); !errors.Is(err, queue.ErrNotYours) {
			t.Errorf("it sends what it has yielded: %v", err)
		}
		if st := a.show(); st.Waiting != 2 || st.AtShop != 0 {
			t.Errorf("the line is %+v", st)
		}
		a.gets("B", "r3 2")
		if err := a.queue.Yield(stocktest.Soon(t), turn); err == nil {
			t.Error("it yields again what another edge has")
		}
		other := quiet(t, "B", stocktest.Ready(t, stocktest.Options(b)), one)
		other.mustSend("r3", 2)
		if err := other.queue.Yield(stocktest.Soon(t), queue.Turn{Sale: "s", ID: "r3", Try: 2}); err == nil {
			t.Error("it yields what was sent")
		}
		a.balanced(b, 1, 1)
	})
}

// An order that steps back lets those go first that came soon after it, and keeps its edge where its request
// is open. It leaves the line once only, and its place says why.
func TestStepBack(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		a := quiet(t, "A", stocktest.Selling(t, stocktest.Options(b), 10), one)
		a.line("r1", "r2", "r3", "r4")
		a.confirm("r1")
		a.gets("A", "r2 1")
		turn := queue.Turn{Sale: "s", ID: "r2", Try: 1}
		if err := a.queue.StepBack(stocktest.Soon(t), turn, true); err != nil {
			t.Fatal(err)
		}
		if err := a.send("r2", 1); !errors.Is(err, queue.ErrNotYours) {
			t.Errorf("it sends what has stepped back: %v", err)
		}
		a.gets("A", "r3 1")
		if err := a.queue.StepBack(stocktest.Soon(t), queue.Turn{Sale: "s", ID: "r3", Try: 1}, false); err != nil {
			t.Fatal(err)
		}
		a.gets("A", "r4 1")
		a.mustSend("r4", 1)
		a.confirm("r4")
		a.gets("B") // the request of r2 is open at A
		a.gets("A", "r2 2")
		a.mustSend("r2", 2)
		a.confirm("r2")
		a.gets("B", "r3 2")
		if err := a.queue.Cancel(stocktest.Soon(t), "s", "r3", "cart_changed"); err != nil {
			t.Fatal(err)
		}
		if p, err := a.queue.Place(stocktest.Soon(t), "s", "r3"); err != nil || p.Cause != "cart_changed" || p.Sent {
			t.Errorf("its place: %+v, %v", p, err)
		}
		if p, err := a.queue.Place(stocktest.Soon(t), "s", "r2"); err != nil || p.Cause != "" {
			t.Errorf("the place of what was sold: %+v, %v", p, err)
		}
	})
}

// The repeat of what puts an order off comes late, when the order was sent again: it stays at the shop,
// and was put off once.
func TestLateAgain(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		a := quiet(t, "A", stocktest.Selling(t, stocktest.Options(b), 10), one)
		a.line("r1", "r2")
		for try := range int64(3) {
			for range 2 { // the second time its answer was lost
				if err := a.again("r1", try, 0); err != nil {
					t.Fatal(err)
				}
			}
			a.gets("A", fmt.Sprintf("r1 %d", try+1))
			a.mustSend("r1", try+1)
			if err := a.again("r1", try, time.Hour); err != nil {
				t.Errorf("a late repeat: %v", err)
			}
			if p := a.place("r1"); p.State != record.Held {
				t.Fatalf("after a late repeat it is %+v", p)
			}
			if st := a.show(); st.Waiting != 1 || st.AtShop != 1 || st.HeldUp != 0 {
				t.Errorf("after a late repeat the line is %+v", st)
			}
		}
		if err := a.again("r1", 3, 0); !errors.Is(err, queue.ErrTooOften) {
			t.Errorf("the fourth time: %v", err)
		}
		a.confirm("r1")
		a.balanced(b, 1, 0)
	})
}

// The shop may put an order off three times. It comes before all others then, and nothing goes
// to the shop for the time that it asks for.
func TestAgain(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		a := quiet(t, "A", stocktest.Selling(t, stocktest.Options(b), 10), one)
		a.line("r1", "r2")
		for i := range 3 {
			if err := a.again("r1", int64(i), 0); err != nil {
				t.Fatal(err)
			}
			if err := a.again("r1", int64(i), 0); err != nil {
				t.Fatalf("the same again: %v", err)
			}
			if got := a.state("r1"); got != record.Held {
				t.Errorf("it is %s", got)
			}
			if p := a.place("r1"); p.State != record.Waiting || p.Number != 1 {
				t.Errorf("it is %+v", p)
			}
			a.gets("A", fmt.Sprintf("r1 %d", i+1))
			a.mustSend("r1", int64(i+1))
		}
		if err := a.again("r1", 3, 0); !errors.Is(err, queue.ErrTooOften) {
			t.Errorf("the fourth time: %v", err)
		}
		if p := a.place("r1"); p.State != record.Held {
			t.Errorf("it is %+v", p)
		}
		a.confirm("r1")
		a.gets("A", "r2 1")
		other := quiet(t, "B", stocktest.Ready(t, stocktest.Options(b)), one)
		if err := other.again("r2", 1, 0); err != nil { // nothing was sent: it waits already
			t.Errorf("another edge puts off what waits: %v", err)
		}
		a.mustSend("r2", 1)
		if err := other.again("r2", 1, 0); err == nil {
			t.Error("an edge puts off what another one has sent")
		}
		a.line("r3")
		if err := a.again("r2", 1, time.Hour); err != nil {
			t.Fatal(err)
		}
		a.gets("A")
		if st := a.show(); st.HeldUp <= 0 || st.Waiting != 2 || st.Paused {
			t.Errorf("the line is %+v", st)
		}
		if p := a.place("r3"); !p.Still || p.Number != 2 {
			t.Errorf("r3 is %+v", p)
		}
		if hold := a.put("r4", a.options()); hold.State != record.Waiting {
			t.Errorf("a new order is %s while the shop wants none", hold.State)
		}
		if st, err := queue.Resume(stocktest.Soon(t), a.Store, "s"); err != nil || st.HeldUp != 0 {
			t.Errorf("after resume: %+v, %v", st, err)
		}
		a.gets("A", "r2 2")
		a.balanced(b, 2, 1)
	})
}

// An operator stops the line, lets it go on, and releases all that waits.
func TestOperators(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		a := quiet(t, "A", stocktest.Selling(t, stocktest.Options(b), 500, stocktest.PerBuyer(1)), one)
		a.line("r1", "r2")
		if st, err := queue.Pause(stocktest.Soon(t), a.Store, "s"); err != nil || !st.Paused || st.Waiting != 1 || st.AtShop != 1 {
			t.Fatalf("paused: %+v, %v", st, err)
		}
		a.confirm("r1")
		a.gets("A")
		if hold := a.put("r3", a.options()); hold.State != record.Waiting {
			t.Errorf("a new order is %s in a pause", hold.State)
		}
		if st, err := queue.Resume(stocktest.Soon(t), a.Store, "s"); err != nil || st.Paused {
			t.Fatalf("resumed: %+v, %v", st, err)
		}
		a.gets("A", "r2 1")
		for i := range 250 {
			o := a.options()
			o.Most = 1000
			a.put(fmt.Sprint("n", i), o)
		}
		st, err := queue.Drain(stocktest.Soon(t), a.Store, "s", "an operator", 1000)
		if err != nil || st.Released != 251 || st.Waiting != 0 {
			t.Errorf("drained: %+v, %v", st, err)
		}
		for _, id := range []string{"r3", "n0", "n249"} {
			r, err := a.Store.Reservation(stocktest.Soon(t), id)
			if err != nil || r.State != record.Released || r.Cause != "an operator" {
				t.Errorf("%s is %+v, %v", id, r, err)
			}
		}
		stocktest.MustHold(t, a.Edge, "another", "buyer n0", 1) // the limit has its unit back
		turns := a.ask("A", one, lease, "gate")
		if len(turns) != 251 || slices.ContainsFunc(turns, func(turn string) bool { return !strings.HasSuffix(turn, " 0") }) {
			t.Errorf("the edge is told %q", turns)
		}
		a.mustSend("r2", 1)
		if c := stocktest.CellA(t, a.Store); c.Confirmed != 1 || c.Held != 2 {
			t.Errorf("the cell is %+v", c)
		}
		a.balanced(b, 0, 1)
	})
}

// An order that waits for longer than it may is released with all that it took, and its edge is
// told.
func TestLongest(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		a := quiet(t, "A", stocktest.Selling(t, stocktest.Options(b), 10, stocktest.PerBuyer(1)), one)
		a.line("r1")
		o := a.options()
		o.Longest = time.Millisecond
		a.put("r2", o)
		a.ends()["expiry"]("r2")
		if got := a.state("r2"); got != record.Released {
			t.Errorf("it is %s", got)
		}
		a.gets("A", "r2 0")
		a.gets("A")
		if err := a.send("r2", 1); !errors.Is(err, queue.ErrNotYours) {
			t.Errorf("it is sent: %v", err)
		}
		stocktest.MustHold(t, a.Edge, "r3", "buyer r2", 1)
		a.balanced(b, 0, 1)
	})
}

// No window of a second, by Redis's own time, has more departures than the pace and one batch,
// whichever edge asks and however often.
func TestPace(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		const perSecond, batch = 100, 3 // what may leave late, in 20 ms, and one more
		a := quiet(t, "A", stocktest.Selling(t, stocktest.Options(b), 1000), reservation.Pace{Orders: perSecond, Per: time.Second, AtOnce: 1000})
		o := a.options()
		o.Most, o.Memory = 1000, 1<<30
		var left []int64 // ms, by the journal
		ctx := stocktest.Soon(t)
		if _, err := queue.Pause(ctx, a.Store, "s"); err != nil {
			t.Fatal(err)
		}
		const orders = 250
		for i := range orders {
			a.put(fmt.Sprint("r", i), o)
		}
		if _, err := queue.Resume(ctx, a.Store, "s"); err != nil {
			t.Fatal(err)
		}
		c, tick := b.Client(), time.NewTicker(5*time.Millisecond) // asking more often takes the processor from those that are to answer
		defer tick.Stop()
		for ; len(left) < orders && ctx.Err() == nil; <-tick.C {
			for _, edge := range []string{"A", "B"} {
				for _, turn := range a.ask(edge, a.pace, lease, "gate") {
					id, _, _ := strings.Cut(turn, " ")
					score, err := c.ZScore(ctx, a.Store.Shard().ShardKeys("s")[shard.AtShopKey], id).Result()
					if err != nil {
						t.Fatal(err)
					}
					left = append(left, int64(score)-lease.Milliseconds())
				}
			}
		}
		if len(left) != orders {
			t.Fatalf("%d orders have left, want %d", len(left), orders)
		}
		slices.Sort(left)
		for i := range left {
			n := 0
			for _, at := range left[i:] {
				if at < left[i]+1000 {
					n++
				}
			}
			if n > perSecond+batch {
				t.Fatalf("%d orders leave in the second from %d", n, left[i])
			}
		}
	})
}

// strange is a queue that has another secret.
func strange(s *shop) *queue.Queue {
	return queue.New(queue.Options{Store: s.Store, Edge: "A", Secret: func() (*identity.Secret, error) { return new(identity.Secret), nil }})
}

// A ticket names its order, and no other one can be made from it.
func TestTicket(t *testing.T) {
	b := redistest.Embedded(t)
	a := quiet(t, "A", stocktest.Selling(t, stocktest.Options(b), 10), one)
	const id = "0190b5a8-7c3e-7d5a-9f7e-2b1c3d4e5f60"
	ticket, err := a.queue.Ticket("s", id)
	if err != nil {
		t.Fatal(err)
	}
	if sale, got, ok := a.queue.ReadTicket(ticket); !ok || sale != "s" || got != id {
		t.Fatalf("it names %s %s %v", sale, got, ok)
	}
	for i := range len(ticket) {
		for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+/ \n" {
			other := ticket[:i] + string(c) + ticket[i+1:]
			if _, _, ok := a.queue.ReadTicket(other); ok && other != ticket {
				t.Fatalf("%q is taken for a ticket", other)
			}
		}
	}
	for _, other := range []string{"", ticket[:len(ticket)-1], ticket + "A", ticket + ticket, ticket + "=", " " + ticket, strings.Repeat("A", 44), strings.Repeat("A", 10_000)} {
		if _, _, ok := a.queue.ReadTicket(other); ok {
			t.Errorf("%.100q is taken for a ticket", other)
		}
	}
	elsewhere := strange(a)
	if _, _, ok := elsewhere.ReadTicket(ticket); ok {
		t.Error("an edge with another secret takes it")
	}
	if _, err := a.queue.Ticket("s", "r1"); err == nil {
		t.Error("an id that is no UUID has a ticket")
	}
}

// What was packed for another sale or order, or with another secret, cannot be read; and Redis
// has nothing of it in clear.
func TestPacked(t *testing.T) {
	b := redistest.Embedded(t)
	a := quiet(t, "A", stocktest.Selling(t, stocktest.Options(b), 10), one)
	ctx := stocktest.Soon(t)
	answer := &queue.Answer{Status: 201, Body: []byte("Ann of Main Street")}
	if _, err := a.queue.KeepAnswer(ctx, "s", "r1", answer, time.Hour, 1<<20); err != nil {
		t.Fatal(err)
	}
	key := a.Store.Shard().QueueAnswerKey
	sealed, err := b.Client().Get(ctx, key("s", "r1")).Bytes()
	if err != nil || strings.Contains(string(sealed), "Ann") {
		t.Errorf("redis has %q, %v", sealed, err)
	}
	if got, err := a.queue.Answer(ctx, "s", "r1"); err != nil || got.Status != 201 || string(got.Body) != string(answer.Body) {
		t.Errorf("the answer is %+v, %v", got, err)
	}
	if got, err := a.queue.Answer(ctx, "s", "r2"); err != nil || got != nil {
		t.Errorf("of an order without an answer: %+v, %v", got, err)
	}
	for _, to := range [][2]string{{"s", "r2"}, {"t", "r1"}} {
		if err := b.Client().Set(ctx, key(to[0], to[1]), sealed, 0).Err(); err != nil {
			t.Fatal(err)
		}
		if got, err := a.queue.Answer(ctx, to[0], to[1]); !errors.Is(err, queue.ErrUnreadable) {
			t.Errorf("the answer of another order: %+v, %v", got, err)
		}
	}
	if err := b.Client().Set(ctx, key("s", "r1"), sealed, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got, err := strange(a).Answer(ctx, "s", "r1"); !errors.Is(err, queue.ErrUnreadable) {
		t.Errorf("with another secret: %+v, %v", got, err)
	}
	for i := range sealed {
		changed := slices.Clone(sealed)
		changed[i] ^= 1
		if err := b.Client().Set(ctx, key("s", "r1"), changed, 0).Err(); err != nil {
			t.Fatal(err)
		}
		if got, err := a.queue.Answer(ctx, "s", "r1"); !errors.Is(err, queue.ErrUnreadable) {
			t.Fatalf("with byte %d changed: %+v, %v", i, got, err)
		}
	}
	packed, err := a.queue.Pack("s", "r1", &queue.Order{Gate: "gate", Body: []byte("Ann of Main Street")})
	if err != nil || strings.Contains(string(packed), "Ann") {
		t.Errorf("packed: %q, %v", packed, err)
	}
}

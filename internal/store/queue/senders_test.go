package queue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/store/queue"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// gate is a sender that says which orders it gets.
type gate struct {
	name, server string
	pace         reservation.Pace
	got          chan string
}

func (g *gate) GateName() string       { return g.name }
func (g *gate) Server() string         { return g.server }
func (g *gate) Pace() reservation.Pace { return g.pace }

func (g *gate) Dispatch(_ context.Context, t queue.Turn, _ *queue.Order) { g.got <- t.ID }

// A line has the pace of the gate that makes its orders, whatever other gates there are: those of
// other sales do not speed it up. A reload changes it for orders that wait, and what is not known
// counts as slow.
func TestPaceOfItsGate(t *testing.T) {
	s := quiet(t, "A", stocktest.Selling(t, stocktest.Options(redistest.Start(t)), 10), one)
	pace := func(orders, atOnce int64) reservation.Pace {
		return reservation.Pace{Orders: orders, Per: time.Second, AtOnce: atOnce}
	}
	is := func(what string, want reservation.Pace) {
		t.Helper()
		if got := s.queue.PaceOfLine("s"); got != want {
			t.Errorf("%s: the pace is %+v, want %+v", what, got, want)
		}
	}
	leave := s.queue.Serve("slow", &gate{name: "main", pace: pace(5, 2)})
	other := s.queue.Serve("fast", &gate{name: "other", pace: pace(500, 1)})
	is("no order is known", reservation.Pace{Orders: 5, Per: time.Second, AtOnce: 1})
	w := s.queue.Enter("s", "r1", "slow", nil)
	is("an order of the first gate", pace(5, 2))
	next := s.queue.Serve("slower", &gate{name: "main", pace: pace(3, 2)})
	is("two configurations", pace(5, 2))
	leave()
	is("after the reload", pace(3, 2))
	s.queue.Enter("s", "r2", "slower", nil).Leave()
	is("an order of the next configuration", pace(3, 2))
	w.Leave()
	next()
	is("the gate is gone", pace(500, 1))
	other()
	is("all gates are gone", pace(500, 1))
	unbound := s.queue.Serve("unbound", &gate{name: "main", pace: pace(0, 9)})
	is("without a pace", pace(0, 9))
	defer s.queue.Serve("bound", &gate{name: "main", pace: reservation.Pace{Orders: 100, Per: time.Minute, AtOnce: 10}})()
	is("two gates of a name", reservation.Pace{Orders: 100, Per: time.Minute, AtOnce: 9})
	unbound()
}

// A gate that stands in two servers sends an order in the one to which it came.
func TestSentAtItsServer(t *testing.T) {
	s := open(t, "A", stocktest.Selling(t, stocktest.Options(redistest.Start(t)), 10), one)
	secure, plain := &gate{server: "secure", pace: one, got: make(chan string, 9)}, &gate{server: "plain", pace: one, got: make(chan string, 9)}
	defer s.queue.Serve("both", secure)()
	defer s.queue.Serve("both", plain)()
	s.line("r1")
	for id, server := range map[string]string{"r2": "secure", "r3": "plain", "r4": "gone"} {
		o := s.options()
		o.Gate = "both"
		s.putOrder(id, o, &queue.Order{Gate: "both", Server: server})
	}
	s.confirm("r1")
	for range 3 {
		want := plain.got
		var id string
		select {
		case id = <-plain.got:
		case id = <-secure.got:
			want = secure.got
		case <-stocktest.Soon(t).Done():
			t.Fatal("no order is sent")
		}
		if (id == "r2") != (want == secure.got) {
			t.Errorf("%s is sent at the other server", id)
		}
		if err := s.queue.Cancel(stocktest.Soon(t), "s", id, "done"); err != nil {
			t.Fatal(err)
		}
		s.queue.Freed("s")
	}
}

// An attempt is refused because nothing is heard of its reservation, which Redis has made: its
// turn releases it, and the order is not sent.
func TestAbandonedIsNotSent(t *testing.T) {
	s := redistest.Start(t)
	e := stocktest.Selling(t, stocktest.Options(s), 10)
	a := &shop{t: t, Edge: e, pace: one, sent: make(chan string, 9)}
	a.queue = queue.New(queue.Options{Store: e.Store, Edge: "A", Secret: e.Secret, Sales: func() []string { return []string{"s"} },
		Abandoned: func(sale, id string) bool { return sale == "s" && id == "r2" }})
	t.Cleanup(a.queue.Stop)
	a.line("r1", "r2", "r3")
	t.Cleanup(a.queue.Serve("gate", a))
	a.confirm("r1")
	if got := a.sends(); got != "r3" {
		t.Errorf("%s is sent, want r3", got)
	}
	if got := a.state("r2"); got != record.Released {
		t.Errorf("r2 is %s", got)
	}
	a.confirm("r3")
	a.balanced(s, 0, 0)
}

// A place reports whether the order was sent, whatever became of it, and whether the shop has
// answered where it decides later.
func TestPlaceSaysWhatWasSent(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		a := quiet(t, "A", stocktest.Selling(t, stocktest.Options(b), 10), one)
		is := func(id string, state record.State, sent, answered bool) {
			t.Helper()
			if p := a.place(id); p.State != state || p.Sent != sent || p.Answered != answered {
				t.Errorf("%s is %+v, want %s, sent %v, answered %v", id, p, state, sent, answered)
			}
		}
		a.line("r1", "r2", "r3")
		is("r1", record.Held, true, false)
		is("r2", record.Waiting, false, false)
		if err := a.queue.Cancel(stocktest.Soon(t), "s", "r3", "left"); err != nil {
			t.Fatal(err)
		}
		is("r3", record.Released, false, false)
		a.confirm("r1")
		is("r1", record.Confirmed, true, true)
		a.gets("A", "r3 0", "r2 1")
		is("r2", record.Waiting, false, false)
		if _, err := a.queue.Send(stocktest.Soon(t), queue.Turn{Sale: "s", ID: "r2", Try: 1}, time.Hour, time.Minute, record.ModeBackend); err != nil {
			t.Fatal(err)
		}
		is("r2", record.Held, true, false)
		a.Free(stocktest.Soon(t), "s", "r2")
		is("r2", record.Held, true, true)
		if _, err := a.ReleaseEventually(stocktest.Soon(t), "s", "r2", reservation.SourceShop, "status_422"); err != nil {
			t.Fatal(err)
		}
		is("r2", record.Released, true, true)
		conflict, refused := errors.AsType[*reservation.ConflictError](a.queue.Cancel(stocktest.Soon(t), "s", "r2", "left"))
		if !refused || conflict.State != record.Released {
			t.Errorf("what the shop has refused is cancelled: %v", conflict)
		}
		if err := a.queue.Cancel(stocktest.Soon(t), "s", "r3", "left"); err != nil {
			t.Errorf("what has left the line is cancelled again: %v", err)
		}
		if _, err := a.queue.Place(stocktest.Soon(t), "s", "r9"); !errors.Is(err, reservation.ErrNotFound) {
			t.Errorf("an order that is not known: %v", err)
		}
	})
}

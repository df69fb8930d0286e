package queue_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/queue"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// shop is an edge with a queue whose orders go to no shop.
type shop struct {
	t *testing.T
	*edge.Edge
	queue *queue.Queue
	pace  reservation.Pace
	sent  chan string // ids that were sent without their request
}

// open starts a queue on an edge. Its stop is that of a process which is killed: nothing is
// told to Redis.
func open(t *testing.T, name string, e *edge.Edge, pace reservation.Pace) *shop {
	t.Helper()
	return openWith(t, name, e, pace, time.Hour)
}

// openWith also says how long a turn lasts, and how long an edge counts as alive that is silent.
func openWith(t *testing.T, name string, e *edge.Edge, pace reservation.Pace, lease time.Duration) *shop {
	t.Helper()
	s := quietWith(t, name, e, pace, lease)
	t.Cleanup(s.queue.Serve("gate", s))
	return s
}

// quiet opens a queue that asks for turns only for the requests that are open.
func quiet(t *testing.T, name string, e *edge.Edge, pace reservation.Pace) *shop {
	t.Helper()
	return quietWith(t, name, e, pace, time.Hour)
}

func quietWith(t *testing.T, name string, e *edge.Edge, pace reservation.Pace, lease time.Duration) *shop {
	t.Helper()
	s := &shop{t: t, Edge: e, pace: pace, sent: make(chan string, 1000)}
	s.queue = queue.New(queue.Options{Lease: lease, Store: e.Store, Edge: name, Secret: e.Secret, Sales: func() []string { return []string{"s"} }})
	t.Cleanup(s.queue.Stop)
	return s
}

func (s *shop) GateName() string       { return "" }
func (s *shop) Server() string         { return "" }
func (s *shop) Pace() reservation.Pace { return s.pace }

func (s *shop) Dispatch(ctx context.Context, t queue.Turn, o *queue.Order) {
	if _, err := s.queue.Send(ctx, t, time.Hour, time.Minute, record.ModeResponse); err == nil {
		s.sent <- t.ID
	}
}

func (s *shop) options() *reservation.QueueOptions {
	return &reservation.QueueOptions{Pace: s.pace, Most: 100, Memory: 1 << 20, Longest: time.Hour, Edge: s.queue.Edge, Gate: "gate"}
}

// order reserves one unit for a buyer. A waiter is nil where the order does not wait.
func (s *shop) order(id string) (reservation.Hold, *queue.Waiter) {
	s.t.Helper()
	hold, w, refusal := s.try(id, s.options())
	if refusal != nil {
		s.t.Fatalf("%s is refused: %+v", id, refusal)
	}
	return hold, w
}

func (s *shop) try(id string, o *reservation.QueueOptions) (reservation.Hold, *queue.Waiter, *sale.Refusal) {
	s.t.Helper()
	var err error
	if o.Order, err = s.queue.Pack("s", id, &queue.Order{Gate: "gate", Method: "POST", URI: "/" + id}); err != nil {
		s.t.Fatal(err)
	}
	w := s.queue.Enter("s", id, "gate", o.Order)
	options := stocktest.HoldOptions
	options.Queue = o
	hold, refusal, err := stocktest.HoldOn(stocktest.Soon(s.t), s.Edge, id, "buyer "+id, 1, options)
	if err != nil {
		s.t.Fatal(err)
	}
	if refusal != nil || hold.State != record.Waiting {
		w.Leave()
		return hold, nil, refusal
	}
	w.Wait()
	return hold, w, nil
}

// turn waits for the turn of an order and sends it. A turn that has passed meanwhile comes again.
func (s *shop) turn(w *queue.Waiter) reservation.Hold {
	s.t.Helper()
	for soon := stocktest.Soon(s.t); ; {
		select {
		case turn := <-w.Turn:
			hold, err := s.queue.Send(stocktest.Soon(s.t), turn, time.Hour, time.Minute, record.ModeResponse)
			if errors.Is(err, queue.ErrNotYours) {
				w.Wait()
				continue
			}
			if err != nil {
				s.t.Fatalf("%+v: %v", turn, err)
			}
			w.Leave()
			return hold
		case <-soon.Done():
			s.t.Fatal("no turn came")
		}
	}
}

func (s *shop) confirm(id string) {
	s.t.Helper()
	if _, err := s.ConfirmEventually(stocktest.Soon(s.t), "s", id, "status_200"); err != nil {
		s.t.Fatal(err)
	}
	s.queue.Freed("s")
}

func (s *shop) state(id string) record.State { return stocktest.State(s.t, s.Store, id) }

func (s *shop) place(id string) queue.Place {
	s.t.Helper()
	p, err := s.queue.Place(stocktest.Soon(s.t), "s", id)
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

// One order at a time: the others wait in the order in which they came, and each has the turn
// when the one before it has ended.
func TestOrdersWait(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		s := open(t, "A", stocktest.Selling(t, stocktest.Options(b), 10), reservation.Pace{AtOnce: 1})
		if hold, w := s.order("r1"); w != nil || hold.State != record.Held {
			t.Fatalf("the first order is %s", hold.State)
		}
		_, second := s.order("r2")
		_, third := s.order("r3")
		for id, want := range map[string]int64{"r2": 1, "r3": 2} {
			if p := s.place(id); p.State != record.Waiting || p.Number != want {
				t.Errorf("%s: %+v, want place %d", id, p, want)
			}
		}
		s.confirm("r1")
		if hold := s.turn(second); hold.State != record.Held || !hold.Exp.Before(hold.Deadline) {
			t.Errorf("the second order is sent with %+v", hold)
		}
		if p := s.place("r2"); p.State != record.Held {
			t.Errorf("the second order is %+v", p)
		}
		s.confirm("r2")
		s.turn(third)
		s.confirm("r3")
		if raw := stocktest.Balanced(t, b.Client(), s.Store, "s"); raw == nil {
			t.Error("no books")
		}
		state, err := queue.Show(stocktest.Soon(t), s.Store, "s")
		if err != nil || state.Waiting != 0 || state.AtShop != 0 || state.Bytes != 0 {
			t.Errorf("in the end the line is %+v (%v)", state, err)
		}
	})
}

// A unit of a region waits, is sent, and goes back to its region where it leaves the line.
func TestRegions(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		s := open(t, "A", stocktest.Selling(t, stocktest.Options(b), 10), reservation.Pace{AtOnce: 1})
		north := func(id string) *queue.Waiter {
			w := s.queue.Enter("s", id, "gate", nil)
			l, ok := s.Catalogue().Sale("s")
			if !ok {
				t.Fatal("the edge does not know the sale")
			}
			a := &sale.Attempt{Sale: "s", Buyer: id, Region: "north", Lines: []sale.Line{{SKU: "b", Quantity: 2}}, Key: id, Print: "print"}
			lines, refusal := l.Sale.Resolve(a)
			if refusal != nil {
				t.Fatalf("%s: %+v", id, refusal)
			}
			o := stocktest.HoldOptions
			o.Queue = s.options()
			var err error
			if o.Queue.Order, err = s.queue.Pack("s", id, &queue.Order{Gate: "gate", Method: "POST", URI: "/" + id}); err != nil {
				t.Fatal(err)
			}
			hold, refusal, err := s.Hold(stocktest.Soon(t), id, l, a, lines, o)
			if err != nil || refusal != nil || hold.State != record.Waiting || hold.Lines[0].Region != "north" {
				t.Fatalf("%s: %+v, %+v, %v", id, hold, refusal, err)
			}
			w.Wait()
			return w
		}
		s.order("r1")
		first := north("n1")
		north("n2")
		if err := s.queue.Cancel(stocktest.Soon(t), "s", "n2", "cancelled"); err != nil {
			t.Fatal(err)
		}
		s.confirm("r1")
		s.turn(first)
		s.confirm("n1")
		if r := stocktest.Balanced(t, b.Client(), s.Store, "s"); r.Cells[sale.Cell("b", "north")] != "5 3 0 0 2" || r.Cells[sale.Cell("b", "south")] != "5 5 0 0 0" {
			t.Errorf("the cells are %v, want 2 units of the north confirmed", r.Cells)
		}
	})
}

// Without the replicas that must have it, no edge hears that it may send an order, and another one
// does not get its turn: the first may have been told.
func TestSendWithoutReplicas(t *testing.T) {
	server := redistest.Start(t)
	replica := stocktest.Replica(t, server)
	o := stocktest.Options(server)
	o.ReplicaAcks, o.ReplicaAcksWait = 1, 30*time.Second
	s := openWith(t, "A", stocktest.Selling(t, o, 10), reservation.Pace{AtOnce: 1}, time.Hour)
	o.ReplicaAcksWait = 100 * time.Millisecond
	soon := quiet(t, "A", stocktest.Ready(t, o), s.pace) // the same edge, which waits less long
	s.order("r1")
	_, w := s.order("r2")
	s.confirm("r1")
	var turn queue.Turn
	select {
	case turn = <-w.Turn:
	case <-stocktest.Soon(t).Done():
		t.Fatal("no turn came")
	}
	replica.Stop()
	if _, err := soon.queue.Send(stocktest.Soon(t), turn, time.Hour, time.Minute, record.ModeResponse); !errors.Is(err, shard.ErrUnavailable) {
		t.Errorf("sending without a replica: %v", err)
	}
	other := quiet(t, "B", stocktest.Ready(t, stocktest.Options(server)), s.pace)
	if got := other.ask("B", s.pace, time.Hour, "gate"); len(got) != 0 {
		t.Errorf("another edge gets %v", got)
	}
	if p := other.place("r2"); p.State != record.Held {
		t.Errorf("the order is %+v, and may have been sent", p)
	}
	stocktest.Balanced(t, server.Client(), other.Store, "s")
}

// What has no room in the line is refused as busy, and gets no stock.
func TestFullLine(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		s := open(t, "A", stocktest.Selling(t, stocktest.Options(b), 10), reservation.Pace{AtOnce: 1})
		s.order("r1")
		s.order("r2")
		o := s.options()
		o.Most = 1
		if _, _, refusal := s.try("r3", o); refusal == nil || refusal.Reason != sale.Busy {
			t.Errorf("an order beyond the most that may wait: %+v", refusal)
		}
		o = s.options()
		o.Memory = 10
		if _, _, refusal := s.try("r4", o); refusal == nil || refusal.Reason != sale.Busy {
			t.Errorf("an order beyond the memory: %+v", refusal)
		}
		if c := stocktest.CellA(t, s.Store); c.Held != 2 {
			t.Errorf("the cell is %+v", c)
		}
	})
}

// An order whose buyer cancels it leaves the line with its stock; one that was sent cannot.
func TestCancel(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		s := open(t, "A", stocktest.Selling(t, stocktest.Options(b), 10), reservation.Pace{AtOnce: 1})
		s.order("r1")
		_, w := s.order("r2")
		if err := s.queue.Cancel(stocktest.Soon(t), "s", "r2", "cancelled"); err != nil {
			t.Fatal(err)
		}
		select {
		case turn := <-w.Turn:
			if turn.Try != 0 {
				t.Errorf("a cancelled order has the turn: %+v", turn)
			}
		case <-stocktest.Soon(t).Done():
			t.Fatal("the request is not told that its order was cancelled")
		}
		if got := s.state("r2"); got != record.Released {
			t.Errorf("the cancelled order is %s", got)
		}
		if err := s.queue.Cancel(stocktest.Soon(t), "s", "r1", "cancelled"); !errors.Is(err, queue.ErrAtShop) {
			t.Errorf("cancelling what was sent: %v", err)
		}
		if c := stocktest.CellA(t, s.Store); c.Held != 1 || c.Available != 9 {
			t.Errorf("the cell is %+v", c)
		}
		stocktest.Balanced(t, b.Client(), s.Store, "s")
	})
}

// countMovements counts the movements of a journal that contain a text.
func countMovements(journal []redis.XMessage, text string) (n int) {
	for _, entry := range journal {
		movements, _ := entry.Values["movements"].(string)
		n += strings.Count(movements, text)
	}
	return n
}

// An edge that has lost Redis's answer to its reserve request, and reports later that it never
// sent the order, releases nothing that another edge has sent meanwhile. The shop's word does.
func TestLateReleaseOfWhatWasSent(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		s := open(t, "A", stocktest.Selling(t, stocktest.Options(b), 10), reservation.Pace{AtOnce: 1})
		s.order("r1")
		_, w := s.order("r2")
		s.confirm("r1")
		s.turn(w)
		late := func(want record.State) {
			t.Helper()
			_, err := s.ReleaseEventually(stocktest.Soon(t), "s", "r2", reservation.SourceUnheard, "unsent")
			if conflict, ok := errors.AsType[*reservation.ConflictError](err); !ok || conflict.State != want {
				t.Errorf("a late release: %v, want a conflict with %s", err, want)
			}
		}
		late(record.Held)
		// a failover has the hold, and not the line
		keys := s.Store.Shard().ShardKeys("s")
		if err := b.Client().Del(stocktest.Soon(t), keys[shard.OrdersKey], keys[shard.AtShopKey]).Err(); err != nil {
			t.Fatal(err)
		}
		late(record.Held)
		if _, err := s.DoubtEventually(stocktest.Soon(t), "s", "r2", "status_500"); err != nil {
			t.Fatal(err)
		}
		late(record.InDoubt)
		// a rebuild has neither the line nor that there was one
		if err := errors.Join(
			b.Client().Del(stocktest.Soon(t), keys[shard.LineKey:shard.QueueKey+1]...).Err(), b.Client().HDel(stocktest.Soon(t), keys[shard.MetaKey], "queue").Err(),
		); err != nil {
			t.Fatal(err)
		}
		late(record.InDoubt)
		if state, err := s.ReleaseEventually(stocktest.Soon(t), "s", "r2", reservation.SourceShop, "status_409"); err != nil || state != record.Released {
			t.Errorf("the shop's release: %s, %v", state, err)
		}
		stocktest.Balanced(t, b.Client(), s.Store, "s")
	})
}

package reservation_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/ledger/recovery"
	"github.com/stockgate/stockgate/internal/store/lists"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// promise is an operation with the effect that must outlive a failover once it was answered.
type promise struct {
	do   func(context.Context, *edge.Edge) error
	kept func(context.Context, *reservation.Store) (any, error)
	want any
}

// promises are all that a client, the shop, an operator or the outbox's receiver is told.
func promises(ops map[string]func(context.Context, *edge.Edge) error) map[string]promise {
	is := func(id string) func(context.Context, *reservation.Store) (any, error) {
		return func(ctx context.Context, s *reservation.Store) (any, error) {
			r, err := s.ReservationIn(ctx, "s", id)
			if err != nil {
				return nil, err
			}
			return r.State, nil
		}
	}
	stock := func(sale string) func(context.Context, *reservation.Store) (any, error) {
		return func(ctx context.Context, s *reservation.Store) (any, error) {
			b, err := s.SaleStock(ctx, sale)
			if err != nil {
				return nil, err
			}
			return b.Items[0].Stock, nil
		}
	}
	entry := []lists.Entry{stocktest.Text("buyer", "Ann")}
	return map[string]promise{
		"reserve":  {ops["reserve"], is("new"), record.Held},
		"confirm":  {ops["confirm"], is("r1"), record.Confirmed},
		"release":  {ops["release"], is("r2"), record.Released},
		"doubt":    {ops["doubt"], is("r3"), record.InDoubt},
		"recreate": {ops["recreate"], is("lost"), record.Confirmed},
		"probed":   {ops["probed"], is("r6"), record.Confirmed},
		"lookup":   {ops["lookup"], is("r1"), record.Held},
		"adjust":   {ops["adjust"], stock("s"), int64(11)},
		"apply":    {ops["apply"], stock("other"), int64(5)},
		"return": {ops["return"], func(ctx context.Context, s *reservation.Store) (any, error) {
			r, err := recovery.NewRestorer(s).RecordOf(ctx, "s", "r4")
			if err != nil {
				return nil, err
			}
			return record.UnitsText(r.Returned), nil
		}, "a 1"},
		"extend": {ops["extend"], func(ctx context.Context, s *reservation.Store) (any, error) {
			r, err := s.ReservationIn(ctx, "s", "r5")
			if err != nil {
				return nil, err
			}
			return r.Deadline.Sub(r.Created) > stocktest.HoldOptions.HoldFor, nil
		}, true},
		"status": {ops["status"], func(ctx context.Context, s *reservation.Store) (any, error) {
			_, status, _, err := s.Journal().SaleDocument(ctx, "s")
			return status, err
		}, "paused"},
		"align": {func(ctx context.Context, e *edge.Edge) error {
			_, _, err := e.Store.Align(ctx, "s", "me")
			return err
		}, func(ctx context.Context, s *reservation.Store) (any, error) {
			h, err := s.Journal().Head(ctx, "s")
			return h.Lead, err
		}, time.Duration(0)},
		"list": {func(ctx context.Context, e *edge.Edge) error {
			secret, err := e.Secret()
			if err != nil {
				return err
			}
			_, err = lists.New(e.Store.Shard()).Add(ctx, secret, "vips", entry)
			return err
		}, func(ctx context.Context, s *reservation.Store) (any, error) {
			return lists.New(s.Shard()).Count(ctx, "vips")
		}, int64(1)},
		"outbox": {func(ctx context.Context, e *edge.Edge) error {
			at, _, err := e.Store.Journal().AcquireLease(ctx, "s", "me", time.Hour, 0, 0)
			if err == nil {
				at, _, err = e.Store.Journal().AcquireLease(ctx, "s", "me", time.Hour, at.Epoch, e.Store.Shard().Seq("s"))
			}
			return err
		}, is("r1"), record.Held},
	}
}

// No operation is answered before the replicas have it, also not when it is repeated; what
// was answered outlives a failover.
func TestWhatWasToldIsKept(t *testing.T) {
	t.Parallel()
	for name, p := range promises(stocktest.EveryOperation("r1", "r2", "r3", "r4", "r5", "r6")) {
		t.Run(name, func(t *testing.T) {
			primary := redistest.Start(t)
			second := stocktest.Replica(t, primary)
			o := stocktest.Options(primary)
			o.ReplicaAcks, o.ReplicaAcksWait = 1, 30*time.Second
			e, _ := stocktest.WithHolds(t, o)
			o.ReplicaAcksWait = time.Millisecond
			hasty := openEdge(t, o)

			second.Pause()
			for range 2 {
				err := p.do(stocktest.Soon(t), hasty)
				if !errors.Is(err, shard.ErrNotReplicated) || !errors.Is(err, shard.ErrUnavailable) || !strings.Contains(err.Error(), "0 of 1 replicas have it") {
					t.Errorf("without the replica it ends with %v, want %v", err, shard.ErrNotReplicated)
				}
			}
			second.Resume()
			if err := p.do(stocktest.Soon(t), e); err != nil {
				t.Fatalf("the same again, with the replica, ends with %v", err)
			}
			primary.Kill()
			if err := second.Client().ReplicaOf(stocktest.Soon(t), "NO", "ONE").Err(); err != nil {
				t.Fatal(err)
			}
			if got, err := p.kept(stocktest.Soon(t), stocktest.OpenStore(t, stocktest.Options(second))); err != nil || got != p.want {
				t.Errorf("after the failover it is %v, %v, want %v", got, err, p.want)
			}
		})
	}
}

// openEdge is an edge that knows its sales and its secret, with or without replicas.
func openEdge(t *testing.T, o shard.Options) *edge.Edge {
	t.Helper()
	e := stocktest.NewEdge(t, o, edge.Options{})
	_ = e.Refresh(stocktest.Soon(t))
	if _, err := e.Secret(); err != nil {
		t.Fatal(err)
	}
	return e
}

// All that goes together waits for the replicas once, and for all of it.
func TestOneWaitForABatch(t *testing.T) {
	s := redistest.Start(t)
	r := stocktest.Replica(t, s)
	p := redistest.NewProxy(t, s.Addr())
	direct := stocktest.OpenStore(t, stocktest.Options(s))
	stocktest.Load(t, direct, stocktest.OpenSale("s", 99))
	for _, id := range []string{"x1", "x2", "x3"} {
		stocktest.MustHold(t, stocktest.Ready(t, stocktest.Options(s)), id, id, 1)
	}
	o := stocktest.At(p.Addr(), stocktest.Long)
	o.ReplicaAcks, o.ReplicaAcksWait = 1, 30*time.Second
	c := &crowded{Faulty: &stocktest.Faulty{T: t, Server: s, Proxy: p, Edge: stocktest.Ready(t, o), Direct: direct}, errs: map[string]error{}}
	ops := c.reserves(9)
	ops["r003a"] = func() error { _, err := c.Edge.ConfirmEventually(context.Background(), "s", "x1", ""); return err }
	ops["r005a"] = func() error {
		_, err := c.Edge.ReleaseEventually(context.Background(), "s", "x2", reservation.SourceShop, "")
		return err
	}
	ops["r007a"] = func() error { _, err := c.Edge.DoubtEventually(context.Background(), "s", "x3", ""); return err }
	before := callsOf(t, s, "wait")
	c.together(ops, nil)
	c.all(fine)
	if n := callsOf(t, s, "wait") - before; n != 2 {
		t.Errorf("redis was asked %d times to wait, want once for the first operation and once for those after it", n)
	}
	primary, second := c.Audit(), stocktest.Balanced(t, r.Client(), stocktest.OpenStore(t, stocktest.Options(r)), "s")
	if err := second.Differs(primary); err != nil {
		t.Errorf("the replica lacks what was answered: %v", err)
	}
}

// callsOf is how often a command was called.
func callsOf(t *testing.T, s *redistest.Server, command string) (n int) {
	t.Helper()
	info, err := s.Client().Info(stocktest.Soon(t), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(info) {
		if rest, ok := strings.CutPrefix(line, "cmdstat_"+command+":calls="); ok {
			if _, err := fmt.Sscan(strings.Split(rest, ",")[0], &n); err != nil {
				t.Fatal(err)
			}
		}
	}
	return n
}

// Without replicas no operation succeeds. Outcomes are told again until a replica has them,
// also the releases of reserves that were not acknowledged.
func TestOutcomesWithoutReplicas(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	r := stocktest.Replica(t, s)
	p := redistest.NewProxy(t, s.Addr())
	direct := stocktest.OpenStore(t, stocktest.Options(s))
	stocktest.Load(t, direct, stocktest.OpenSale("s", 9))
	stocktest.MustHold(t, stocktest.Ready(t, stocktest.Options(s)), "x1", "x1", 1)
	o := stocktest.At(p.Addr(), stocktest.Long)
	o.ReplicaAcks, o.ReplicaAcksWait = 1, 5*time.Second
	c := &crowded{Faulty: &stocktest.Faulty{T: t, Server: s, Proxy: p, Edge: stocktest.Ready(t, o), Direct: direct}, errs: map[string]error{}}
	r.Stop()
	ops := c.reserves(2)
	ops["r000a"] = func() error { _, err := c.Edge.ConfirmEventually(context.Background(), "s", "x1", ""); return err }
	c.together(ops, nil)
	c.all(func(err error) bool { return errors.Is(err, shard.ErrNotReplicated) })
	if n := c.Edge.Backlog(); n != 3 {
		t.Errorf("%d outcomes wait, want a confirm and two releases", n)
	}
	c.Edge.Start()
	want := map[string]record.State{"x1": "confirmed", "r000": "released", "r001": "released"}
	for id, state := range want {
		stocktest.Eventually(t, id+" "+string(state), func() bool { return stocktest.State(t, c.Direct, id) == state })
	}
	if n := c.Edge.Backlog(); n != 3 {
		t.Errorf("%d outcomes wait for a replica, want all three", n)
	}
	r.Restart()
	stocktest.Eventually(t, "an empty backlog", func() bool { return c.Edge.Backlog() == 0 })
	replica := stocktest.OpenStore(t, stocktest.Options(r))
	for id, state := range want {
		if got := stocktest.State(t, replica, id); got != state {
			t.Errorf("at the replica %s is %q, want %q", id, got, state)
		}
	}
}

// An edge whose replicas are away is not ready. It logs once what to do, and once when it
// is over.
func TestEdgeWithoutReplicas(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	core, logged := observer.New(zap.InfoLevel)
	o := stocktest.Options(s)
	o.ReplicaAcks, o.ReplicaAcksWait = 1, 5*time.Second
	e := stocktest.NewEdge(t, o, edge.Options{Log: zap.New(core)})
	stocktest.Load(t, stocktest.OpenStore(t, stocktest.Options(s)), stocktest.OpenSale("s", 3))
	said := func(message string, want int) {
		t.Helper()
		if n := logged.FilterMessage(message).Len(); n != want {
			t.Errorf("%q was logged %d times, want %d", message, n, want)
		}
	}
	lacks := func(err error, want string) {
		t.Helper()
		if !errors.Is(err, shard.ErrUnavailable) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	for range 3 {
		lacks(e.Refresh(stocktest.Soon(t)), "replica_acks 1: no replica is connected: connect one, or lower replica_acks")
	}
	lacks(e.Ready(), "no replica is connected")
	said("not selling: the gates answer 503", 1)
	if _, ok := e.Catalogue().Sale("s"); !ok {
		t.Error("the edge has not read the sales")
	}
	r := stocktest.Replica(t, s)
	stocktest.Eventually(t, "an edge that sells", func() bool { return e.Refresh(stocktest.Soon(t)) == nil })
	if err := e.Ready(); err != nil {
		t.Error(err)
	}
	said("selling: redis answers", 1)

	o.ReplicaAcksWait = time.Millisecond
	hasty := openEdge(t, o)
	r.Pause()
	lacks(hasty.Refresh(stocktest.Soon(t)), "0 of the 1 replicas that are connected have within 1ms what was written")
	lacks(hasty.ReadyAt(time.Now().Add(time.Minute)), "replica_acks 1")
	r.Resume()
}

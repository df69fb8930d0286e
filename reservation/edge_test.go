package reservation_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/redistest"
	"github.com/stockgate/stockgate/reservation"
	"github.com/stockgate/stockgate/sale"
)

func TestStartAndStop(t *testing.T) {
	orders := map[string][]func(*reservation.Edge, context.Context) error{
		"start, stop":             {start, stopEdge},
		"start twice, stop twice": {start, start, stopEdge, stopEdge},
		"stop before start":       {stopEdge, start, stopEdge},
		"only stop":               {stopEdge},
	}
	for name, calls := range orders {
		t.Run(name, func(t *testing.T) { // what still runs at the end fails TestMain
			e := newEdge(t, options(redistest.Embedded(t)), reservation.EdgeOptions{})
			for _, call := range calls {
				if err := call(e, soon(t)); err != nil {
					t.Error(err)
				}
			}
			if err := e.Refresh(soon(t)); err == nil {
				t.Error("a stopped edge still has its connections")
			}
		})
	}
}

func start(e *reservation.Edge, _ context.Context) error      { e.Start(); return nil }
func stopEdge(e *reservation.Edge, ctx context.Context) error { return e.Stop(ctx) }

// Stop tells Redis what waits; what cannot be told within its time stays untold.
func TestStopTellsTheBacklog(t *testing.T) {
	for name, answers := range map[string]bool{"redis answers": true, "redis is gone": false} {
		t.Run(name, func(t *testing.T) {
			f := newFaulty(t, long)
			for i := range 3 {
				mustHold(t, f.edge, fmt.Sprint("r", i), fmt.Sprint(i), 1)
			}
			f.proxy.DropAll()
			for i := range 3 {
				if _, err := f.edge.ConfirmEventually(soon(t), "s", fmt.Sprint("r", i), ""); !errors.Is(err, reservation.ErrUnavailable) {
					t.Fatalf("confirm fails with %v, want %v", err, reservation.ErrUnavailable)
				}
			}
			f.edge.Start()
			want := reservation.Held
			ctx := soon(t)
			if answers {
				f.proxy.Heal()
				want = reservation.Confirmed
			} else {
				var cancel context.CancelFunc
				ctx, cancel = context.WithCancel(ctx)
				cancel()
			}
			if err := f.edge.Stop(ctx); err != nil {
				t.Error(err)
			}
			for i := range 3 {
				if got := state(t, f.direct, fmt.Sprint("r", i)); got != want {
					t.Errorf("r%d is %s, want %s", i, got, want)
				}
			}
			f.audit()
		})
	}
}

// counter counts what an edge tells its metrics.
type counter struct{ reserved, failed, dropped, unbacked, remembered, asked atomic.Int64 }

func (c *counter) Reserved(time.Duration) { c.reserved.Add(1) }
func (c *counter) RedisFailed(string)     { c.failed.Add(1) }
func (c *counter) BacklogDropped()        { c.dropped.Add(1) }
func (c *counter) SoldUnbacked()          { c.unbacked.Add(1) }
func (c *counter) NothingLeft(remembered bool) {
	if remembered {
		c.remembered.Add(1)
	} else {
		c.asked.Add(1)
	}
}

func TestMetrics(t *testing.T) {
	var counted counter
	s := redistest.Start(t)
	e := selling(t, options(s), 1)
	e.SetMetrics(&counted)
	mustHold(t, e, "r1", "Ann", 1)
	if _, err := e.ReleaseEventually(soon(t), "s", "r1", reservation.Shop, ""); err != nil {
		t.Fatal(err)
	}
	mustHold(t, e, "r2", "Bob", 1)
	if got, err := e.ConfirmEventually(soon(t), "s", "r1", "status_200"); err != nil || got != reservation.Unbacked {
		t.Errorf("a late confirm gives %s, %v, want unbacked", got, err)
	}
	s.Stop()
	_, _, err := hold(soon(t), e, "r3", "Cy", 1)
	if !errors.Is(err, reservation.ErrUnavailable) {
		t.Fatal(err)
	}
	if r, u, f := counted.reserved.Load(), counted.unbacked.Load(), counted.failed.Load(); r != 3 || u != 1 || f == 0 {
		t.Errorf("counted %d reserves, %d unbacked, %d failures; want 3, 1, some", r, u, f)
	}
	e.SetMetrics(nil)
	if _, _, err := hold(soon(t), e, "r4", "Cy", 1); err == nil {
		t.Error("redis is stopped")
	}
}

// What one edge is told, the other learns by itself.
func TestEdgesAgree(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		first := newEdge(t, options(b), reservation.EdgeOptions{})
		second := newEdge(t, options(b), reservation.EdgeOptions{})
		first.Start()
		second.Start()
		sees := func(what string, so func(*reservation.Listing) bool) {
			t.Helper()
			eventually(t, what, func() bool {
				l, ok := second.Catalogue().Sale("s")
				return ok && so(l)
			})
		}
		load(t, first.Store, openSale("s", 3))
		sees("the open sale", func(l *reservation.Listing) bool { return l.Status == sale.Open && l.Verdict(time.Now()) == nil })
		if got := second.Catalogue().Listing("a"); len(got) != 1 {
			t.Errorf("%d sales list a", len(got))
		}
		if err := first.Store.SetStatus(soon(t), "s", sale.Paused, "me"); err != nil {
			t.Fatal(err)
		}
		sees("the pause", func(l *reservation.Listing) bool { return l.Status == sale.Paused && l.Verdict(time.Now()) != nil })
		if err := first.Store.SetStatus(soon(t), "s", sale.Open, "me"); err != nil {
			t.Fatal(err)
		}
		file := openSale("s", 3)
		file.Items = append(file.Items, sale.Item{SKU: "c", Stock: 1})
		if _, err := first.ApplyUnlessLost(soon(t), file, reservation.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
		sees("the new item", func(l *reservation.Listing) bool { _, ok := l.Sale.Item("c"); return ok && l.Status == sale.Open })
		load(t, first.Store, openSale("t", 3))
		eventually(t, "the second sale", func() bool { return len(second.Catalogue().Listing("a")) == 2 })
		if err := errors.Join(first.Ready(), second.Ready()); err != nil {
			t.Error(err)
		}
	})
}

// A sale that the index names and Redis does not have is lost, and looking at it again
// and again makes no other catalogue.
func TestAnnouncedSale(t *testing.T) {
	b := redistest.Embedded(t)
	e := selling(t, options(b), 3)
	if err := b.Client().SAdd(soon(t), "stockgate:sales", "ghost").Err(); err != nil {
		t.Fatal(err)
	}
	look(t, e)
	before := e.Catalogue()
	if l, ok := before.Sale("ghost"); !ok || !l.Lost() || before.Complete() {
		t.Errorf("it is not lost: %v %+v", ok, l)
	}
	look(t, e)
	if e.Catalogue() != before {
		t.Error("the catalogue is another one")
	}
}

// An edge that has not seen a change yet is told by Redis, reads the sale again and
// goes on in the same attempt.
func TestChangeDuringAnAttempt(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e := selling(t, options(b), 3)
		change := func(limits ...sale.Limit) {
			t.Helper()
			if _, err := e.ApplyUnlessLost(soon(t), openSale("s", 3, limits...), reservation.ApplyOptions{Force: true}); err != nil {
				t.Fatal(err)
			}
		}
		change(perBuyer(1)) // the catalogue does not know of it
		mustHold(t, e, "r1", "Ann", 1)
		_, refusal, err := hold(soon(t), e, "r2", "Ann", 1)
		if err != nil || refusal == nil || refusal.Reason != sale.Pending || *refusal.Limit != perBuyer(1) {
			t.Errorf("refused %+v, %v; want the new limit", refusal, err)
		}
		file := openSale("s", 3, perBuyer(1))
		file.Items[0].SKU = "renamed"
		if _, err := e.ApplyUnlessLost(soon(t), file, reservation.ApplyOptions{}); !errors.Is(err, reservation.ErrRefused) {
			t.Errorf("an item with a held unit goes: %v", err)
		}
		if err := e.Store.SetStatus(soon(t), "s", sale.Closed, "me"); err != nil {
			t.Fatal(err)
		}
		if _, refusal, err := hold(soon(t), e, "r3", "Bob", 1); err != nil || refusal == nil || refusal.Reason != sale.ClosedSale {
			t.Errorf("refused %+v, %v; want closed", refusal, err)
		}
		balanced(t, b.Client(), e.Store, "s")
	})
}

// The edge ends overdue holds by itself.
func TestReaper(t *testing.T) {
	f := newFaulty(t, long)
	short := terms
	short.HoldFor = 0
	holdFor(f, "r1", short)
	short.Mode = reservation.Backend
	holdFor(f, "r2", short)
	f.edge.Start()
	eventually(t, "ended holds", func() bool {
		return state(t, f.direct, "r1") == reservation.InDoubt && state(t, f.direct, "r2") == reservation.Expired
	})
	f.audit()
}

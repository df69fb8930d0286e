package edge_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

func TestStartAndStop(t *testing.T) {
	orders := map[string][]func(*edge.Edge, context.Context) error{
		"start, stop":             {stocktest.Start, stocktest.StopEdge},
		"start twice, stop twice": {stocktest.Start, stocktest.Start, stocktest.StopEdge, stocktest.StopEdge},
		"stop before start":       {stocktest.StopEdge, stocktest.Start, stocktest.StopEdge},
		"only stop":               {stocktest.StopEdge},
	}
	for name, calls := range orders {
		t.Run(name, func(t *testing.T) { // what still runs at the end fails TestMain
			e := stocktest.NewEdge(t, stocktest.Options(redistest.Embedded(t)), edge.Options{})
			for _, call := range calls {
				if err := call(e, stocktest.Soon(t)); err != nil {
					t.Error(err)
				}
			}
			if err := e.Refresh(stocktest.Soon(t)); err == nil {
				t.Error("a stopped edge still has its connections")
			}
		})
	}
}

// Stop sends the outcomes that wait; those that cannot be sent within its time are lost.
func TestStopTellsTheBacklog(t *testing.T) {
	for name, answers := range map[string]bool{"redis answers": true, "redis is gone": false} {
		t.Run(name, func(t *testing.T) {
			f := stocktest.NewFaulty(t, stocktest.Long)
			for i := range 3 {
				stocktest.MustHold(t, f.Edge, fmt.Sprint("r", i), fmt.Sprint(i), 1)
			}
			f.Proxy.DropAll()
			for i := range 3 {
				if _, err := f.Edge.ConfirmEventually(stocktest.Soon(t), "s", fmt.Sprint("r", i), ""); !errors.Is(err, shard.ErrUnavailable) {
					t.Fatalf("confirm fails with %v, want %v", err, shard.ErrUnavailable)
				}
			}
			f.Edge.Start()
			want := record.Held
			ctx := stocktest.Soon(t)
			if answers {
				f.Proxy.Heal()
				want = record.Confirmed
			} else {
				var cancel context.CancelFunc
				ctx, cancel = context.WithCancel(ctx)
				cancel()
			}
			if err := f.Edge.Stop(ctx); err != nil {
				t.Error(err)
			}
			for i := range 3 {
				if got := stocktest.State(t, f.Direct, fmt.Sprint("r", i)); got != want {
					t.Errorf("r%d is %s, want %s", i, got, want)
				}
			}
			f.Audit()
		})
	}
}

func TestMetrics(t *testing.T) {
	var counted stocktest.Counter
	s := redistest.Start(t)
	e := stocktest.Selling(t, stocktest.Options(s), 1)
	e.SetMetrics(&counted)
	stocktest.MustHold(t, e, "r1", "Ann", 1)
	if _, err := e.ReleaseEventually(stocktest.Soon(t), "s", "r1", reservation.SourceShop, ""); err != nil {
		t.Fatal(err)
	}
	stocktest.MustHold(t, e, "r2", "Bob", 1)
	if got, err := e.ConfirmEventually(stocktest.Soon(t), "s", "r1", "status_200"); err != nil || got != record.Unbacked {
		t.Errorf("a late confirm gives %s, %v, want unbacked", got, err)
	}
	s.Stop()
	_, _, err := stocktest.Hold(stocktest.Soon(t), e, "r3", "Cy", 1)
	if !errors.Is(err, shard.ErrUnavailable) {
		t.Fatal(err)
	}
	if r, u, f := counted.Held.Load(), counted.Unbacked.Load(), counted.Failed.Load(); r != 3 || u != 1 || f == 0 {
		t.Errorf("counted %d reserves, %d unbacked, %d failures; want 3, 1, some", r, u, f)
	}
	e.SetMetrics(nil)
	if _, _, err := stocktest.Hold(stocktest.Soon(t), e, "r4", "Cy", 1); err == nil {
		t.Error("redis is stopped")
	}
}

// A change through one edge reaches the other one by itself.
func TestEdgesAgree(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		first := stocktest.NewEdge(t, stocktest.Options(b), edge.Options{})
		second := stocktest.NewEdge(t, stocktest.Options(b), edge.Options{})
		first.Start()
		second.Start()
		sees := func(what string, so func(*edge.Listing) bool) {
			t.Helper()
			stocktest.Eventually(t, what, func() bool {
				l, ok := second.Catalogue().Sale("s")
				return ok && so(l)
			})
		}
		stocktest.Load(t, first.Store, stocktest.OpenSale("s", 3))
		sees("the open sale", func(l *edge.Listing) bool { return l.Status == sale.Open && l.RefusalAt(time.Now()) == nil })
		if got := second.Catalogue().Listing("a"); len(got) != 1 {
			t.Errorf("%d sales list a", len(got))
		}
		if err := first.Store.SetStatus(stocktest.Soon(t), "s", sale.Paused, "me"); err != nil {
			t.Fatal(err)
		}
		sees("the pause", func(l *edge.Listing) bool { return l.Status == sale.Paused && l.RefusalAt(time.Now()) != nil })
		if err := first.Store.SetStatus(stocktest.Soon(t), "s", sale.Open, "me"); err != nil {
			t.Fatal(err)
		}
		file := stocktest.OpenSale("s", 3)
		file.Items = append(file.Items, sale.Item{SKU: "c", Stock: 1})
		if _, err := first.ApplyUnlessLost(stocktest.Soon(t), file, reservation.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
		sees("the new item", func(l *edge.Listing) bool { _, ok := l.Sale.Item("c"); return ok && l.Status == sale.Open })
		stocktest.Load(t, first.Store, stocktest.OpenSale("t", 3))
		stocktest.Eventually(t, "the second sale", func() bool { return len(second.Catalogue().Listing("a")) == 2 })
		if err := errors.Join(first.Ready(), second.Ready()); err != nil {
			t.Error(err)
		}
	})
}

// A sale that the index names and Redis does not have is lost, and looking at it again
// and again makes no other catalogue.
func TestAnnouncedSale(t *testing.T) {
	b := redistest.Embedded(t)
	e := stocktest.Selling(t, stocktest.Options(b), 3)
	if err := b.Client().SAdd(stocktest.Soon(t), "stockgate:sales", "ghost").Err(); err != nil {
		t.Fatal(err)
	}
	stocktest.Look(t, e)
	before := e.Catalogue()
	if l, ok := before.Sale("ghost"); !ok || !l.Lost() || before.Complete() {
		t.Errorf("it is not lost: %v %+v", ok, l)
	}
	stocktest.Look(t, e)
	if e.Catalogue() != before {
		t.Error("the catalogue is another one")
	}
}

// An edge that has not seen a change yet is told by Redis, reads the sale again and
// goes on in the same attempt.
func TestChangeDuringAnAttempt(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e := stocktest.Selling(t, stocktest.Options(b), 3)
		change := func(limits ...sale.Limit) {
			t.Helper()
			if _, err := e.ApplyUnlessLost(stocktest.Soon(t), stocktest.OpenSale("s", 3, limits...), reservation.ApplyOptions{Force: true}); err != nil {
				t.Fatal(err)
			}
		}
		change(stocktest.PerBuyer(1)) // the catalogue does not know of it
		stocktest.MustHold(t, e, "r1", "Ann", 1)
		_, refusal, err := stocktest.Hold(stocktest.Soon(t), e, "r2", "Ann", 1)
		if err != nil || refusal == nil || refusal.Reason != sale.Pending || *refusal.Limit != stocktest.PerBuyer(1) {
			t.Errorf("refused %+v, %v; want the new limit", refusal, err)
		}
		file := stocktest.OpenSale("s", 3, stocktest.PerBuyer(1))
		file.Items[0].SKU = "renamed"
		if _, err := e.ApplyUnlessLost(stocktest.Soon(t), file, reservation.ApplyOptions{}); !errors.Is(err, shard.ErrRefused) {
			t.Errorf("an item with a held unit goes: %v", err)
		}
		if err := e.Store.SetStatus(stocktest.Soon(t), "s", sale.Closed, "me"); err != nil {
			t.Fatal(err)
		}
		if _, refusal, err := stocktest.Hold(stocktest.Soon(t), e, "r3", "Bob", 1); err != nil || refusal == nil || refusal.Reason != sale.ClosedSale {
			t.Errorf("refused %+v, %v; want closed", refusal, err)
		}
		stocktest.Balanced(t, b.Client(), e.Store, "s")
	})
}

// The edge ends overdue holds by itself.
func TestReaper(t *testing.T) {
	f := stocktest.NewFaulty(t, stocktest.Long)
	short := stocktest.HoldOptions
	short.HoldFor = 0
	stocktest.HoldFor(f, "r1", short)
	short.Mode = record.ModeBackend
	stocktest.HoldFor(f, "r2", short)
	f.Edge.Start()
	stocktest.Eventually(t, "ended holds", func() bool {
		return stocktest.State(t, f.Direct, "r1") == record.InDoubt && stocktest.State(t, f.Direct, "r2") == record.Expired
	})
	f.Audit()
}

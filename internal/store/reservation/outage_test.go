package reservation_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// Redis goes away and comes back with what it had: the edge refuses meanwhile, and
// goes on by itself.
func TestRestart(t *testing.T) {
	s := redistest.Start(t, redistest.Config("appendonly yes", "appendfsync always"))
	e, ops := stocktest.WithHolds(t, stocktest.Options(s))
	e.Start()
	if err := ops["confirm"](stocktest.Soon(t), e); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	for name, op := range ops {
		if err := op(stocktest.Soon(t), e); !errors.Is(err, shard.ErrUnavailable) {
			t.Errorf("%s without redis fails with %v, want %v", name, err, shard.ErrUnavailable)
		}
	}
	if _, err := e.ReleaseEventually(stocktest.Soon(t), "s", "r2", reservation.SourceShop, "told later"); !errors.Is(err, shard.ErrUnavailable) {
		t.Errorf("release fails with %v, want %v", err, shard.ErrUnavailable)
	}
	fresh := stocktest.NewEdge(t, stocktest.Options(s), edge.Options{})
	if err := fresh.Ready(); !errors.Is(err, shard.ErrStarting) {
		t.Errorf("before it looked, the edge is not ready because %v, want %v", err, shard.ErrStarting)
	}
	if err := fresh.Refresh(stocktest.Soon(t)); !errors.Is(err, shard.ErrUnavailable) || !errors.Is(fresh.Ready(), shard.ErrUnavailable) {
		t.Errorf("refresh says %v, ready %v: want %v", err, fresh.Ready(), shard.ErrUnavailable)
	}
	s.Restart()
	tries, last := 0, "" // one that was not heard in time is given up
	stocktest.Eventually(t, "an edge that sells", func() bool {
		tries++
		last = fmt.Sprint("new ", tries)
		_, refusal, err := stocktest.Hold(stocktest.Soon(t), e, last, "Bob", 1)
		if refusal != nil {
			t.Fatalf("refused %+v", refusal)
		}
		return err == nil
	})
	stocktest.Eventually(t, "an empty backlog", func() bool { return e.Backlog() == 0 })
	if err := fresh.Refresh(stocktest.Soon(t)); err != nil || fresh.Ready() != nil {
		t.Errorf("afterwards refresh says %v, ready %v", err, fresh.Ready())
	}
	for id, want := range map[string]record.State{"r1": "confirmed", "r2": "released", "r3": "held", last: "held"} {
		if got := stocktest.State(t, e.Store, id); got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
	stocktest.Balanced(t, s.Client(), e.Store, "s")
}

// A Redis that has forgotten the scripts gets them again, in the same call.
func TestScriptsForgotten(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e, ops := stocktest.WithHolds(t, stocktest.Options(b))
		for name, op := range ops {
			if name == "status" {
				continue // it pauses the sale
			}
			if err := b.Client().ScriptFlush(stocktest.Soon(t)).Err(); err != nil {
				t.Fatal(err)
			}
			if err := op(stocktest.Soon(t), e); err != nil {
				t.Errorf("%s fails with %v", name, err)
			}
		}
		if err := b.Client().ScriptFlush(stocktest.Soon(t)).Err(); err != nil {
			t.Fatal(err)
		}
		if err := e.Refresh(stocktest.Soon(t)); err != nil {
			t.Errorf("refresh fails with %v", err)
		}
		stocktest.Balanced(t, b.Client(), e.Store, "s")
	})
}

// A Redis that has lost everything sells nothing; the edges agree on the secret
// that they had, and the sale that is loaded again is another one to the tokens.
func TestEverythingLost(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e := stocktest.Selling(t, stocktest.Options(b), 3, stocktest.PerBuyer(2))
		first := stocktest.MustHold(t, e, "r1", "Ann", 1)
		before := stocktest.Balanced(t, b.Client(), e.Store, "s").Limits
		c := b.Client()
		if err := errors.Join(c.FlushAll(stocktest.Soon(t)).Err(), c.Set(stocktest.Soon(t), "stockgate:sales", "unreadable", 0).Err()); err != nil {
			t.Fatal(err)
		}
		if err := e.Refresh(stocktest.Soon(t)); err == nil {
			t.Error("refresh reads what cannot be read")
		}
		if err := c.Del(stocktest.Soon(t), "stockgate:sales").Err(); err != nil {
			t.Fatal(err)
		}
		if _, refusal, err := stocktest.Hold(stocktest.Soon(t), e, "r2", "Ann", 1); err != nil || refusal == nil || refusal.Reason != sale.Unavailable {
			t.Errorf("the lost sale is refused with %+v, %v; want %s", refusal, err, sale.Unavailable)
		}
		if err := e.Refresh(stocktest.Soon(t)); err != nil {
			t.Fatal(err)
		}
		if l, ok := e.Catalogue().Sale("s"); !ok || !l.Lost() {
			t.Error("the edge does not miss the lost sale")
		}
		_, err := e.ApplyUnlessLost(stocktest.Soon(t), stocktest.OpenSale("s", 3, stocktest.PerBuyer(2)), reservation.ApplyOptions{New: true, By: "test"})
		if err := errors.Join(err, e.Store.SetStatus(stocktest.Soon(t), "s", sale.Open, "test")); err != nil {
			t.Fatal(err)
		}
		if err := e.Refresh(stocktest.Soon(t)); err != nil {
			t.Fatal(err)
		}
		second := stocktest.MustHold(t, e, "r1", "Ann", 1)
		if first.Epoch == second.Epoch {
			t.Errorf("the epoch is %d in both lives", first.Epoch)
		}
		after := stocktest.Balanced(t, c, e.Store, "s").Limits
		for field := range before {
			if after[field] != "1 1" {
				t.Errorf("the buyer was counted as %v, now as %v", before, after)
			}
		}
		fresh := stocktest.Ready(t, stocktest.Options(b))
		if _, refusal, err := stocktest.Hold(stocktest.Soon(t), fresh, "r3", "Ann", 2); err != nil || refusal == nil || refusal.Reason != sale.Pending {
			t.Errorf("a new edge answers %+v, %v; want %s: it counts the buyer as another", refusal, err, sale.Pending)
		}
	})
}

// A full Redis begins nothing and ends everything.
func TestFullRedis(t *testing.T) {
	s := redistest.Start(t)
	e, ops := stocktest.WithHolds(t, stocktest.Options(s))
	c := s.Client()
	if err := c.Set(stocktest.Soon(t), "junk", strings.Repeat("x", 4<<20), 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.ConfigSet(stocktest.Soon(t), "maxmemory", "2mb").Err(); err != nil {
		t.Fatal(err)
	}
	before := stocktest.Balanced(t, c, e.Store, "s")
	for _, name := range []string{"reserve", "adjust", "apply", "status"} {
		err := ops[name](stocktest.Soon(t), e)
		if !errors.Is(err, shard.ErrUnavailable) || !strings.Contains(err.Error(), "memory is full: raise maxmemory") {
			t.Errorf("%s fails with %v, want that the memory is full", name, err)
		}
	}
	if err := stocktest.Balanced(t, c, e.Store, "s").Differs(before); err != nil {
		t.Errorf("something has changed: %v", err)
	}
	if n := e.Backlog(); n != 0 {
		t.Errorf("%d outcomes wait: a reserve that redis refused to run leaves nothing to release", n)
	}
	for _, name := range []string{"confirm", "release", "doubt", "expire", "recreate", "return", "extend", "probe", "probed", "lookup"} {
		if err := ops[name](stocktest.Soon(t), e); err != nil {
			t.Errorf("%s fails with %v", name, err)
		}
	}
	for id, want := range map[string]record.State{"r1": "confirmed", "r2": "released", "r3": "in_doubt", "lost": "confirmed", "r4": "confirmed", "r5": "held", "r6": "confirmed"} {
		if got := stocktest.State(t, e.Store, id); got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
	if _, err := e.Store.SaleStock(stocktest.Soon(t), "s"); err != nil {
		t.Errorf("the stock in a full redis cannot be read: %v", err)
	}
	if err := errors.Join(c.Del(stocktest.Soon(t), "junk").Err(), c.ConfigSet(stocktest.Soon(t), "maxmemory", "0").Err()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"reserve", "adjust", "apply", "status"} {
		if err := ops[name](stocktest.Soon(t), e); err != nil {
			t.Errorf("with room again, %s fails with %v", name, err)
		}
	}
	stocktest.Balanced(t, c, e.Store, "s")
}

package reservation_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/redistest"
	"github.com/stockgate/stockgate/reservation"
	"github.com/stockgate/stockgate/sale"
)

// everyOperation, once, against what is loaded now. Those that need a hold get one of
// ids.
func everyOperation(ids ...string) map[string]func(context.Context, *reservation.Edge) error {
	return map[string]func(context.Context, *reservation.Edge) error{
		"reserve": func(ctx context.Context, e *reservation.Edge) error {
			_, refusal, err := hold(ctx, e, "new", "Bob", 1)
			if refusal != nil {
				return errors.New(string(refusal.Reason))
			}
			return err
		},
		"adjust": func(ctx context.Context, e *reservation.Edge) error {
			_, err := e.Store.Adjust(ctx, "s", "j1", "a", 1, "me")
			return err
		},
		"apply": func(ctx context.Context, e *reservation.Edge) error {
			file := openSale("other", 5)
			_, err := e.ApplyUnlessLost(ctx, file, reservation.ApplyOptions{})
			return err
		},
		"status": func(ctx context.Context, e *reservation.Edge) error {
			return e.Store.SetStatus(ctx, "s", sale.Paused, "me")
		},
		"confirm": func(ctx context.Context, e *reservation.Edge) error {
			_, err := e.Store.Confirm(ctx, "s", ids[0], reservation.Shop, "")
			return err
		},
		"release": func(ctx context.Context, e *reservation.Edge) error {
			_, err := e.Store.Release(ctx, "s", ids[1], reservation.Shop, "")
			return err
		},
		"doubt": func(ctx context.Context, e *reservation.Edge) error {
			_, err := e.Store.Doubt(ctx, "s", ids[2], "")
			return err
		},
		"recreate": func(ctx context.Context, e *reservation.Edge) error {
			_, err := e.ConfirmWith(ctx, &reservation.Evidence{Sale: "s", ID: "lost", Buyer: "Ann", Epoch: 1, Lines: []sale.Line{{SKU: "a", Quantity: 1}}}, "")
			return err
		},
		"return": func(ctx context.Context, e *reservation.Edge) error {
			_, err := e.Store.Return(ctx, "s", ids[3], reservation.Return{ID: "1", Restock: true})
			return err
		},
		"extend": func(ctx context.Context, e *reservation.Edge) error {
			_, err := e.Store.Extend(ctx, "s", ids[4], 2*terms.HoldFor, 3*terms.HoldFor)
			return err
		},
		"probe": func(ctx context.Context, e *reservation.Edge) error {
			_, _, err := e.Store.ClaimProbes(ctx, "s", "", plan, 0)
			return err
		},
		"probed": func(ctx context.Context, e *reservation.Edge) error {
			_, err := e.Store.Probed(ctx, "s", ids[5], reservation.ProbePresent, "")
			return err
		},
		"lookup": func(ctx context.Context, e *reservation.Edge) error {
			l, _ := e.Catalogue().Sale("s")
			a := &sale.Attempt{Buyer: "Ann", Key: ids[0], Print: "print", Lines: []sale.Line{{SKU: "a", Quantity: 1}}}
			_, err := e.Lookup(ctx, l, a, a.Lines)
			return err
		},
		"expire": func(ctx context.Context, e *reservation.Edge) error {
			_, err := e.Store.Expire(ctx, "s")
			return err
		},
	}
}

// withHolds is an edge with six units reserved: one is confirmed, one in doubt, the
// others are held.
func withHolds(t *testing.T, o reservation.Options) (*reservation.Edge, map[string]func(context.Context, *reservation.Edge) error) {
	t.Helper()
	e := selling(t, o, 10)
	ids := []string{"r1", "r2", "r3", "r4", "r5", "r6"}
	for _, id := range ids {
		mustHold(t, e, id, "Ann", 1)
	}
	if _, err := e.Store.Confirm(soon(t), "s", "r4", reservation.Shop, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Store.Doubt(soon(t), "s", "r6", ""); err != nil {
		t.Fatal(err)
	}
	return e, everyOperation(ids...)
}

// Redis goes away and comes back with what it had: the edge refuses meanwhile, and
// goes on by itself.
func TestRestart(t *testing.T) {
	s := redistest.Start(t, redistest.Config("appendonly yes", "appendfsync always"))
	e, ops := withHolds(t, options(s))
	e.Start()
	if err := ops["confirm"](soon(t), e); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	for name, op := range ops {
		if err := op(soon(t), e); !errors.Is(err, reservation.ErrUnavailable) {
			t.Errorf("%s without redis fails with %v, want %v", name, err, reservation.ErrUnavailable)
		}
	}
	if _, err := e.ReleaseEventually(soon(t), "s", "r2", reservation.Shop, "told later"); !errors.Is(err, reservation.ErrUnavailable) {
		t.Errorf("release fails with %v, want %v", err, reservation.ErrUnavailable)
	}
	fresh := newEdge(t, options(s), reservation.EdgeOptions{})
	if err := fresh.Ready(); !errors.Is(err, reservation.ErrStarting) {
		t.Errorf("before it looked, the edge is not ready because %v, want %v", err, reservation.ErrStarting)
	}
	if err := fresh.Refresh(soon(t)); !errors.Is(err, reservation.ErrUnavailable) || !errors.Is(fresh.Ready(), reservation.ErrUnavailable) {
		t.Errorf("refresh says %v, ready %v: want %v", err, fresh.Ready(), reservation.ErrUnavailable)
	}
	s.Restart()
	eventually(t, "an edge that sells", func() bool {
		_, refusal, err := hold(soon(t), e, "new", "Bob", 1)
		if refusal != nil {
			t.Fatalf("refused %+v", refusal)
		}
		return err == nil
	})
	eventually(t, "an empty backlog", func() bool { return e.Backlog() == 0 })
	if err := fresh.Refresh(soon(t)); err != nil || fresh.Ready() != nil {
		t.Errorf("afterwards refresh says %v, ready %v", err, fresh.Ready())
	}
	for id, want := range map[string]reservation.State{"r1": "confirmed", "r2": "released", "r3": "held", "new": "held"} {
		if got := state(t, e.Store, id); got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
	balanced(t, s.Client(), e.Store, "s")
}

// A Redis that has forgotten the scripts gets them again, in the same call.
func TestScriptsForgotten(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e, ops := withHolds(t, options(b))
		for name, op := range ops {
			if name == "status" {
				continue // it pauses the sale
			}
			if err := b.Client().ScriptFlush(soon(t)).Err(); err != nil {
				t.Fatal(err)
			}
			if err := op(soon(t), e); err != nil {
				t.Errorf("%s fails with %v", name, err)
			}
		}
		if err := b.Client().ScriptFlush(soon(t)).Err(); err != nil {
			t.Fatal(err)
		}
		if err := e.Refresh(soon(t)); err != nil {
			t.Errorf("refresh fails with %v", err)
		}
		balanced(t, b.Client(), e.Store, "s")
	})
}

// A Redis that has lost everything sells nothing; the edges agree on the secret
// that they had, and the sale that is loaded again is another one to the tokens.
func TestEverythingLost(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e := selling(t, options(b), 3, perBuyer(2))
		first := mustHold(t, e, "r1", "Ann", 1)
		before := balanced(t, b.Client(), e.Store, "s").limits
		c := b.Client()
		if err := errors.Join(c.FlushAll(soon(t)).Err(), c.Set(soon(t), "stockgate:sales", "unreadable", 0).Err()); err != nil {
			t.Fatal(err)
		}
		if err := e.Refresh(soon(t)); err == nil {
			t.Error("refresh reads what cannot be read")
		}
		if err := c.Del(soon(t), "stockgate:sales").Err(); err != nil {
			t.Fatal(err)
		}
		if _, refusal, err := hold(soon(t), e, "r2", "Ann", 1); err != nil || refusal == nil || refusal.Reason != sale.Unavailable {
			t.Errorf("the lost sale is refused with %+v, %v; want %s", refusal, err, sale.Unavailable)
		}
		if err := e.Refresh(soon(t)); err != nil {
			t.Fatal(err)
		}
		if l, ok := e.Catalogue().Sale("s"); !ok || !l.Lost() {
			t.Error("the edge does not miss the lost sale")
		}
		_, err := e.ApplyUnlessLost(soon(t), openSale("s", 3, perBuyer(2)), reservation.ApplyOptions{New: true, By: "test"})
		if err := errors.Join(err, e.Store.SetStatus(soon(t), "s", sale.Open, "test")); err != nil {
			t.Fatal(err)
		}
		if err := e.Refresh(soon(t)); err != nil {
			t.Fatal(err)
		}
		second := mustHold(t, e, "r1", "Ann", 1)
		if first.Epoch == second.Epoch {
			t.Errorf("the epoch is %d in both lives", first.Epoch)
		}
		after := balanced(t, c, e.Store, "s").limits
		for field := range before {
			if after[field] != "1 1" {
				t.Errorf("the buyer was counted as %v, now as %v", before, after)
			}
		}
		fresh := ready(t, options(b))
		if _, refusal, err := hold(soon(t), fresh, "r3", "Ann", 2); err != nil || refusal == nil || refusal.Reason != sale.Pending {
			t.Errorf("a new edge answers %+v, %v; want %s: it counts the buyer as another", refusal, err, sale.Pending)
		}
	})
}

// A full Redis begins nothing and ends everything.
func TestFullRedis(t *testing.T) {
	s := redistest.Start(t)
	e, ops := withHolds(t, options(s))
	c := s.Client()
	if err := c.Set(soon(t), "junk", strings.Repeat("x", 4<<20), 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.ConfigSet(soon(t), "maxmemory", "2mb").Err(); err != nil {
		t.Fatal(err)
	}
	before := balanced(t, c, e.Store, "s")
	for _, name := range []string{"reserve", "adjust", "apply", "status"} {
		err := ops[name](soon(t), e)
		if !errors.Is(err, reservation.ErrUnavailable) || !strings.Contains(err.Error(), "memory is full: raise maxmemory") {
			t.Errorf("%s fails with %v, want that the memory is full", name, err)
		}
	}
	if err := balanced(t, c, e.Store, "s").differs(before); err != nil {
		t.Errorf("something has changed: %v", err)
	}
	if n := e.Backlog(); n != 0 {
		t.Errorf("%d outcomes wait: a reserve that redis refused to run leaves nothing to release", n)
	}
	for _, name := range []string{"confirm", "release", "doubt", "expire", "recreate", "return", "extend", "probe", "probed", "lookup"} {
		if err := ops[name](soon(t), e); err != nil {
			t.Errorf("%s fails with %v", name, err)
		}
	}
	for id, want := range map[string]reservation.State{"r1": "confirmed", "r2": "released", "r3": "in_doubt", "lost": "confirmed", "r4": "confirmed", "r5": "held", "r6": "confirmed"} {
		if got := state(t, e.Store, id); got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
	if _, err := e.Store.Books(soon(t), "s"); err != nil {
		t.Errorf("the books of a full redis cannot be read: %v", err)
	}
	if err := errors.Join(c.Del(soon(t), "junk").Err(), c.ConfigSet(soon(t), "maxmemory", "0").Err()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"reserve", "adjust", "apply", "status"} {
		if err := ops[name](soon(t), e); err != nil {
			t.Errorf("with room again, %s fails with %v", name, err)
		}
	}
	balanced(t, c, e.Store, "s")
}

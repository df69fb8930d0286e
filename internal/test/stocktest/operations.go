package stocktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// WithHolds is an edge with six units reserved: one is confirmed, one in doubt, the others are
// held.
func WithHolds(t *testing.T, o shard.Options) (*edge.Edge, map[string]func(context.Context, *edge.Edge) error) {
	t.Helper()
	e := Selling(t, o, 10)
	ids := []string{"r1", "r2", "r3", "r4", "r5", "r6"}
	for _, id := range ids {
		MustHold(t, e, id, "Ann", 1)
	}
	if _, err := e.Store.Confirm(Soon(t), "s", "r4", reservation.SourceShop, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Store.Doubt(Soon(t), "s", "r6", ""); err != nil {
		t.Fatal(err)
	}
	return e, EveryOperation(ids...)
}

// EveryOperation returns every operation once, on what is loaded now. Those that need a hold
// get one of ids.
func EveryOperation(ids ...string) map[string]func(context.Context, *edge.Edge) error {
	return map[string]func(context.Context, *edge.Edge) error{
		"reserve": func(ctx context.Context, e *edge.Edge) error {
			_, refusal, err := Hold(ctx, e, "new", "Bob", 1)
			if refusal != nil {
				return errors.New(string(refusal.Reason))
			}
			return err
		},
		"adjust": func(ctx context.Context, e *edge.Edge) error {
			_, err := e.Store.Adjust(ctx, "s", "j1", "a", 1, "me")
			return err
		},
		"apply": func(ctx context.Context, e *edge.Edge) error {
			file := OpenSale("other", 5)
			_, err := e.ApplyUnlessLost(ctx, file, reservation.ApplyOptions{})
			return err
		},
		"status": func(ctx context.Context, e *edge.Edge) error {
			return e.Store.SetStatus(ctx, "s", sale.Paused, "me")
		},
		"confirm": func(ctx context.Context, e *edge.Edge) error {
			_, err := e.Store.Confirm(ctx, "s", ids[0], reservation.SourceShop, "")
			return err
		},
		"release": func(ctx context.Context, e *edge.Edge) error {
			_, err := e.Store.Release(ctx, "s", ids[1], reservation.SourceShop, "")
			return err
		},
		"doubt": func(ctx context.Context, e *edge.Edge) error {
			_, err := e.Store.Doubt(ctx, "s", ids[2], "")
			return err
		},
		"recreate": func(ctx context.Context, e *edge.Edge) error {
			_, err := e.ConfirmWith(ctx, &reservation.Evidence{Sale: "s", ID: "lost", Buyer: "Ann", Epoch: 1, Lines: []sale.Line{{SKU: "a", Quantity: 1}}}, "")
			return err
		},
		"return": func(ctx context.Context, e *edge.Edge) error {
			_, err := e.Store.Return(ctx, "s", ids[3], reservation.Return{ID: "1", Restock: true})
			return err
		},
		"extend": func(ctx context.Context, e *edge.Edge) error {
			_, err := e.Store.Extend(ctx, "s", ids[4], 2*HoldOptions.HoldFor, 3*HoldOptions.HoldFor)
			return err
		},
		"probe": func(ctx context.Context, e *edge.Edge) error {
			_, _, err := e.Store.TakeDueProbes(ctx, "s", "", Plan, 0)
			return err
		},
		"probed": func(ctx context.Context, e *edge.Edge) error {
			_, err := e.Store.Probed(ctx, "s", ids[5], reservation.ProbePresent, "")
			return err
		},
		"lookup": func(ctx context.Context, e *edge.Edge) error {
			l, _ := e.Catalogue().Sale("s")
			a := &sale.Attempt{Buyer: "Ann", Key: ids[0], Print: "print", Lines: []sale.Line{{SKU: "a", Quantity: 1}}}
			_, err := e.Lookup(ctx, l, a, a.Lines)
			return err
		},
		"expire": func(ctx context.Context, e *edge.Edge) error {
			_, err := e.Store.Expire(ctx, "s")
			return err
		},
	}
}

var Plan = reservation.ProbePlan{Wait: time.Second, LongestWait: 3 * time.Second, Tries: 4}

package reservation_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// over gives leases that end before an answer can come.
type over struct{ of *shard.Client }

func (l over) Acquire(_ context.Context, sale string) error {
	c := l.of.Clock(sale)
	c.Grant(shard.Term{}, c.Mono())
	return nil
}

func (over) Fenced(string) {}

// An answer that comes after the end of the lease is no promise: another server may be the primary
// by then. That a hold which was never forwarded is released is no promise anyway.
func TestAnAnswerAfterTheLeaseIsNoPromise(t *testing.T) {
	e := stocktest.Selling(t, stocktest.Options(redistest.Start(t)), 10)
	ctx, c := stocktest.Soon(t), e.Store.Shard()
	for _, id := range []string{"r1", "r2", "r3", "r4", "r5"} {
		stocktest.MustHold(t, e, id, id, 1)
	}
	if r, _, _, err := c.Beat(ctx, "s", &shard.Beat{Edge: "e", Does: "beat"}); err != nil || r.Code() != "ok" {
		t.Fatal(r, err)
	}
	c.Lead(over{c})
	no := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, shard.ErrNoLease) {
			t.Errorf("%s after the end of the lease: %v, want %v", what, err, shard.ErrNoLease)
		}
	}
	l, _ := e.Catalogue().Sale("s")
	_, _, err := e.Store.Reserve(ctx, &reservation.ReserveRequest{
		ID: "r6", Sale: "s", Version: l.Version, Buyer: "x", Lines: stocktest.UnitsOfA(1), HoldFor: stocktest.HoldOptions.HoldFor, Mode: record.ModeResponse,
	})
	no("a hold", err)
	_, err = e.Store.Confirm(ctx, "s", "r1", reservation.SourceAnswer, "")
	no("a confirm", err)
	_, err = e.Store.Release(ctx, "s", "r2", reservation.SourceShop, "")
	no("a release by the shop", err)
	_, err = e.Store.Release(ctx, "s", "r2", reservation.SourceUnheard, "unsent")
	no("a release of what another edge may send", err)
	_, err = e.Store.Doubt(ctx, "s", "r3", "timeout")
	no("a doubt", err)
	_, err = e.Store.Extend(ctx, "s", "r4", stocktest.HoldOptions.HoldFor, 2*stocktest.HoldOptions.HoldFor)
	no("an extension", err)
	_, err = e.Store.Adjust(ctx, "s", "more", "a", 1, "me")
	no("an adjustment", err)
	no("a change of the status", e.Store.SetStatus(ctx, "s", "paused", "me"))
	if state, err := e.Store.Release(ctx, "s", "r5", reservation.SourceUnsent, "unsent"); err != nil || state != record.Released {
		t.Errorf("the release of what was never sent gives %q, %v", state, err)
	}
}

package reservation_test

import (
	"context"
	"errors"
	"testing"
	"time"

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

// again gives a lease that has ended when the answer comes, and then one that runs, if the shard's term
// has changed by then or has not.
type again struct {
	of    *shard.Client
	asked int
	then  func(*shard.Clock)
}

func (l *again) Acquire(_ context.Context, sale string) error {
	c := l.of.Clock(sale)
	if l.asked++; l.asked == 1 {
		c.Grant(shard.Term{}, c.Mono())
		return nil
	}
	l.then(c)
	c.Grant(c.Known().Term, c.Mono().Add(time.Hour))
	return nil
}

func (*again) Fenced(string) {}

// A late answer is a promise once Redis answers a heartbeat in the term of the call, and none if another
// term has begun by then: Redis may lack what it did.
func TestALateAnswerCountsInItsTerm(t *testing.T) {
	for name, test := range map[string]struct {
		then func(*shard.Clock)
		want error
	}{
		"the same":    {func(*shard.Clock) {}, nil},
		"another one": {func(c *shard.Clock) { c.Adopt("1:99:another:1", 1000) }, shard.ErrNoLease},
	} {
		t.Run(name, func(t *testing.T) {
			e := stocktest.Selling(t, stocktest.Options(redistest.Start(t)), 10)
			ctx, c := stocktest.Soon(t), e.Store.Shard()
			if r, _, _, err := c.Beat(ctx, "s", &shard.Beat{Edge: "e", Does: "beat"}); err != nil || r.Code() != "ok" {
				t.Fatal(r, err)
			}
			l := &again{of: c, then: test.then}
			c.Lead(l)
			if _, _, err := stocktest.Hold(ctx, e, "r1", "r1", 1); !errors.Is(err, test.want) {
				t.Errorf("a hold: %v, want %v", err, test.want)
			}
			if l.asked != 2 {
				t.Errorf("the fence was asked %d times, want 2", l.asked)
			}
		})
	}
}

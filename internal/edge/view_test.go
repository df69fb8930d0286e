package edge_test

import (
	"context"
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

// following returns a running edge that follows an open sale "s", with a clock that
// stands still: no limit passes, and what is known stays as fresh as it was.
func following(t testing.TB, o shard.Options, stock int64) *edge.Edge {
	t.Helper()
	e := stocktest.Selling(t, o, stock)
	e.SetViewClock(func() time.Duration { return 0 })
	e.Start()
	follows(t, e)
	return e
}

// remembered returns why an edge refuses so many units of "a" without asking Redis;
// empty: it asks.
func remembered(t testing.TB, e *edge.Edge, n int64) sale.Reason {
	t.Helper()
	l, ok := e.Catalogue().Sale("s")
	if !ok {
		t.Fatal("the edge does not know the sale")
	}
	no := e.Recall(l, nil, stocktest.UnitsOfA(n))
	if no == nil {
		return ""
	}
	if no.SKU != "a" {
		t.Errorf("the refusal names %q", no.SKU)
	}
	return no.Reason
}

// refusedBy holds, and returns the reason why Redis refuses.
func refusedBy(t testing.TB, e *edge.Edge, id string, n int64) sale.Reason {
	t.Helper()
	_, no, err := stocktest.Hold(stocktest.Soon(t), e, id, "buyer of "+id, n)
	if err != nil || no == nil {
		t.Fatalf("hold %s: refused %+v, error %v; want a refusal", id, no, err)
	}
	return no.Reason
}

// A refusal of Redis is repeated to attempts that ask for as much, and to no others.
func TestRemembers(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e := following(t, stocktest.Options(b), 3)
		stocktest.MustHold(t, e, "r1", "Ann", 2)
		check := func(what string, want ...sale.Reason) {
			t.Helper()
			for i, reason := range want {
				if got := remembered(t, e, int64(i+1)); got != reason {
					t.Errorf("%s, %d units: %q is remembered, want %q", what, i+1, got, reason)
				}
			}
		}
		check("no attempt was refused", "", "", "", "")
		if got := refusedBy(t, e, "r2", 3); got != sale.AllHeld {
			t.Fatal(got)
		}
		check("1 is available, 3 are left", "", sale.AllHeld, sale.AllHeld, sale.SoldOut)
		stocktest.MustHold(t, e, "r4", "Bob", 1)
		check("none is available, no attempt was refused since", "", sale.AllHeld, sale.AllHeld, sale.SoldOut)
		if got := refusedBy(t, e, "r5", 1); got != sale.AllHeld {
			t.Fatal(got)
		}
		check("none is available", sale.AllHeld, sale.AllHeld, sale.AllHeld, sale.SoldOut)
		confirm := func(id string) {
			if _, err := e.ConfirmEventually(stocktest.Soon(t), "s", id, ""); err != nil {
				t.Fatal(err)
			}
			stocktest.Eventually(t, "the order of "+id, func() bool { return upToDate(t, e) })
		}
		confirm("r1")
		check("1 is left", sale.AllHeld, sale.SoldOut, sale.SoldOut)
		confirm("r4")
		check("all are sold", sale.SoldOut, sale.SoldOut)
	})
}

// Whatever puts units back on sale is heard of from the journal, with a clock that
// stands still: no limit has passed.
func TestForgetsWhatCameBack(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		o := stocktest.Options(b)
		e := following(t, o, 1)
		other := stocktest.OpenStore(t, o) // another edge's: this one is told nothing
		more := stocktest.OpenSale("s", 1)
		for i, back := range []struct {
			name string
			do   func(ctx context.Context, id string) error
		}{
			{"released", func(ctx context.Context, id string) error {
				_, err := other.Release(ctx, "s", id, reservation.SourceShop, "")
				return err
			}},
			{"released in doubt", func(ctx context.Context, id string) error {
				if _, err := other.Doubt(ctx, "s", id, ""); err != nil {
					return err
				}
				_, err := other.Release(ctx, "s", id, reservation.SourceShop, "")
				return err
			}},
			{"returned", func(ctx context.Context, id string) error {
				if _, err := other.Confirm(ctx, "s", id, reservation.SourceShop, ""); err != nil {
					return err
				}
				_, err := other.Return(ctx, "s", id, reservation.Return{ID: "x", Restock: true})
				return err
			}},
			{"adjusted", func(ctx context.Context, id string) error {
				_, err := other.Adjust(ctx, "s", id, "a", 1, "")
				return err
			}},
			{"loaded", func(ctx context.Context, _ string) error {
				more.Items[0].Stock++
				_, err := other.Apply(ctx, more, reservation.ApplyOptions{})
				return err
			}},
		} {
			id := fmt.Sprint("r", i)
			stocktest.MustHold(t, e, id, "buyer "+id, 1)
			if got := refusedBy(t, e, "no", 1); got != sale.AllHeld || remembered(t, e, 1) != sale.AllHeld {
				t.Fatalf("%s: refused as %s, remembered %q", back.name, got, remembered(t, e, 1))
			}
			if err := back.do(stocktest.Soon(t), id); err != nil {
				t.Fatal(err)
			}
			stocktest.Eventually(t, "that it asks again after: "+back.name, func() bool { return remembered(t, e, 1) == "" })
		}
	})
}

// The units of a hold of outcome backend that no shop confirms come back when it expires.
func TestForgetsWhatExpired(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e := following(t, stocktest.Options(b), 1)
		l, _ := e.Catalogue().Sale("s")
		id := ""
		for n := 0; ; n++ {
			id = fmt.Sprint("r", n)
			short := edge.HoldOptions{HoldFor: 20 * time.Millisecond << n, Margin: time.Millisecond, Mode: record.ModeBackend}
			a := &sale.Attempt{Sale: "s", Buyer: "Ann", Lines: stocktest.UnitsOfA(1)}
			if _, no, err := e.Hold(stocktest.Soon(t), id, l, a, stocktest.UnitsOfA(1), short); no != nil || err != nil {
				t.Fatal(no, err)
			}
			_, no, err := stocktest.Hold(stocktest.Soon(t), e, fmt.Sprint("no", n), "Bob", 1)
			if err != nil {
				t.Fatal(err)
			}
			if no != nil {
				break
			}
			// a slow machine: it had expired before the next one came
			if _, err := e.ReleaseEventually(stocktest.Soon(t), "s", fmt.Sprint("no", n), reservation.SourceShop, ""); err != nil {
				t.Fatal(err)
			}
		}
		stocktest.Eventually(t, "that it asks again", func() bool { return remembered(t, e, 1) == "" })
		if got := stocktest.State(t, e.Store, id); got != record.Expired {
			t.Errorf("%s is %s", id, got)
		}
	})
}

// follows waits until an edge knows its sale "s" as it is now.
func follows(t testing.TB, e *edge.Edge) {
	t.Helper()
	stocktest.Eventually(t, "a view of the sale", func() bool { return upToDate(t, e) && e.BindingsLoaded("s") })
}

// upToDate says that an edge has read all of the journal of "s".
func upToDate(t testing.TB, e *edge.Edge) bool {
	t.Helper()
	seq, ok := e.Followed("s")
	return ok && seq == seqOf(t, e.Store)
}

// seqOf is the number of the last entry of the journal of "s".
func seqOf(t testing.TB, s *reservation.Store) int64 {
	t.Helper()
	seq, err := shard.Redis(s.Shard()).HGet(stocktest.Soon(t), s.Shard().ShardKeys("s")[shard.MetaKey], "seq").Int64()
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

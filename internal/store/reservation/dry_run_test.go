package reservation_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// allKeys writes down every key of a server and what it has, but not the keys that end so.
func allKeys(t *testing.T, c *redis.Client, but string) string {
	t.Helper()
	ctx := stocktest.Soon(t)
	var lines []string
	for _, key := range c.Keys(ctx, "*").Val() {
		if strings.HasSuffix(key, but) {
			continue
		}
		var has any
		switch kind := c.Type(ctx, key).Val(); kind {
		case "hash":
			has = c.HGetAll(ctx, key).Val()
		case "zset":
			has = c.ZRangeWithScores(ctx, key, 0, -1).Val()
		case "stream":
			has = c.XRange(ctx, key, "-", "+").Val()
		case "set":
			members := c.SMembers(ctx, key).Val()
			slices.Sort(members)
			has = members
		case "string":
			has = c.Get(ctx, key).Val()
		default:
			t.Fatalf("%s is a %s", key, kind)
		}
		lines = append(lines, fmt.Sprint(key, " ", has))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// dryRun is a dry run for one unit; it returns the reason of the refusal, "repeat" or "".
func dryRun(t *testing.T, e *edge.Edge, a sale.Attempt, sold reservation.PriorAnswer) (reason, shadow sale.Reason) {
	t.Helper()
	l, _ := e.Catalogue().Sale("s")
	a.Sale, a.Lines = "s", []sale.Line{{SKU: "a", Quantity: 1}}
	would, no, err := e.DryRun(stocktest.Soon(t), l, &a, a.Lines, stocktest.HoldOptions, sold)
	if _, repeat := errors.AsType[*reservation.AlreadyBound](err); repeat {
		return "repeat", ""
	} else if err != nil {
		t.Fatal(err)
	}
	if no != nil {
		reason = no.Reason
	}
	if would != nil {
		shadow = would.Reason
	}
	return reason, shadow
}

// A dry run decides as a reserve request would, and changes nothing but counters of its own: what
// the shop has sold is gone for the next dry run, and for no buyer.
func TestDryRunsChangeNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e := stocktest.Selling(t, stocktest.Options(b), 3, stocktest.PerBuyer(1))
		stocktest.MustHold(t, e, "real", "zoe", 1)
		before := allKeys(t, b.Client(), ":shadow")
		for i, c := range []struct {
			buyer, key, ref string
			sold            reservation.PriorAnswer
			want            sale.Reason
		}{
			{"ann", "", "", reservation.NotSold, ""},
			{"ann", "", "", reservation.NotSold, ""}, // the first one charged nothing
			{"ann", "", "", reservation.WasSold, ""},
			{"ann", "", "", reservation.NotSold, sale.LimitReached},
			{"ann", "", "", reservation.WasSold, sale.LimitReached}, // sold past the gate
			{"zoe", "", "", reservation.NotSold, sale.Pending},      // what is really held counts
			{"bob", "k", "r", reservation.WasSold, ""},
			{"bob", "k", "", reservation.WasSold, "repeat"},
			{"bob", "", "r", reservation.WasSold, "repeat"},
			{"cid", "", "r", reservation.NotSold, sale.AllHeld}, // the same ref of another buyer is another order
			{"cid", "", "", reservation.SoldPast, ""},
		} {
			a := sale.Attempt{Buyer: c.buyer, Key: c.key, Ref: c.ref}
			if c.key != "" {
				a.Print = "print"
			}
			if got, _ := dryRun(t, e, a, c.sold); got != c.want {
				t.Errorf("%d, %s: %q, want %q", i, c.buyer, got, c.want)
			}
		}
		if after := allKeys(t, b.Client(), ":shadow"); after != before {
			t.Errorf("a dry run has changed keys:\n%s\nwere\n%s", after, before)
		}
		units, err := e.Store.Shadow(stocktest.Soon(t), "s")
		if err != nil || units == nil || *units != (reservation.ShadowUnits{Sold: 2, Past: 2}) {
			t.Errorf("noted are %+v (%v), want 2 sold and 2 past", units, err)
		}
		stocktest.MustHold(t, e, "real-2", "ann", 1) // neither units nor limits of buyers are touched
	})
}

// Dry runs in one call see each other: no unit is sold twice.
func TestDryRunsTogether(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		const stock, crowd = 5, 40
		e := stocktest.Selling(t, stocktest.Options(b), stock)
		refused := make(chan sale.Reason, crowd)
		for i := range crowd {
			go func() {
				reason, _ := dryRun(t, e, sale.Attempt{Buyer: fmt.Sprint(i)}, reservation.WasSold)
				refused <- reason
			}()
		}
		got := map[sale.Reason]int{}
		for range crowd {
			got[<-refused]++
		}
		if got[""] != stock || got[sale.SoldOut] != crowd-stock {
			t.Errorf("%v, want %d let through and the others sold out", got, stock)
		}
		units, err := e.Store.Shadow(stocktest.Soon(t), "s")
		if err != nil || units == nil || *units != (reservation.ShadowUnits{Sold: stock, Past: crowd - stock}) {
			t.Errorf("noted are %+v (%v)", units, err)
		}
	})
}

// A limit in shadow counts every unit, refuses none, and says what it would have refused; the
// books stay exact, and out of shadow it refuses by all that it has counted.
func TestLimitInShadow(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		limit := stocktest.PerBuyer(1)
		limit.Shadow = true
		e := stocktest.Selling(t, stocktest.Options(b), 9, limit)
		hold := func(id string) (reservation.Hold, *sale.Refusal) {
			h, no, err := stocktest.Hold(stocktest.Soon(t), e, id, "ann", 1)
			if err != nil {
				t.Fatal(err)
			}
			return h, no
		}
		if h, no := hold("h1"); no != nil || h.Shadow != nil {
			t.Fatalf("the first: %v, in shadow %v", no, h.Shadow)
		}
		if _, err := e.Store.Confirm(stocktest.Soon(t), "s", "h1", reservation.SourceAnswer, "status_200"); err != nil {
			t.Fatal(err)
		}
		if h, no := hold("h2"); no != nil || h.Shadow == nil || h.Shadow.Reason != sale.LimitReached || h.Shadow.Limit == nil {
			t.Fatalf("beyond the limit: %v, in shadow %v", no, h.Shadow)
		}
		stocktest.Balanced(t, b.Client(), e.Store, "s")
		file := stocktest.OpenSale("s", 9, stocktest.PerBuyer(2))
		stocktest.Apply(t, e, file)
		if _, err := e.Store.Confirm(stocktest.Soon(t), "s", "h2", reservation.SourceAnswer, "status_200"); err != nil {
			t.Fatal(err)
		}
		if _, no := hold("h3"); no == nil || no.Reason != sale.LimitReached {
			t.Errorf("out of shadow: %v, want limit_reached by both units", no)
		}
		if reason, _ := dryRun(t, e, sale.Attempt{Buyer: "ann"}, reservation.NotSold); reason != sale.LimitReached {
			t.Errorf("a dry run: %q", reason)
		}
	})
}

package reservation_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
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

// several returns edges on one server, not started, that have seen its sales.
func several(t *testing.T, o shard.Options, n int, files ...*sale.Sale) []*edge.Edge {
	t.Helper()
	edges := make([]*edge.Edge, n)
	for i := range edges {
		edges[i] = stocktest.Ready(t, o)
	}
	for _, file := range files {
		stocktest.Load(t, edges[0].Store, file)
	}
	for _, e := range edges {
		if err := e.Refresh(stocktest.Soon(t)); err != nil {
			t.Fatal(err)
		}
	}
	return edges
}

// try holds stock for an attempt at a sale, under a key of its own: one person may
// ask for the same again.
func try(ctx context.Context, e *edge.Edge, id string, a *sale.Attempt) (*sale.Refusal, error) {
	l, ok := e.Catalogue().Sale(a.Sale)
	if !ok {
		return nil, fmt.Errorf("the edge knows no sale %s", a.Sale)
	}
	lines, refusal := l.Resolve(a)
	if refusal != nil {
		return refusal, nil
	}
	keyed := *a
	keyed.Key, keyed.Print = id, "print"
	_, refusal, err := e.Hold(ctx, id, l, &keyed, lines, stocktest.HoldOptions)
	return refusal, err
}

// mustTry wants an attempt to pass (reason "") or to be refused for a reason.
func mustTry(t *testing.T, e *edge.Edge, id string, a *sale.Attempt, reason sale.Reason) *sale.Refusal {
	t.Helper()
	refusal, err := try(stocktest.Soon(t), e, id, a)
	var got sale.Reason
	if refusal != nil {
		got = refusal.Reason
	}
	if err != nil || got != reason {
		t.Fatalf("%s: %q (%v), want %q", id, got, err, reason)
	}
	return refusal
}

// ways in which one person writes the same identity.
var ways = map[string][]string{
	"buyer":   {"Ann"},
	"phone":   {"+8613800138000", "0086 138-0013-8000", "+86 (138) 0013 8000"},
	"address": {"5 Main St.", "5, MAIN  st", "５ main-st"},
	"device":  {"D-1"},
	"ip":      {"2001:db8::1", "2001:db8::2:3", "2001:DB8:0:0:ffff::"},
}

// person is the n-th attempt of a buyer with one identity only.
func person(saleID, shared string, n int) *sale.Attempt {
	a := &sale.Attempt{
		Sale: saleID, Buyer: fmt.Sprint("buyer-", n),
		Identities: map[string]string{
			"phone": fmt.Sprint("555-", n), "address": fmt.Sprint("Street ", n), "device": fmt.Sprint("device-", n), "ip": fmt.Sprint("203.0.113.", n),
		},
	}
	value := ways[shared][n%len(ways[shared])]
	if shared == "buyer" {
		a.Buyer = value
	} else {
		a.Identities[shared] = value
	}
	return a
}

// Of a crowd that is one person, on several edges at once, exactly as many pass as
// the limit allows, for every kind of limit.
func TestLimitsLetExactlyTheirMaxPass(t *testing.T) {
	kinds := []string{"buyer", "phone", "address", "device", "ip"}
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		var files []*sale.Sale
		for i, per := range []sale.Identities{"buyer", "phone", "address", "device", "ip", "address+buyer+phone", "buyer+device+ip"} {
			for _, every := range []string{"hour", "day", "week", "month", "sale"} {
				for _, count := range []string{"units", "orders"} {
					file := stocktest.OpenSale(fmt.Sprintf("s%d-%s-%s", i, every, count), 100, sale.Limit{Per: per, Every: every, Count: count, Max: 4})
					file.Timezone = "Asia/Kathmandu"
					files = append(files, file)
				}
			}
		}
		edges := several(t, stocktest.Options(b), 3, files...)
		for _, file := range files {
			limit := file.Limits[0]
			var shared []string // the identities that the limit knows, and the crowd may share
			for _, kind := range kinds {
				if slices.Contains(slices.Collect(limit.Per.All), kind) {
					shared = append(shared, kind)
				}
			}
			for n, kind := range shared[:min(2, len(shared))] {
				if n > 0 && limit.Every != "day" {
					continue // the second identity of a union, once
				}
				t.Run(fmt.Sprintf("%s by %s", limit.ID(), kind), func(t *testing.T) {
					id := file.ID
					if n > 0 {
						id = "again-" + file.ID
						again := *file
						again.ID = id
						stocktest.Load(t, edges[0].Store, &again)
						for _, e := range edges {
							if err := e.Refresh(stocktest.Soon(t)); err != nil {
								t.Fatal(err)
							}
						}
					}
					crowd(t, edges, id, kind, limit)
				})
			}
		}
	})
}

// crowd lets twelve attempts of one person loose. An hour may end meanwhile, and
// then they may buy again: so it is looked at before and after.
func crowd(t *testing.T, edges []*edge.Edge, id, shared string, limit sale.Limit) {
	t.Helper()
	l, _ := edges[0].Catalogue().Sale(id)
	began := l.Sale.Counter(0, l.Now())

	units := int64(1)
	if limit.Count == "units" {
		units = 2
	}
	var attempts sync.WaitGroup
	var mutex sync.Mutex
	passed := 0
	for n := range 12 {
		attempts.Go(func() {
			a := person(id, shared, n)
			a.Lines = []sale.Line{{SKU: "a", Quantity: units}}
			refusal, err := try(stocktest.Soon(t), edges[n%len(edges)], fmt.Sprintf("%s-%s-%d", id, shared, n), a)
			mutex.Lock()
			defer mutex.Unlock()
			switch {
			case err != nil:
				t.Errorf("attempt %d: %v", n, err)
			case refusal == nil:
				passed++
			case refusal.Reason != sale.Pending || *refusal.Limit != l.Sale.Limits[0]:
				t.Errorf("attempt %d: %+v", n, refusal)
			}
		})
	}
	attempts.Wait()
	if want := int(limit.Max / units); passed != want && l.Sale.Counter(0, l.Now()).To == began.To {
		t.Errorf("%d passed, want %d", passed, want)
	}
}

// Buyers who share any identity of a union share its count, and a refusal charges
// none of them.
func TestUnionOfIdentities(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		file := stocktest.OpenSale("s", 100, sale.Limit{Per: sale.Union("buyer", "phone", "address"), Every: "sale", Count: "orders", Max: 1})
		file.Missing = sale.SkipMissing
		e := several(t, stocktest.Options(b), 1, file)[0]
		who := func(buyer, phone, address string) *sale.Attempt {
			return &sale.Attempt{Sale: "s", Buyer: buyer, Identities: map[string]string{"phone": phone, "address": address}, Lines: []sale.Line{{SKU: "a", Quantity: 1}}}
		}
		mustTry(t, e, "r1", who("Ann", "111", "North 1"), "")
		mustTry(t, e, "r2", who("Bob", "1-1-1", "South 2"), sale.Pending) // two accounts, one phone
		mustTry(t, e, "r3", who("Ann", "333", "East 3"), sale.Pending)    // one account, two phones
		mustTry(t, e, "r4", who("Cy", "444", "NORTH, 1"), sale.Pending)   // one address
		mustTry(t, e, "r5", who("Bob", "222", "South 2"), "")             // the refusals charged no buyer
		mustTry(t, e, "r6", who("", "333", ""), "")                       // a guest
		mustTry(t, e, "r7", who("", "333", "East 3"), sale.Pending)       // the same
		mustTry(t, e, "r8", who("Dan", "444", "West 4"), "")              // no refused buyer is charged
		mustTry(t, e, "r9", who("Eve", "", ""), "")                       // no more than an account
		mustTry(t, e, "r10", who("Eve", "555", ""), sale.Pending)         // the same
		if _, err := e.ReleaseEventually(stocktest.Soon(t), "s", "r1", reservation.SourceShop, "test"); err != nil {
			t.Fatal(err)
		}
		mustTry(t, e, "r11", who("Fay", "111", "Hill 6"), "") // all of it was given back
		mustTry(t, e, "r12", who("Gus", "777", "North 1"), "")
		if _, err := e.ConfirmEventually(stocktest.Soon(t), "s", "r11", "test"); err != nil {
			t.Fatal(err)
		}
		if refusal := mustTry(t, e, "r13", who("Ann", "111", "Hill 7"), sale.LimitReached); refusal.RetryAfter != 0 {
			t.Errorf("waiting does not help, and yet: %+v", refusal)
		}
	})
}

// The limits of an order without stock were given back when its units were, and its release gives
// back nothing more: what else its buyer has still counts. When its units are there after all
// they count again, once.
func TestLimitsOfAnUnbackedOrder(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e := several(t, stocktest.Options(b), 1, stocktest.OpenSale("s", 4, stocktest.PerBuyer(4)))[0]
		of := func(buyer string, units int64) *sale.Attempt {
			return &sale.Attempt{Sale: "s", Buyer: buyer, Lines: []sale.Line{{SKU: "a", Quantity: units}}}
		}
		ctx := stocktest.Soon(t)
		settles := func(id string, want record.State) func(record.State, error) {
			t.Helper()
			return func(got record.State, err error) {
				t.Helper()
				if err != nil || got != want {
					t.Fatalf("%s is %q, want %q: %v", id, got, want, err)
				}
			}
		}
		counts := func(want ...string) {
			t.Helper()
			all, err := b.Client().HVals(ctx, e.Store.ShardKeys("s")[shard.LimitsKey]).Result()
			slices.Sort(all)
			if err != nil || !slices.Equal(all, want) {
				t.Fatalf("the limits' counters are %q, want %q: %v", all, want, err)
			}
		}
		mustTry(t, e, "r1", of("Ann", 2), "")
		mustTry(t, e, "r2", of("Ann", 2), "")
		counts("4 4")
		settles("r1", record.Released)(e.Store.Release(ctx, "s", "r1", reservation.SourceShop, ""))
		counts("2 2")
		mustTry(t, e, "r3", of("Bob", 2), "")
		counts("2 2", "2 2")
		settles("r1", record.Unbacked)(e.Store.Confirm(ctx, "s", "r1", reservation.SourceAnswer, ""))
		counts("2 2", "2 2")
		settles("r1", record.Released)(e.Store.Release(ctx, "s", "r1", reservation.SourceShop, ""))
		counts("2 2", "2 2")
		mustTry(t, e, "r4", of("Ann", 3), sale.Pending)
		settles("r1", record.Unbacked)(e.Store.Confirm(ctx, "s", "r1", reservation.SourceAnswer, ""))
		settles("r3", record.Released)(e.Store.Release(ctx, "s", "r3", reservation.SourceShop, ""))
		settles("r1", record.Confirmed)(e.Store.Confirm(ctx, "s", "r1", reservation.SourceAnswer, ""))
		counts("4 2")
		mustTry(t, e, "r5", of("Ann", 1), sale.Pending)
	})
}

// A limit of one order needs no counter, and what is missing is said before it.
func TestLimitOfOneOrder(t *testing.T) {
	b := redistest.Embedded(t)
	e := several(t, stocktest.Options(b), 1, stocktest.OpenSale("s", 100,
		sale.Limit{Per: "buyer", Every: "order", Count: "units", Max: 2, SKU: "a"},
		sale.Limit{Per: "phone", Every: "sale", Count: "units", Max: 100}))[0]
	who := func(units int64, phone string) *sale.Attempt {
		return &sale.Attempt{Sale: "s", Buyer: "Ann", Identities: map[string]string{"phone": phone}, Lines: []sale.Line{{SKU: "a", Quantity: units}}}
	}
	for i := range 5 {
		mustTry(t, e, fmt.Sprint("r", i), who(2, "111"), "")
	}
	if refusal := mustTry(t, e, "r5", who(3, "111"), sale.LimitReached); refusal.Limit.Every != "order" || refusal.RetryAfter != 0 {
		t.Errorf("refused by %+v", refusal)
	}
	if refusal := mustTry(t, e, "r6", who(3, ""), sale.Malformed); refusal.Detail != "identity phone is missing" {
		t.Errorf("refused by %+v", refusal)
	}
	if c := stocktest.CellA(t, e.Store); c.Held != 10 {
		t.Errorf("%d units are held, want 10", c.Held)
	}
}

// At midnight every buyer may buy again. A refusal says how long it is until then, and
// units that come back later count for the day before.
func TestLimitAtMidnight(t *testing.T) {
	b := redistest.Embedded(t)
	tomorrow := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 2)
	b.SetTime(tomorrow.Add(-10 * time.Second))
	file := stocktest.OpenSale("s", 100, sale.Limit{Per: "buyer", Every: "day", Count: "units", Max: 1})
	e := several(t, stocktest.Options(b), 1, file)[0]
	ann := &sale.Attempt{Sale: "s", Buyer: "Ann", Lines: []sale.Line{{SKU: "a", Quantity: 1}}}

	mustTry(t, e, "r1", ann, "")
	if refusal := mustTry(t, e, "r2", ann, sale.Pending); refusal.RetryAfter != 0 {
		t.Errorf("the buyer's own hold ends sooner than the day: %+v", refusal)
	}
	mustTry(t, e, "r3", &sale.Attempt{Sale: "s", Buyer: "Bob", Lines: ann.Lines}, "")
	if _, err := e.ConfirmEventually(stocktest.Soon(t), "s", "r1", "test"); err != nil {
		t.Fatal(err)
	}
	if refusal := mustTry(t, e, "r4", ann, sale.LimitReached); refusal.RetryAfter < 1 || refusal.RetryAfter > 10 {
		t.Errorf("it is at most 10 s until midnight, not %d", refusal.RetryAfter)
	}
	two := &sale.Attempt{Sale: "s", Buyer: "Ann", Lines: []sale.Line{{SKU: "a", Quantity: 2}}}
	if refusal := mustTry(t, e, "r5", two, sale.LimitReached); refusal.RetryAfter != 0 {
		t.Errorf("no day lets a buyer buy two, and yet: %+v", refusal)
	}

	b.SetTime(tomorrow.Add(-200 * time.Millisecond))
	mustTry(t, e, "r6", ann, sale.LimitReached)
	b.SetTime(tomorrow) // the edge does not know it yet
	mustTry(t, e, "r7", ann, "")
	mustTry(t, e, "r8", &sale.Attempt{Sale: "s", Buyer: "Bob", Lines: ann.Lines}, "")
	if _, err := e.ReleaseEventually(stocktest.Soon(t), "s", "r3", reservation.SourceShop, "test"); err != nil {
		t.Fatal(err)
	}
	mustTry(t, e, "r9", &sale.Attempt{Sale: "s", Buyer: "Bob", Lines: ann.Lines}, sale.Pending)
	if _, err := e.ReleaseEventually(stocktest.Soon(t), "s", "r8", reservation.SourceShop, "test"); err != nil {
		t.Fatal(err)
	}
	mustTry(t, e, "r10", &sale.Attempt{Sale: "s", Buyer: "Bob", Lines: ann.Lines}, "")
}

// The last day of a sale has no tomorrow.
func TestLimitOnTheLastDay(t *testing.T) {
	b := redistest.Embedded(t)
	now := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 2).Add(12 * time.Hour)
	b.SetTime(now)
	file := stocktest.OpenSale("s", 100, sale.Limit{Per: "buyer", Every: "day", Count: "units", Max: 1})
	file.EndsAt = now.Add(12 * time.Hour)
	e := several(t, stocktest.Options(b), 1, file)[0]
	ann := &sale.Attempt{Sale: "s", Buyer: "Ann", Lines: []sale.Line{{SKU: "a", Quantity: 1}}}
	mustTry(t, e, "r1", ann, "")
	if _, err := e.ConfirmEventually(stocktest.Soon(t), "s", "r1", "test"); err != nil {
		t.Fatal(err)
	}
	if refusal := mustTry(t, e, "r2", ann, sale.LimitReached); refusal.RetryAfter != 0 {
		t.Errorf("the sale is over tomorrow, and yet: %+v", refusal)
	}
}

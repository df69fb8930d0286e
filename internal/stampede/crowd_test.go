package stampede_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/shop"
	"github.com/stockgate/stockgate/internal/stampede"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// counter answers what reply says to the n-th order of a buyer (from 1), and
// remembers what came.
type counter struct {
	reply func(buyer string, n int) (status int, refusal, body string)

	mu     sync.Mutex
	orders map[string]int
	bodies map[string]int
	header http.Header
}

func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	buyer := r.Header.Get("X-User-Id")
	c.mu.Lock()
	if c.orders == nil {
		c.orders, c.bodies = map[string]int{}, map[string]int{}
	}
	c.orders[buyer]++
	c.bodies[string(body)]++
	c.header = r.Header.Clone()
	n := c.orders[buyer]
	c.mu.Unlock()
	status, refusal, text := c.reply(buyer, n)
	if refusal != "" {
		w.Header().Set("Stockgate-Refusal", refusal)
	} else {
		w.Header().Set("Stockgate-Reservation", fmt.Sprint(buyer, "/", n))
	}
	w.WriteHeader(status)
	io.WriteString(w, text)
}

func says(status int, refusal, body string) func(string, int) (int, string, string) {
	return func(string, int) (int, string, string) { return status, refusal, body }
}

func run(t *testing.T, h http.Handler, c stampede.Crowd) *stampede.Tally {
	t.Helper()
	server := httptest.NewServer(h)
	defer server.Close()
	c.URL = server.URL + "/api/order"
	if c.Baskets == nil {
		c.Baskets = []stampede.Basket{stampede.Buy("a", 1)}
	}
	tally, err := c.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tally
}

func TestEverybodyOrdersOnce(t *testing.T) {
	c := &counter{reply: says(201, "", `{"code":0}`)}
	tally := run(t, c, stampede.Crowd{Buyers: 40, Concurrency: 7, Misbehave: "delay=1ms", Header: http.Header{"X-Extra": {"1"}}})
	if tally.Buyers != 40 || tally.Requests != 40 || tally.Accepted != 40 || tally.Statuses[201] != 40 || len(tally.Answers) != 40 {
		t.Errorf("tally: %+v", tally)
	}
	if c.orders["buyer-1"] != 1 || c.orders["buyer-40"] != 1 || len(c.orders) != 40 {
		t.Errorf("orders: %v", c.orders)
	}
	if c.header.Get("X-Misbehave") != "delay=1ms" || c.header.Get("X-Extra") != "1" || c.header.Get("Content-Type") != "application/json" {
		t.Errorf("header: %v", c.header)
	}
	for _, a := range tally.Answers {
		if a.Reservation != a.Buyer+"/1" || !a.Accepted {
			t.Errorf("answer: %+v", a)
		}
	}
	if l := tally.Latency; l.P50 <= 0 || l.P50 > l.P99 || l.P99 > l.Max || tally.Busy <= 0 || tally.Busy > tally.Elapsed {
		t.Errorf("latency %+v, busy %v of %v", l, tally.Busy, tally.Elapsed)
	}
}

func TestBasketsAreTakenInTurn(t *testing.T) {
	c := &counter{reply: says(409, "sold_out", "")}
	several := []sale.Line{{SKU: "a", Quantity: 1, Region: "north"}, {SKU: "b", Quantity: 3, Region: "north"}}
	tally := run(t, c, stampede.Crowd{Buyers: 6, Baskets: []stampede.Basket{
		stampede.Buy("a", 2), {Lines: several}, {Lines: several[:1]},
	}})
	expected := map[string]int{
		`{"sku":"a","quantity":2}`: 2,
		`{"items":[{"sku":"a","count":1},{"sku":"b","count":3}],"region":"north"}`: 2,
		`{"sku":"a","quantity":1,"region":"north"}`:                                2,
	}
	if !maps.Equal(c.bodies, expected) {
		t.Errorf("bodies: %v", c.bodies)
	}
	if len(tally.SoldOut) != 3 || tally.Refused["sold_out"] != 6 || len(tally.TurnedAway) != 6 || len(tally.Answers) != 0 {
		t.Errorf("tally: %+v", tally)
	}
}

func TestDoubleClicksAndThoseWhoComeBack(t *testing.T) {
	c := &counter{reply: func(_ string, n int) (int, string, string) {
		if n > 1 {
			return 403, "limit_reached", ""
		}
		return 201, "", ""
	}}
	tally := run(t, c, stampede.Crowd{Buyers: 20, DoubleClick: 10, ComeBack: 4})
	if tally.Accepted != 20 || tally.Refused["limit_reached"] != 2+5 || tally.Requests != 27 || len(tally.TurnedAway) != 0 {
		t.Errorf("tally: %+v", tally)
	}
}

// TestRetries: who hears that units may come back tries again, who hears that it
// is sold out leaves.
func TestRetries(t *testing.T) {
	for reason, retried := range map[string]bool{"all_held": true, "busy": true, "sold_out": false, "limit_reached": false, "nonsense": false} {
		c := &counter{reply: func(_ string, n int) (int, string, string) {
			if n < 4 {
				return 409, reason, ""
			}
			return 201, "", ""
		}}
		tally := run(t, c, stampede.Crowd{Buyers: 5, Retry: stampede.Retry{Times: 3, AtOnce: true}})
		if (tally.Accepted == 5) != retried || (tally.Requests == 20) != retried {
			t.Errorf("%s: %+v", reason, tally)
		}
		if (len(tally.TurnedAway) == 0) != retried {
			t.Errorf("%s: turned away: %v", reason, tally.TurnedAway)
		}
	}
}

func TestZipfRepeatsBuyers(t *testing.T) {
	orders := func(seed uint64) map[string]int {
		c := &counter{reply: says(409, "sold_out", "")}
		run(t, c, stampede.Crowd{Buyers: 50, Purchases: 400, Zipf: 1.5, Seed: seed})
		return c.orders
	}
	first := orders(1)
	if first["buyer-1"] < 40 || len(first) < 5 || len(first) > 50 {
		t.Errorf("orders by buyer: %v", first)
	}
	if again := orders(1); !maps.Equal(first, again) {
		t.Errorf("the same seed gave %v and %v", first, again)
	}
}

// TestOpenLoopKeepsItsRate: 50 orders at 500 a second are not all due before
// 98 ms are over, however fast the answers come.
func TestOpenLoopKeepsItsRate(t *testing.T) {
	tally := run(t, &counter{reply: says(201, "", "")}, stampede.Crowd{Buyers: 50, Rate: 500})
	if tally.Requests != 50 || tally.Elapsed < 98*time.Millisecond {
		t.Errorf("%d orders in %v", tally.Requests, tally.Elapsed)
	}
}

// TestWaitingForAConnectionCounts: all orders are due at once and share one
// connection, so the last waits for all the others, as a buyer would.
func TestWaitingForAConnectionCounts(t *testing.T) {
	var first, last time.Time
	arrived := func(string, int) (int, string, string) {
		last = time.Now()
		if first.IsZero() {
			first = last
		}
		return 201, "", ""
	}
	tally := run(t, &counter{reply: arrived}, stampede.Crowd{Buyers: 100, Rate: 1e6, Concurrency: 1})
	// the last order was due 0.1 ms after the first
	if waited := last.Sub(first) - 100*time.Microsecond; tally.Latency.Max < waited {
		t.Errorf("the longest wait was %v, and the last order waited for %v", tally.Latency.Max, waited)
	}
}

func TestAnswersThatAreNoYes(t *testing.T) {
	for body, accepted := range map[string]bool{
		"": true, "thanks": true, `[1]`: true, `{}`: true, `{"code":null}`: true, `{"code":0}`: true, `{"code":"0"}`: true, `{"code": 200}`: true,
		`{"code":500}`: false, `{"code":"E17"}`: false, `{"code":-1}`: false, `{"code":false}`: false,
	} {
		tally := run(t, &counter{reply: says(200, "", body)}, stampede.Crowd{})
		if (tally.Accepted == 1) != accepted || tally.Unclear() != 1-tally.Accepted {
			t.Errorf("%s: accepted %d, otherwise %d", body, tally.Accepted, tally.Unclear())
		}
	}
	for _, status := range []int{302, 409, 500, 502} {
		if tally := run(t, &counter{reply: says(status, "", `{"code":0}`)}, stampede.Crowd{}); tally.Accepted != 0 || tally.Unclear() != 1 {
			t.Errorf("status %d: %+v", status, tally)
		}
	}
}

func TestNoAnswer(t *testing.T) {
	hang := make(chan struct{})
	for kind, c := range map[string]struct {
		handler http.HandlerFunc
		timeout time.Duration
	}{
		"reset":   {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0},
		"timeout": {func(http.ResponseWriter, *http.Request) { <-hang }, 50 * time.Millisecond},
	} {
		server := httptest.NewServer(c.handler)
		tally, err := stampede.Crowd{URL: server.URL, Buyers: 3, Baskets: []stampede.Basket{stampede.Buy("a", 1)}, Timeout: c.timeout}.Run(t.Context())
		if kind == "timeout" {
			close(hang)
		}
		server.Close()
		if err != nil || tally.Failed[kind] != 3 || tally.TotalFailed() != 3 || len(tally.TurnedAway) != 0 || len(tally.Answers) != 3 {
			t.Errorf("%s: %+v, %v", kind, tally, err)
		}
	}
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	tally, err := stampede.Crowd{URL: server.URL, Baskets: []stampede.Basket{stampede.Buy("a", 1)}}.Run(t.Context())
	if err != nil || tally.Failed["refused"] != 1 {
		t.Errorf("nothing listens: %+v, %v", tally, err)
	}
}

func TestInterruptedCrowdGoesHome(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := &counter{reply: func(string, int) (int, string, string) { cancel(); return 503, "unavailable", "" }}
	server := httptest.NewServer(c)
	defer server.Close()
	tally, err := stampede.Crowd{
		URL: server.URL, Buyers: 1000, Concurrency: 2, Baskets: []stampede.Basket{stampede.Buy("a", 1)},
		Retry: stampede.Retry{Times: 1 << 30, AtOnce: true},
	}.Run(ctx)
	if err != nil || tally.Requests > 4 {
		t.Errorf("%+v, %v", tally, err)
	}
}

func TestCrowdsThatCannotBe(t *testing.T) {
	good := stampede.Crowd{URL: "http://127.0.0.1:1/", Baskets: []stampede.Basket{stampede.Buy("a", 1)}}
	for says, change := range map[string]func(*stampede.Crowd){
		"give a whole http or https URL": func(c *stampede.Crowd) { c.URL = "shop/api/order" },
		"may be negative":                func(c *stampede.Crowd) { c.Buyers = -1 },
		"between 1 (not included)":       func(c *stampede.Crowd) { c.Zipf = 1 },
		"orders per second":              func(c *stampede.Crowd) { c.Rate = -5 },
		"no spaces":                      func(c *stampede.Crowd) { c.Prefix = "a b" },
		"wants nothing":                  func(c *stampede.Crowd) { c.Baskets = nil },
		"it has no lines":                func(c *stampede.Crowd) { c.Baskets = []stampede.Basket{{}} },
		"names no sku":                   func(c *stampede.Crowd) { c.Baskets = []stampede.Basket{stampede.Buy("", 1)} },
		"an order goes to one": func(c *stampede.Crowd) {
			c.Baskets = []stampede.Basket{{Lines: []sale.Line{{SKU: "a", Region: "n"}, {SKU: "b", Region: "s"}}}}
		},
		"raise `ulimit -n`": func(c *stampede.Crowd) { c.Concurrency = stampede.OpenFiles() },
	} {
		c := good
		change(&c)
		if _, err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("expected %q, got %v", says, err)
		}
	}
}

// TestAShopWithoutAGateOversells is the reason for it all: a shop that looks at
// no stock sells to every buyer, and the check must report it.
func TestAShopWithoutAGateOversells(t *testing.T) {
	s, err := shop.New(shop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	server := httptest.NewServer(s)
	defer server.Close()
	tally, err := stampede.Crowd{URL: server.URL + "/api/order", Buyers: 30, Baskets: []stampede.Basket{stampede.Buy("a", 1)}}.Run(t.Context())
	if err != nil || tally.Accepted != 30 {
		t.Fatalf("%+v, %v", tally, err)
	}
	sources := stampede.Sources{
		Orders: func(ctx context.Context) (orders []stampede.Order, err error) {
			written, err := s.Orders(ctx)
			for _, o := range written {
				orders = append(orders, stampede.Order{OrderNo: o.OrderNo, Reservation: o.Reservation, Buyer: o.Buyer, Lines: o.Lines})
			}
			return orders, err
		},
		Stock: func(context.Context) (*reservation.SaleStock, error) {
			return &reservation.SaleStock{ID: "s", Balanced: true, Items: []record.Cell{{SKU: "a", Stock: 10, Available: 10}}}, nil
		},
		Record: func(context.Context, string) (*reservation.Record, error) { return nil, reservation.ErrNotFound },
	}
	evidence, err := sources.Collect(t.Context(), tally)
	if err != nil {
		t.Fatal(err)
	}
	v := stampede.Check(evidence, stampede.Tolerance{})
	text := strings.Join(v.Violations, "\n")
	for _, expected := range []string{"oversold in the shop: 30 units of a are ordered, and there are 10", "has no reservation", "was told yes without a reservation"} {
		if !strings.Contains(text, expected) {
			t.Errorf("expected %q in:\n%s", expected, text)
		}
	}
	if v.Oversold != 20 {
		t.Errorf("oversold by %d, expected 20", v.Oversold)
	}
}

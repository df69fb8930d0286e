package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/test/redistest"
)

// Every refusal that a sale's file or state gives, through HTTP, and nothing is
// reserved or forwarded.
func TestRefusalsOfASale(t *testing.T) {
	t.Parallel()
	s := new(recorder)
	e := startEdge(t, site{shop: serve(t, s), matcher: "path /api/order /in/*",
		source: sources + "\nsale {query.sale}"})
	e.sell("open", "  - {sku: \"1\", stock: 10, min: 2, max: 3}\n  - {sku: \"2\", regions: {north: 1, south: 0}}\n  - {sku: \"3\", stock: 0}")
	soon := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	e.apply("soon", "starts_at: "+soon+"\nends_at: 2090-01-01T00:00:00Z\nitems:\n  - {sku: \"10\", stock: 1}")
	e.apply("over", "starts_at: 2020-01-01T00:00:00Z\nends_at: 2020-01-02T00:00:00Z\nitems:\n  - {sku: \"11\", stock: 1}")
	e.apply("paused", window+"items:\n  - {sku: \"12\", stock: 1}")
	e.apply("closed", window+"items:\n  - {sku: \"13\", stock: 1}")
	e.apply("draft", window+"items:\n  - {sku: \"14\", stock: 1}")
	for _, change := range []string{"soon/open", "over/open", "paused/open", "paused/pause", "closed/open", "closed/close"} {
		e.must("POST", "sales/"+change, "", nil)
	}
	eventually(t, "the edge has heard of all", func() bool {
		return e.itemState("soon", "10") == "not_started" && e.itemState("over", "11") == "ended" &&
			e.itemState("paused", "12") == "paused" && e.itemState("closed", "13") == "ended"
	})
	for _, test := range []struct {
		name  string
		order order
		path  string
		code  int
		why   string
		wait  bool
	}{
		{"not started", one("a", "10", 1, ""), "", 409, "not_started", true},
		{"ended", one("a", "11", 1, ""), "", 410, "ended", false},
		{"paused", one("a", "12", 1, ""), "", 409, "paused", true},
		{"closed", one("a", "13", 1, ""), "", 410, "closed", false},
		{"draft", one("a", "14", 1, ""), "", 409, "not_started", false},
		{"unknown item", one("a", "99", 1, ""), "", 404, "unknown_item", false},
		{"unknown sale", one("a", "1", 2, ""), "?sale=none", 404, "unknown_sale", false},
		{"no sale can have this id", one("a", "1", 2, ""), "?sale=A%20B", 404, "unknown_sale", false},
		{"item of another sale", one("a", "12", 2, ""), "?sale=open", 404, "unknown_item", false},
		{"unknown region", one("a", "2", 1, "west"), "", 404, "unknown_region", false},
		{"no region", one("a", "2", 1, ""), "", 404, "unknown_region", false},
		{"region without stock", one("a", "2", 1, "south"), "", 409, "sold_out", false},
		{"too few", one("a", "1", 1, ""), "", 400, "quantity", false},
		{"too many", one("a", "1", 4, ""), "", 400, "quantity", false},
		{"far too many", one("a", "1", 99999, ""), "", 400, "quantity", false},
		{"never any", one("a", "3", 1, ""), "", 409, "sold_out", false},
	} {
		o := test.order
		o.path = "/api/order" + test.path
		r := e.buy(o)
		if r.status != test.code || r.reason != test.why {
			t.Errorf("%s: %v", test.name, r)
		}
		if wait := r.header.Get("Retry-After"); (wait != "") != test.wait {
			t.Errorf("%s: Retry-After %q", test.name, wait)
		}
	}
	if r := e.buy(one("a", "10", 1, "")); r.reason == "not_started" {
		if wait, err := strconv.Atoi(r.header.Get("Retry-After")); err != nil || wait < 3000 || wait > 3700 {
			t.Errorf("the sale starts in an hour, Retry-After is %q", r.header.Get("Retry-After"))
		}
	}
	if n := s.orders(); n != 0 {
		t.Errorf("the shop got %d orders", n)
	}
	for _, id := range []string{"open", "soon", "over", "paused", "closed", "draft"} {
		for _, c := range e.stock(id).Items {
			if c.Available != c.Stock {
				t.Errorf("something was reserved: %v", e.stock(id))
			}
		}
	}
}

// A purchase limit counts a buyer's held and bought units, gives back released ones,
// and charges nothing for a refusal.
func TestPurchaseLimit(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan string, 1), make(chan int)
	s := &recorder{answer: func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Wait") != "" {
			arrived <- ""
			w.WriteHeader(<-release)
			return
		}
		w.WriteHeader(http.StatusCreated)
	}}
	e := startEdge(t, site{shop: serve(t, s)})
	e.apply("flash", window+"items:\n  - {sku: \"7\", stock: 10}\n  - {sku: \"8\", stock: 10}\nlimits:\n  - {per: buyer, every: sale, max: 3, count: units}")
	e.must("POST", "sales/flash/open", "", nil)
	e.untilSelling("flash")
	expect := func(o order, status int, reason string) {
		t.Helper()
		if r := e.buy(o); r.status != status || r.reason != reason {
			t.Errorf("%v, it should be %d %s", r, status, reason)
		}
	}
	expect(one("a", "7", 4, ""), 403, "limit_reached") // charges nothing
	expect(one("a", "7", 1, ""), 201, "")
	waiting := one("a", "8", 2, "")
	waiting.header = http.Header{"X-Wait": {"1"}}
	running := e.goBuy(waiting)
	await(t, "the second order is forwarded", arrived)
	expect(one("a", "7", 1, ""), 409, "pending") // the buyer's own hold uses up the limit
	expect(one("b", "7", 3, ""), 201, "")
	release <- 400
	if r := await(t, "the refused order", running); r.status != 400 {
		t.Errorf("the second order: %v", r)
	}
	expect(one("a", "8", 2, ""), 201, "")
	expect(one("a", "7", 1, ""), 403, "limit_reached")
	r := e.buy(one("a", "7", 1, ""))
	if !strings.Contains(r.body, `"max":3`) || r.header.Get("Retry-After") != "" {
		t.Errorf("the limit is not named: %v", r)
	}
}

// A double click runs once; a buyer may buy again when it is over.
func TestDoubleClick(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan string, 10), make(chan struct{})
	s := &recorder{answer: func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			arrived <- ""
			<-release
		}
		w.WriteHeader(http.StatusCreated)
	}}
	e := startEdge(t, site{shop: serve(t, s)})
	e.sell("flash", `  - {sku: "7", stock: 10}`)
	first := e.goBuy(one("a", "7", 1, ""))
	await(t, "the first click", arrived)
	if r := e.buy(one("a", "7", 1, "")); r.status != 409 || r.reason != "duplicate" || r.header.Get("Retry-After") == "" {
		t.Errorf("the second click: %v", r)
	}
	// the same in other words
	again := order{buyer: "a", body: `{ "quantity" : "1", "sku": 7 }`}
	if r := e.buy(again); r.reason != "duplicate" {
		t.Errorf("the third click: %v", r)
	}
	other := e.goBuy(one("a", "7", 2, ""))
	await(t, "another order of the same buyer", arrived)
	close(release)
	if r := await(t, "the first answer", first); r.status != 201 {
		t.Errorf("the first click: %v", r)
	}
	await(t, "the other answer", other)
	if r := e.buy(one("a", "7", 1, "")); r.status != 201 {
		t.Errorf("another purchase: %v", r)
	}
	e.expect("flash", 6, 0, 0, 4)
}

// No more attempts are forwarded at once than the gate allows; the rest is busy,
// and browsing is not touched.
func TestMaxInFlight(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan string, 10), make(chan struct{})
	s := &recorder{answer: func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			arrived <- ""
			<-release
		}
		w.WriteHeader(http.StatusCreated)
	}}
	e := startEdge(t, site{shop: serve(t, s), gate: "max_in_flight 2"})
	e.sell("flash", `  - {sku: "7", stock: 10}`)
	a, b := e.goBuy(one("a", "7", 1, "")), e.goBuy(one("b", "7", 1, ""))
	await(t, "an order", arrived)
	await(t, "an order", arrived)
	r := e.buy(one("c", "7", 1, ""))
	if r.status != 503 || r.reason != "busy" || r.header.Get("Retry-After") == "" {
		t.Errorf("the third buyer: %v", r)
	}
	if status, _, _ := e.get("/browse"); status != 201 {
		t.Errorf("browsing: %d", status)
	}
	e.expect("flash", 8, 2, 0, 0)
	close(release)
	await(t, "an answer", a)
	await(t, "an answer", b)
	if r := e.buy(one("c", "7", 1, "")); r.status != 201 {
		t.Errorf("the third buyer again: %v", r)
	}
}

// A change of a sale reaches every edge at the next of its looks at Redis, two a second,
// without a reload.
func TestSaleChangesReachEveryEdge(t *testing.T) {
	t.Parallel()
	s := new(recorder)
	server := redistest.Start(t)
	first, second := newEdge(t, ""), newEdge(t, "")
	second.storage = first.storage
	same := site{redis: redisAt(server.Addr()), shop: serve(t, s)}
	first.start(same)
	proxy := redistest.NewProxy(t, server.Addr())
	same.redis = redisAt(proxy.Addr())
	second.start(same)
	first.sell("flash", `  - {sku: "7", stock: 10, max: 2}`)
	second.untilSelling("flash")
	// within waits for the look that began after the change, which is over when another one begins.
	within := func(what string, cond func() bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if err := proxy.WaitRequests(ctx, proxy.Requests("SMEMBERS")+2, "SMEMBERS"); err != nil {
			t.Fatal(err)
		}
		if !cond() {
			t.Errorf("after a look at redis, not: %s", what)
		}
	}
	n := 0
	buy := func(quantity int64) result {
		n++
		return second.buy(one(fmt.Sprintf("buyer-%d", n), "7", quantity, ""))
	}
	if r := buy(1); r.status != 201 {
		t.Fatalf("the second edge: %v", r)
	}
	first.must("POST", "sales/flash/pause", "", nil)
	if r := first.buy(one("x", "7", 1, "")); r.reason != "paused" {
		t.Errorf("a paused sale sells at the edge that paused it: %v", r)
	}
	within("the second edge pauses", func() bool { return second.itemState("flash", "7") == "paused" })
	if r := buy(1); r.reason != "paused" {
		t.Errorf("a paused sale sells: %v", r)
	}
	first.must("POST", "sales/flash/open", "", nil)
	within("the second edge opens", func() bool { return buy(1).status == 201 })
	first.apply("flash", window+"items:\n  - {sku: \"7\", stock: 20, max: 1}")
	within("the second edge follows the file", func() bool { return buy(2).reason == "quantity" })
	first.must("POST", "sales/flash/items/7/stock", `{"id":"more","delta":5}`, nil)
	first.must("POST", "sales/flash/items/7/stock", `{"id":"more","delta":5}`, nil)
	if b := second.stock("flash"); b.Items[0].Stock != 25 || !b.Balanced {
		t.Errorf("after adding 5 once: %v", b)
	}
	first.must("POST", "sales/flash/close", "", nil)
	within("the second edge closes", func() bool { return buy(1).reason == "closed" })
}

package e2e_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/token"
)

// retries are the options of a gate whose orders may come again.
const retries = "idempotency {header.Idempotency-Key}\nref {json.order_no}"

// under gives an order an idempotency key.
func (o order) under(key string) order {
	o.header = http.Header{"Idempotency-Key": {key}}
	return o
}

// about gives an order of one unit the shop's own number.
func about(buyer, ref string) order {
	return order{buyer: buyer, body: fmt.Sprintf(`{"sku":"7","order_no":%q}`, ref), lines: []line{{"7", 1, ""}}}
}

// is fails unless a buyer got this.
func (r result) is(t *testing.T, status int, reason string) {
	t.Helper()
	if r.status != status || r.reason != reason {
		t.Errorf("%v, it should be %d %s", r, status, reason)
	}
}

// replays fails unless a buyer got the first answer again.
func (r result) replays(t *testing.T, first result) {
	t.Helper()
	if r.status != first.status || r.body != first.body || r.reservation != first.reservation || r.header.Get("Stockgate-Replayed") != "true" {
		t.Errorf("%v, the first answer was %v", r, first)
	}
}

// A buyer who repeats the key of a successful order gets its answer at every edge: when
// the sale is sold out and when it has ended. At an edge where they are over their rate
// they get that refusal.
func TestWinnerRetries(t *testing.T) {
	t.Parallel()
	s := &recorder{answer: func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "/orders/1")
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, `{"order_no":"SO-1"}`)
	}}
	first, second, _ := twoEdges(t, site{shop: serve(t, s), gate: retries + "\nrate {header.X-User-Id} 20 1h"})
	first.sell("flash", oneUnit)
	second.untilSelling("flash")
	won := first.buy(one("a", "7", 1, "").under("k1"))
	won.is(t, 201, "")
	again := func() {
		t.Helper()
		for _, e := range []*edge{first, second} {
			e.buy(one("a", "7", 1, "").under(`"k1"`)).replays(t, won)
			e.buy(one("a", "7", 2, "").under("k1")).is(t, 422, "key_reused")
		}
	}
	again()
	second.buy(one("b", "7", 1, "").under("k1")).is(t, 409, "sold_out")
	again()
	first.buy(one("a", "7", 1, "").under("k2")).is(t, 409, "sold_out")
	first.apply("flash", "starts_at: 2020-01-01T00:00:00Z\nends_at: 2020-01-02T00:00:00Z\nitems:\n"+oneUnit)
	for _, e := range []*edge{first, second} {
		eventually(t, "the edge knows that the sale has ended", func() bool { return e.itemState("flash", "7") == "ended" })
	}
	second.buy(one("c", "7", 1, "").under("k1")).is(t, 410, "ended")
	again()
	for range 20 - 8 { // the other eight have been before
		first.buy(one("a", "7", 1, "").under("k1")).replays(t, won)
	}
	first.buy(one("a", "7", 1, "").under("k1")).is(t, 429, "rate_limited")
	second.buy(one("a", "7", 1, "").under("k1")).replays(t, won)
	if s.orders() != 1 {
		t.Errorf("the shop got %d orders", s.orders())
	}
	first.expect("flash", 0, 0, 0, 1)
}

// Two clicks that reach two edges are one purchase, with a key and without.
func TestDoubleClickAtTwoEdges(t *testing.T) {
	t.Parallel()
	s := newSlowShop(t)
	first, second, _ := twoEdges(t, site{shop: serve(t, s), gate: retries})
	first.sell("flash", `  - {sku: "7", stock: 10}`)
	first.sell("other", `  - {sku: "8", stock: 10}`)
	for _, test := range []struct{ sale, sku, key string }{{"flash", "7", ""}, {"other", "8", "k1"}} {
		second.untilSelling(test.sale)
		click := one("a", test.sku, 1, "")
		if test.key != "" {
			click = click.under(test.key)
		}
		running := first.goBuy(click)
		await(t, "the shop has the order", s.working)
		for _, e := range []*edge{second, first} {
			r := e.buy(click)
			r.is(t, 409, "duplicate")
			if r.header.Get("Retry-After") == "" {
				t.Errorf("no Retry-After: %v", r)
			}
		}
		other := second.goBuy(one("a", test.sku, 1, "").under("another"))
		await(t, "the shop has the order of another key", s.working)
		s.answer <- 201
		s.answer <- 201
		won := await(t, "the first click", running)
		won.is(t, 201, "")
		await(t, "the order of another key", other).is(t, 201, "")
		if test.key != "" {
			second.buy(click).replays(t, won)
		}
		first.expect(test.sale, 8, 0, 0, 2)
	}
}

// A refused order frees key and ref: the same again is a new purchase, at any edge.
func TestRefusedOrderFreesItsKey(t *testing.T) {
	t.Parallel()
	status := http.StatusUnprocessableEntity
	s := &recorder{answer: func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(status) }}
	first, second, _ := twoEdges(t, site{shop: serve(t, s), gate: retries})
	first.sell("flash", oneUnit)
	second.untilSelling("flash")
	refused := first.buy(about("a", "SO-1").under("k1"))
	refused.is(t, 422, "")
	second.buy(one("a", "7", 1, "").under("k1")).is(t, 422, "") // other content: the key is free
	status = http.StatusCreated
	won := second.buy(about("a", "SO-1").under("k1"))
	won.is(t, 201, "")
	if won.reservation == refused.reservation {
		t.Error("a released reservation was sold")
	}
	first.buy(about("a", "SO-1").under("k1")).replays(t, won)
	first.expect("flash", 0, 0, 0, 1)
}

// An edge dies with an order at the shop: its key and its ref stay bound, until it is
// known what became of it.
func TestKilledEdgeKeepsItsKeys(t *testing.T) {
	t.Parallel()
	s := newSlowShop(t)
	first, second, _ := twoEdges(t, site{shop: serve(t, s), gate: retries + "\n" + soonOver})
	first.sell("flash", `  - {sku: "7", stock: 2}`)
	second.untilSelling("flash")
	done := first.goBuy(about("a", "SO-1").under("k1"))
	await(t, "the shop has the order", s.working)
	id := first.onlyHold("flash")
	first.kill()
	await(t, "the buyer hears nothing", done)
	second.untilState(id, "in_doubt")
	for _, o := range []order{about("a", "SO-1").under("k1"), about("a", "SO-1").under("k2"), about("a", "SO-1")} {
		r := second.buy(o)
		r.is(t, 409, "in_doubt")
		if !strings.Contains(r.body, id) || r.header.Get("Retry-After") == "" {
			t.Errorf("it names no reservation: %v", r)
		}
	}
	s.answer <- 201 // no edge reads it
	second.must("POST", "reservations/"+id+"/confirm", "", nil)
	r := second.buy(about("a", "SO-1").under("k1"))
	r.is(t, 409, "already_ordered")
	if !strings.Contains(r.body, id) {
		t.Errorf("it names no reservation: %v", r)
	}
	again := second.goBuy(about("a", "SO-1"))
	await(t, "the shop has the order again", s.working)
	s.answer <- 200
	if r := await(t, "the answer", again); r.status != 200 || r.reservation != id {
		t.Errorf("forwarded again: %v", r)
	}
	second.expect("flash", 1, 0, 0, 1)
}

// The shop that checks tokens answers the order that comes again like the first time.
func TestRefAtTwoEdges(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	first, second := newEdge(t, ""), newEdge(t, "")
	second.storage = first.storage
	s, addr := startShop(t, first)
	same := site{redis: redisAt(server.Addr()), shop: addr, gate: retries + " shared\nrepeats 6 1h"}
	first.start(same)
	second.start(same)
	first.sell("flash", `  - {sku: "7", stock: 10}`)
	second.untilSelling("flash")
	won := first.buy(about("a", "SO-1"))
	won.is(t, 201, "")
	for _, rule := range []string{"none", "none", "status=503", "500-after", "status=404", "drop-before"} {
		if err := s.SetMisbehaviour(rule); err != nil {
			t.Fatal(err)
		}
		r := second.buy(about("a", "SO-1"))
		if r.reservation != won.reservation || rule == "none" && (r.status != 200 || !strings.Contains(r.body, `"reservation":"`+won.reservation)) {
			t.Errorf("%s: %v", rule, r)
		}
		second.mustState(won.reservation, "confirmed", "status_201")
		second.expect("flash", 9, 0, 0, 1)
	}
	second.buy(about("b", "SO-1")).is(t, 409, "already_ordered")
	if err := s.SetMisbehaviour("none"); err != nil {
		t.Fatal(err)
	}
	audit(t, first, "flash", s, []result{won})
}

// Without Redis a key hears nothing wrong: 503 while it is away, and that the order
// was made when it is back, although its answer could not be kept.
func TestKeysWithoutRedis(t *testing.T) {
	t.Parallel()
	working, answer := make(chan string, 1), make(chan int)
	s := &recorder{answer: func(w http.ResponseWriter, r *http.Request) {
		working <- ""
		w.WriteHeader(<-answer)
	}}
	proxy := redistest.NewProxy(t, redistest.Start(t).Addr())
	e := startEdge(t, site{redis: redisAt(proxy.Addr()), shop: serve(t, s), gate: retries})
	e.sell("flash", oneUnit)
	done := e.goBuy(one("a", "7", 1, "").under("k1"))
	await(t, "the shop has the order", working)
	proxy.DropAll()
	answer <- 201
	won := await(t, "the buyer's answer", done)
	won.is(t, 201, "")
	e.buy(one("a", "7", 1, "").under("k1")).is(t, 503, "unavailable")
	proxy.Heal()
	eventually(t, "the edge hears redis again", func() bool { return e.buy(one("b", "7", 1, "")).reason == "sold_out" })
	e.untilState(won.reservation, "confirmed")
	r := e.buy(one("a", "7", 1, "").under("k1"))
	r.is(t, 409, "already_ordered")
	if !strings.Contains(r.body, won.reservation) {
		t.Errorf("it names no reservation: %v", r)
	}
}

// With outcome backend the shop's answer decides nothing. Its deadline gives the
// units back, with the key.
func TestBackendHoldExpires(t *testing.T) {
	t.Parallel()
	s := &recorder{answer: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/pay", http.StatusSeeOther) }}
	e := startEdge(t, site{shop: serve(t, s), gate: retries + "\noutcome backend\n" + soonOver})
	e.sell("flash", oneUnit)
	first := e.buy(one("a", "7", 1, "").under("k1"))
	first.is(t, 303, "")
	e.expect("flash", 0, 1, 0, 0)
	e.buy(one("b", "7", 1, "")).is(t, 409, "all_held")
	e.untilState(first.reservation, "expired")
	e.mustState(first.reservation, "expired", "deadline")
	second := e.buy(one("a", "7", 1, "").under("k1"))
	second.is(t, 303, "")
	if second.reservation == first.reservation || second.header.Get("Stockgate-Replayed") != "" {
		t.Errorf("an expired hold was given again: %v", second)
	}
	e.must("POST", "reservations/"+second.reservation+"/confirm", "", nil)
	e.expect("flash", 0, 0, 0, 1)
	e.buy(one("a", "7", 1, "").under("k1")).replays(t, second)
}

// A kept connection dies under an order without body: net/http sends it again by
// itself. The shop sees the same token twice, and no other surprise.
func TestOrderIsSentAgainByTheTransport(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, body, header string
		second             string // the shop's answer to the second try
		tries              int
		state, cause       string
	}{
		{"accepted", "", "Idempotency-Key", "201 Created", 2, "confirmed", "status_201"},
		{"accepted, by the other header", "", "X-Idempotency-Key", "201 Created", 2, "confirmed", "status_201"},
		{"refused as a double", "", "Idempotency-Key", "400 Bad Request", 2, "in_doubt", "several_answers"},
		{"no key", "", "", "201 Created", 1, "in_doubt", "connection_lost"},
		{"with a body", `{"note":"x"}`, "Idempotency-Key", "201 Created", 1, "in_doubt", "connection_lost"},
	}
	var mu sync.Mutex
	tokens, sites := make([][]string, len(tests)), make([]site, len(tests)) // the tokens that each shop has seen
	for i, test := range tests {
		addr := rawShop(t, func(_ int, _ net.Listener, conn net.Conn, in *bufio.Reader) {
			for {
				r, err := http.ReadRequest(in)
				if err != nil {
					return
				}
				io.Copy(io.Discard, r.Body)
				if r.Method == http.MethodGet {
					io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
					continue
				}
				mu.Lock()
				tokens[i] = append(tokens[i], r.Header.Get(token.Header))
				n := len(tokens[i])
				mu.Unlock()
				if n == 1 {
					return // the order is written, and the connection dies
				}
				io.WriteString(conn, "HTTP/1.1 "+test.second+"\r\nContent-Length: 0\r\n\r\n")
			}
		})
		sites[i] = site{shop: addr, source: inQuery, gate: "idempotency {header.Idempotency-Key}"}
	}
	counters := startCounters(t, sites)
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e := counters[i].of(t)
			e.sell(e.sale, oneUnit)
			if status, _, _ := e.get("/browse"); status != http.StatusOK { // from here on there is a kept connection
				t.Fatalf("browsing: %d", status)
			}
			o := order{buyer: "a", path: "/api/order?sku=7", body: test.body, header: http.Header{}}
			if test.header != "" {
				o.header.Set(test.header, "k1")
			}
			r := e.buy(o)
			mu.Lock()
			seen := slices.Clone(tokens[i])
			mu.Unlock()
			if len(seen) != test.tries || seen[0] == "" || seen[0] != seen[len(seen)-1] {
				t.Fatalf("the shop saw %d tries, it should see %d with one token; the buyer %v", len(seen), test.tries, r)
			}
			e.mustState(r.reservation, test.state, test.cause)
			want := map[string]counts{"confirmed": {0, 0, 0, 1}, "in_doubt": {0, 0, 1, 0}}[test.state]
			e.expect(e.sale, want[0], want[1], want[2], want[3])
			if test.header == "Idempotency-Key" && test.state == "confirmed" {
				e.buy(o).replays(t, r)
			}
		})
	}
}

// A buyer without an order is refused from the memory of the edge, whatever key they
// send: only keys that may be bound are looked up in Redis.
func TestKeysOfLosersCostNoCall(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.Start(t).Addr())
	e := startEdge(t, site{redis: redisAt(proxy.Addr()), shop: serve(t, new(recorder)), gate: retries})
	e.sell("flash", oneUnit)
	won := e.buy(one("a", "7", 1, "").under("k1"))
	won.is(t, 201, "")
	n := 0
	eventually(t, "a keyed attempt is refused while no script reaches redis", func() bool {
		proxy.HoldRequests("EVALSHA")
		defer proxy.ReleaseRequests()
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond) // the view is old by then
		defer cancel()
		n++
		return e.buyContext(ctx, about("b", fmt.Sprint("SO-", n)).under(fmt.Sprint("k", n))).reason == "sold_out"
	})
	e.buy(one("a", "7", 1, "").under("k1")).replays(t, won)
}

// Keys are per sale: the same key for an item of another sale is a purchase of its own.
func TestKeyBelongsToOneSale(t *testing.T) {
	t.Parallel()
	s := &recorder{answer: func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, r.Header.Get(token.Header))
	}}
	first, second, _ := twoEdges(t, site{shop: serve(t, s), gate: retries})
	first.sell("flash", oneUnit)
	first.sell("other", `  - {sku: "8", stock: 1}`)
	second.untilSelling("flash")
	second.untilSelling("other")
	flash, other := one("a", "7", 1, "").under("k1"), one("a", "8", 1, "").under("k1")
	one := first.buy(flash)
	one.is(t, 201, "")
	two := second.buy(other)
	two.is(t, 201, "")
	if one.reservation == two.reservation || two.header.Get("Stockgate-Replayed") != "" {
		t.Errorf("the same key for another sale: %v, the first was %v", two, one)
	}
	for _, e := range []*edge{first, second} {
		e.buy(flash).replays(t, one)
		e.buy(other).replays(t, two)
	}
	first.expect("flash", 0, 0, 0, 1)
	first.expect("other", 0, 0, 0, 1)
	if s.orders() != 2 {
		t.Errorf("the shop got %d orders", s.orders())
	}
}

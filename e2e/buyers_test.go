package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/test/redistest"
)

const buyerSources = `
		buyer    {header.X-User-Id}
		identity phone {json.phone}
		line     {json.sku} {json.quantity}`

// by is an order of one unit by a buyer with a phone, or without one.
func by(buyer, phone, sku string) order {
	body := fmt.Sprintf(`{"sku":%q,"phone":%q}`, sku, phone)
	if phone == "" {
		body = fmt.Sprintf(`{"sku":%q}`, sku)
	}
	return order{buyer: buyer, body: body, lines: []line{{sku, 1, ""}}}
}

// mustBuy fails unless an order ends like this; an order that the shop gets has no reason.
func (e *edge) mustBuy(o order, status int, reason string) result {
	e.t.Helper()
	r := e.buy(o)
	if r.err != nil || r.status != status || r.reason != reason {
		e.t.Errorf("%v, it should be %d %s", r, status, reason)
	}
	return r
}

// sellLimited is sell with limits, the lines of the file under `limits:`, and what follows them.
func (e *edge) sellLimited(id, items, limits string) {
	e.t.Helper()
	e.apply(id, window+"items:\n"+items+"\nlimits:\n"+limits)
	e.must("POST", "sales/"+id+"/open", "", nil)
	e.untilSelling(id)
}

// Buyers who share a phone share the count, however many accounts and edges there are:
// of many attempts at once exactly as many become orders as the limit allows.
func TestOnePhoneOverTwoEdges(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	first, second := newEdge(t, ""), newEdge(t, "")
	second.storage = first.storage
	s, addr := startShop(t, first)
	same := site{redis: redisAt(server.Addr()), shop: addr, source: buyerSources}
	first.start(same)
	second.start(same)
	first.sellLimited("flash", `  - {sku: "7", stock: 100}`, `  - {per: [buyer, phone], every: sale, max: 5, count: orders}`)
	second.untilSelling("flash")

	// an attempt waits for another one's hold: that may still be released
	waits := func(r result) bool { return r.reason == "pending" || r.reason == "duplicate" }
	spellings := []string{"+86 138-0013-8000", "+8613800138000"}
	var all []result
	run := func(what string, orders []order, sold int) {
		t.Helper()
		results := crowd(orders, waits, first, second)
		all = append(all, results...)
		if sum := tally(results); sum["201"] != sold || sum["limit_reached"] != len(orders)-sold {
			t.Errorf("%s: %v", what, sum)
		}
	}
	run("two accounts, one phone", buyers(30, func(i int) order {
		return by(fmt.Sprintf("account-%d", i/2%2), spellings[i/4%2], "7")
	}), 5)
	run("many accounts, the same phone", buyers(20, func(i int) order {
		return by(fmt.Sprintf("other-%d", i), spellings[i%2], "7")
	}), 0)
	run("many accounts, another phone", buyers(30, func(i int) order {
		return by(fmt.Sprintf("third-%d", i), "13900139000", "7")
	}), 5)
	run("one account, many phones", buyers(30, func(i int) order {
		return by("collector", fmt.Sprintf("1370000%04d", i), "7")
	}), 5)
	audit(t, first, "flash", s, all)
	second.expect("flash", 85, 0, 0, 15)
}

// An attempt that lacks an identity of a limit is refused, or counted by its other
// ones where the sale says so.
func TestMissingIdentity(t *testing.T) {
	t.Parallel()
	s := new(recorder)
	e := startEdge(t, site{shop: serve(t, s), source: buyerSources})
	const limits = `  - {per: [buyer, phone], every: sale, max: 1, count: orders}`
	e.sellLimited("strict", `  - {sku: "7", stock: 10}`, limits)
	e.sellLimited("lenient", `  - {sku: "8", stock: 10}`, limits+"\nmissing: skip")

	r := e.mustBuy(by("ann", "", "7"), 400, "malformed")
	if !strings.Contains(r.body, "identity phone is missing") {
		t.Errorf("what is missing is not named: %v", r)
	}
	e.mustBuy(by("ann", " - ", "7"), 400, "malformed") // no digit is left
	e.mustBuy(by("ann", "111", "7"), 201, "")          // nothing was charged
	e.mustBuy(by("ann", "222", "7"), 403, "limit_reached")

	e.mustBuy(by("ann", "", "8"), 201, "")
	e.mustBuy(by("ann", "", "8"), 403, "limit_reached")
	e.mustBuy(by("bob", "", "8"), 201, "") // a buyer without a phone shares no count
	e.mustBuy(by("ann", "111", "8"), 403, "limit_reached")
	e.mustBuy(by("cat", "111", "8"), 201, "")
	e.mustBuy(by("dan", "111", "8"), 403, "limit_reached")
	e.expect("strict", 9, 0, 0, 1)
	e.expect("lenient", 7, 0, 0, 3)
}

// A limit of a day says which it is and when it ends, by the calendar of the sale.
func TestLimitOfADay(t *testing.T) {
	t.Parallel()
	e := startEdge(t, site{shop: serve(t, new(recorder)), source: buyerSources})
	e.sellLimited("daily", `  - {sku: "7", stock: 100}`, "  - {per: phone, every: day, max: 1, count: orders}\ntimezone: Asia/Shanghai")
	shanghai := time.FixedZone("Asia/Shanghai", 8*60*60)
	untilMidnight := func() int {
		now := time.Now().In(shanghai)
		return int(time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, shanghai).Sub(now).Seconds())
	}
	for i := 0; ; i++ {
		before := untilMidnight()
		e.mustBuy(by("ann", fmt.Sprint(i), "7"), 201, "")
		r := e.buy(by("bob", fmt.Sprint(i), "7"))
		after := untilMidnight()
		if after > before {
			continue // that was midnight
		}
		var problem struct {
			Reason     string
			Limit      json.RawMessage
			RetryAfter int `json:"retry_after"`
		}
		if err := json.Unmarshal([]byte(r.body), &problem); err != nil {
			t.Fatalf("%v: %v", err, r)
		}
		if r.status != 403 || problem.Reason != "limit_reached" || string(problem.Limit) != `{"per":"phone","every":"day","max":1,"count":"orders"}` {
			t.Errorf("%v", r)
		}
		// rounded up, and spread over two seconds more
		if wait := problem.RetryAfter; wait < after || wait > before+4 || r.header.Get("Retry-After") != strconv.Itoa(wait) {
			t.Errorf("retry after %d, header %q; the day ends in %d to %d seconds", wait, r.header.Get("Retry-After"), after, before)
		}
		return
	}
}

// A shared rate is exact over all edges, and a refused attempt neither buys nor
// charges a limit.
func TestSharedRateOverTwoEdges(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	first, second := newEdge(t, ""), newEdge(t, "")
	second.storage = first.storage
	s, addr := startShop(t, first)
	same := site{redis: redisAt(server.Addr()), shop: addr, source: buyerSources, gate: "rate {json.phone} 20 24h shared"}
	first.start(same)
	second.start(same)
	first.sellLimited("flash", `  - {sku: "7", stock: 1000}`, `  - {per: phone, every: sale, max: 1000, count: orders}`)
	second.untilSelling("flash")
	results := crowd(buyers(160, func(i int) order {
		return by(fmt.Sprintf("buyer-%d", i), []string{"111", "222"}[i/2%2], "7")
	}), nil, first, second)
	passed := map[string]int{}
	for _, r := range results {
		switch {
		case r.status == http.StatusCreated:
			passed[r.order.body]++
		case r.reason != "rate_limited" || r.header.Get("Retry-After") == "" || r.header.Get("RateLimit") == "":
			t.Errorf("%v %v", r, r.header)
		}
	}
	if len(passed) != 2 || passed[by("", "111", "7").body] != 20 || passed[by("", "222", "7").body] != 20 {
		t.Errorf("passed: %v", passed)
	}
	audit(t, first, "flash", s, results)
	second.expect("flash", 960, 0, 0, 40)
}

// A gate that only checks, before the cart and the order route, and the gate of the
// order route behind it: each counts an attempt once.
func TestCheckBeforeTheGate(t *testing.T) {
	t.Parallel()
	s := new(recorder)
	e := startEdge(t, site{
		shop: serve(t, s),
		app:  listFile(t, "bad", "phone:666\n"),
		outer: `@early path /api/cart /api/order
	stockgate_check @early early {
		deny bad
		identity phone {json.phone}
		line {json.sku} {json.quantity}
		rate {json.phone} 4 24h
	}`,
		matcher: "path /api/order /api/order/", // one path would put this gate before the other one
		source:  buyerSources,
		gate:    "rate {json.phone} 2 24h",
	})
	e.sellLimited("flash", `  - {sku: "7", stock: 10}`, `  - {per: phone, every: sale, max: 3, count: orders}`)
	cart := func(o order) order {
		o.path = "/api/cart"
		return o
	}
	refusedBy := func(policy string, o order) {
		t.Helper()
		if r := e.mustBuy(o, 429, "rate_limited"); !strings.HasPrefix(r.header.Get("RateLimit-Policy"), policy) {
			t.Errorf("%q refused, it should be %s", r.header.Get("RateLimit-Policy"), policy)
		}
	}
	cartOf := cart(by("", "111", "7")) // filling a cart needs no buyer
	e.mustBuy(cartOf, 201, "")
	if n := s.orders(); n != 0 {
		t.Errorf("the cart has %d tokens", n)
	}
	e.mustBuy(by("ann", "111", "7"), 201, "")
	e.mustBuy(by("bob", "111", "7"), 201, "")
	refusedBy(`"rate-1";q=2;`, by("cat", "111", "7")) // the fourth of the first gate, the third of the second
	refusedBy(`"early-1";q=4;`, by("cat", "111", "7"))
	refusedBy(`"early-1";q=4;`, cartOf)
	e.mustBuy(cart(by("", "666", "7")), 403, "denied")
	e.mustBuy(by("eve", "666", "7"), 403, "denied")
	e.mustBuy(cart(by("", "222", "none")), 404, "unknown_item")
	if got := s.requests(); len(got) != 3 || s.orders() != 2 {
		t.Errorf("the shop got %+v", got)
	}
	e.expect("flash", 8, 0, 0, 2)

	e.must("POST", "sales/flash/pause", "", nil)
	eventually(t, "the sale is paused", func() bool { return e.itemState("flash", "7") == "paused" })
	e.mustBuy(cart(by("", "333", "7")), 409, "paused")
}

// An attempt that is refused before Redis, by Redis's silence or by the shop charges no limit.
func TestUnsoldChargesNothing(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := newSlowShop(t)
	e := startEdge(t, site{redis: redisIn(server.Addr(), "5s"), shop: serve(t, s), source: buyerSources, gate: "max_in_flight 1"})
	e.sellLimited("flash", `  - {sku: "7", stock: 10}`, `  - {per: [buyer, phone], every: sale, max: 1, count: orders}`)
	orders := func(o order, answer int) result {
		t.Helper()
		running := e.goBuy(o)
		await(t, "the shop has the order", s.working)
		s.answer <- answer
		return await(t, "the answer", running)
	}
	running := e.goBuy(by("ann", "111", "7"))
	await(t, "the shop has the order", s.working)
	e.mustBuy(by("ann", "111", "7"), 409, "duplicate")
	e.mustBuy(by("bob", "222", "7"), 503, "busy")
	s.answer <- 400
	if r := await(t, "the answer", running); r.status != 400 {
		t.Errorf("%v", r)
	}

	server.Pause()
	e.mustBuy(by("bob", "222", "7"), 503, "unavailable")
	e.mustBuy(by("cat", "333", "7"), 503, "unavailable")
	server.Resume()
	eventually(t, "the edge hears redis again", func() bool { return e.buy(by("probe", "0", "none")).reason == "unknown_item" })
	e.untilExpected("flash", 10, 0, 0, 0)

	for _, o := range []order{by("ann", "111", "7"), by("bob", "222", "7"), by("cat", "333", "7")} {
		if r := orders(o, 201); r.status != 201 || r.reason != "" {
			t.Errorf("%v", r)
		}
		e.mustBuy(o, 403, "limit_reached")
	}
	e.expect("flash", 7, 0, 0, 3)
}

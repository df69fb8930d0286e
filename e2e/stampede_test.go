package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"

	"github.com/stockgate/stockgate/internal/test/draw"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// eachRedis runs a test against redis-server and against the embedded server.
func eachRedis(t *testing.T, f func(t *testing.T, redis string)) {
	t.Run("redis-server", func(t *testing.T) { f(t, redisAt(redistest.Start(t).Addr())) })
	t.Run("embedded", func(t *testing.T) { f(t, "") })
}

// roomy is a gate that has room for all of a crowd.
const roomy = "max_in_flight 5000\n"

// noRoom: the edge had no room for an attempt, which says nothing about the stock.
func noRoom(r result) bool { return r.reason == "busy" || r.reason == "unavailable" }

// comesBack: it may be another answer the next time, because there was no room, all is
// held, or what the edge gave up for this buyer is still being released.
func comesBack(r result) bool {
	return noRoom(r) || r.reason == "all_held" || r.reason == "duplicate" || r.reason == "in_doubt"
}

// A thousand buyers at once, or two, for a hundred units: a hundred orders, and all other
// buyers are told that nothing is left.
func TestStampede(t *testing.T) {
	all := draw.Times(1000, 2000)
	eachRedis(t, func(t *testing.T, redis string) {
		e := newEdge(t, "")
		s, addr := startShop(t, e)
		e.start(site{redis: redis, shop: addr, gate: roomy})
		e.sell("double11", `  - {sku: "20002001", stock: 100, max: 1}`)

		results := crowd(buyers(all, func(i int) order { return one(fmt.Sprintf("buyer-%d", i), "20002001", 1, "") }), comesBack, e)

		audit(t, e, "double11", s, results)
		e.expect("double11", 0, 0, 0, 100)
		sum := tally(results)
		if sum["201"] != 100 || sum["sold_out"] != all-100 {
			t.Errorf("answers: %v", sum)
		}
		if r := e.buy(one("late", "20002001", 1, "")); r.status != http.StatusConflict || r.reason != "sold_out" {
			t.Errorf("after the sale: %v", r)
		}
	})
}

// With the default bounds of an edge buyers hear busy, come back, and in the end
// the same hundred units are sold.
func TestStampedeWithRoomForFew(t *testing.T) {
	t.Parallel()
	e := newEdge(t, "")
	s, addr := startShop(t, e)
	e.start(site{redis: redistest.Start(t).Addr(), shop: addr, gate: "max_in_flight 16"}) // 500ms of patience with redis
	e.sell("double11", `  - {sku: "20002001", stock: 100}`)

	results := crowd(buyers(400, func(i int) order { return one(fmt.Sprintf("buyer-%d", i), "20002001", 1, "") }), comesBack, e)

	audit(t, e, "double11", s, results)
	e.expect("double11", 0, 0, 0, 100)
	if sum := tally(results); sum["201"] != 100 || sum["sold_out"] != 300 {
		t.Errorf("answers: %v", sum)
	}
}

// Orders of several lines, of regions, of several units, in one crowd: all or
// nothing, and no buyer is refused who could have been served.
func TestStampedeOfMixedOrders(t *testing.T) {
	eachRedis(t, func(t *testing.T, redis string) {
		e := newEdge(t, "")
		s, addr := startShop(t, e)
		e.start(site{redis: redis, shop: addr, gate: roomy, source: `
			buyer  {header.X-User-Id}
			region {json.region}
			lines  {json.items} sku count`})
		e.sell("mixed", `  - {sku: "1001", stock: 150, max: 5}
  - {sku: "1002", regions: {beijing: 40, shanghai: 60}}
  - {sku: "1003", stock: 33, min: 1, max: 3}`)

		dice := rand.New(rand.NewPCG(1, 2))
		results := crowd(buyers(600, func(i int) order { return basket(t, fmt.Sprintf("buyer-%d", i), dice) }), comesBack, e)

		audit(t, e, "mixed", s, results)
		left := map[string]int64{}
		for _, c := range e.stock("mixed").Items {
			left[c.SKU+"@"+c.Region] = c.Available
			if c.Held != 0 || c.InDoubt != 0 {
				t.Errorf("holds are left: %+v", c)
			}
		}
		for _, r := range results {
			if r.status == http.StatusCreated {
				continue
			}
			short := false
			for _, l := range r.order.lines {
				short = short || left[l.SKU+"@"+l.Region] < l.Qty
			}
			if !short || r.reason != "sold_out" {
				t.Errorf("refused although everything is left: %v, left %v", r, left)
			}
		}
		if sum := tally(results); sum["201"] == 0 || sum["sold_out"] == 0 {
			t.Errorf("the crowd was no crowd: %v", sum)
		}
	})
}

// basket is an order of one to three items, equal ones among them.
func basket(t *testing.T, buyer string, dice *rand.Rand) order {
	region := []string{"beijing", "shanghai"}[dice.IntN(2)]
	type item struct {
		SKU   string `json:"sku"`
		Count int64  `json:"count"`
	}
	var items []item
	units := map[string]int64{}
	for range 1 + dice.IntN(3) {
		sku := []string{"1001", "1002", "1003"}[dice.IntN(3)]
		n := 1 + dice.Int64N(3)
		if units[sku]+n > 3 {
			continue
		}
		units[sku] += n
		items = append(items, item{sku, n})
	}
	o := order{buyer: buyer, body: asJSON(t, map[string]any{"items": items, "region": region})}
	for sku, n := range units {
		l := line{SKU: sku, Qty: n}
		if sku == "1002" {
			l.Region = region
		}
		o.lines = append(o.lines, l)
	}
	return o
}

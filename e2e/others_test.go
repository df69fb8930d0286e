package e2e_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stockgate/stockgate/internal/test/redistest"
)

// While Redis is away, goods that no sale lists still reach the shop, by the edge
// that was there and by one that starts without it, and what needs no Redis still
// protects them. What a sale lists does not sell, not even beside other goods.
func TestOtherItemsWithoutRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := new(recorder)
	e := newEdge(t, "")
	same := site{
		redis: redisAt(server.Addr()), shop: serve(t, s), app: listFile(t, "bad", "buyer:mallory\n"),
		source: "buyer {header.X-User-Id}\nlines {json.items} sku",
		gate:   "other_items pass\ndeny bad\nrate {header.X-Key} 1 24h",
	}
	e.start(same)
	e.sell("flash", `  - {sku: "7", stock: 10}`)
	n := 0
	expect := func(o order, status int, reason string) {
		t.Helper()
		n++
		if o.header == nil {
			o.header = http.Header{"X-Key": {fmt.Sprintf("key-%d", n)}}
		}
		e.mustBuy(o, status, reason)
	}
	items := func(skus ...string) order {
		var list []map[string]string
		for _, sku := range skus {
			list = append(list, map[string]string{"sku": sku})
		}
		return order{buyer: "ann", body: asJSON(t, map[string]any{"items": list})}
	}
	denied, hurried := items("tea"), items("tea")
	denied.buyer = "mallory"
	// how many of what follows reach the shop, and how many of them with a token
	reach := func(when string, requests, tokens int) {
		t.Helper()
		if got := s.requests(); len(got) != requests || s.orders() != tokens {
			t.Errorf("%s the shop got %d requests, %d with a token: %+v", when, len(got), s.orders(), got)
		}
		s.forget()
	}
	s.forget()
	expect(items("7"), 201, "")
	expect(items("tea", "milk"), 201, "")
	expect(items("tea", "7"), 404, "unknown_item")
	expect(items("7", "tea"), 404, "unknown_item")
	expect(denied, 403, "denied")
	reach("with redis", 2, 1)

	without := func(when string) {
		t.Helper()
		hurried.header = http.Header{"X-Key": {when}}
		expect(hurried, 201, "")
		expect(hurried, 429, "rate_limited")
		expect(items("tea", "milk"), 201, "")
		expect(items("7"), 503, "unavailable")
		expect(items("tea", "7"), 503, "unavailable")
		expect(items("7", "tea"), 503, "unavailable")
		expect(denied, 403, "denied")
		reach(when, 2, 0)
	}
	server.Stop()
	eventually(t, "the edge knows that redis is away", func() bool {
		n++
		o := items("7", "tea")
		o.header = http.Header{"X-Key": {fmt.Sprintf("key-%d", n)}}
		return e.buy(o).reason == "unavailable"
	})
	without("redis is away")
	e.stop()
	e.start(same)
	without("started without redis")
}

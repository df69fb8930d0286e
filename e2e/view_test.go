package e2e_test

import (
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/test/redistest"
)

// What an edge knows costs Redis nothing: attempts on a sale that has not started, is
// paused or over, on what is not on sale, and on what is sold out.
func TestRefusalsFromMemory(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	e := startEdge(t, site{redis: redisAt(server.Addr()), shop: serve(t, new(recorder)), source: sources + "\nsale {query.sale}"})
	e.sell("open", `  - {sku: "1", stock: 1}`)
	later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	e.apply("soon", "starts_at: "+later+"\nends_at: 2090-01-01T00:00:00Z\nitems:\n  - {sku: \"10\", stock: 1}")
	e.apply("over", "starts_at: 2020-01-01T00:00:00Z\nends_at: 2020-01-02T00:00:00Z\nitems:\n  - {sku: \"11\", stock: 1}")
	e.apply("paused", window+"items:\n  - {sku: \"12\", stock: 1}")
	for _, change := range []string{"soon/open", "over/open", "paused/open", "paused/pause"} {
		e.must("POST", "sales/"+change, "", nil)
	}
	e.mustBuy(one("first", "1", 1, ""), 201, "")
	eventually(t, "the edge has heard of all", func() bool {
		return e.itemState("soon", "10") == "not_started" && e.itemState("over", "11") == "ended" &&
			e.itemState("paused", "12") == "paused" && e.buy(one("second", "1", 1, "")).reason == "sold_out" &&
			e.metric(`stockgate_nothing_left_total{by="memory"}`) > 0
	})
	// Each look at the stock is one reserve. Those of an item that is sold out are refused from
	// memory, but when the edge has not heard of Redis for a second, and now and then.
	asked := func() float64 { return e.metric("stockgate_reserve_seconds_count") }
	remembered := func() float64 { return e.metric(`stockgate_nothing_left_total{by="memory"}`) }
	reserves, known, soldOut := asked(), remembered(), 0.0
	eventually(t, "many are refused from memory", func() bool {
		for _, c := range []struct {
			sku, query, reason string
			status             int
		}{
			{"10", "", "not_started", 409}, {"11", "", "ended", 410}, {"12", "", "paused", 409}, {"99", "", "unknown_item", 404},
			{"1", "?sale=none", "unknown_sale", 404}, {"1", "", "sold_out", 409},
		} {
			o := one("buyer", c.sku, 1, "")
			o.path = "/api/order" + c.query
			e.mustBuy(o, c.status, c.reason)
		}
		soldOut++
		return remembered()-known >= 80
	})
	// an attempt that enters while the edge has not heard of Redis, and is refused from memory then,
	// counts as both
	if got, want := asked()-reserves, soldOut-(remembered()-known); got < want || got > want+5 {
		t.Errorf("redis was asked %v times, %v of %v were not refused from memory", got, want, soldOut)
	}
	e.must("POST", "sales/paused/open", "", nil)
	eventually(t, "the paused sale sells", func() bool { return e.buy(one("third", "12", 1, "")).status == 201 })
	e.must("POST", "sales/open/items/1/stock", `{"id":"more","delta":1}`, nil)
	eventually(t, "the added unit is sold", func() bool { return e.buy(one("fourth", "1", 1, "")).status == 201 })
}

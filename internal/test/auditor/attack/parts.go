package main

import (
	"fmt"
	"strings"

	"github.com/stockgate/stockgate/internal/test/auditor"
	"github.com/stockgate/stockgate/internal/test/auditor/crowd"
	"github.com/stockgate/stockgate/internal/test/auditor/rig"
)

var partsOfOrders = scenario{
	name: "parts-of-orders", short: true,
	about: "Orders with lines of 0 or of an empty quantity, at a gate that reads all lines and at one that reads the first or second: what reaches the shop is what the token says, and an order of nothing does not reach it",
	run: func(a *attack) {
		a.startShop()
		port, err := rig.FreePort()
		a.must(err)
		a.stage(1, rig.Site{Others: fmt.Sprintf(`http://:%d {
	bind 127.0.0.1
	@order {
		method POST
		path /api/order
	}
	stockgate_guard
	stockgate @order parts {
		buyer {header.X-User-Id}
		line  {json.items.0.sku} {json.items.0.quantity}
		line  {json.items.1.sku} {json.items.1.quantity}
	}
	reverse_proxy %s
}`, port, a.shop.Addr())})
		parts := &crowd.Door{Name: a.edges[0].Name, Addr: fmt.Sprintf("127.0.0.1:%d", port)}
		a.sell("parts", stock{{Cell: "7", Qty: 1000}, {Cell: "8", Qty: 1000}, {Cell: "9", Qty: 1000}}, "")
		quantities := []string{"0", `"0"`, `""`, "1", "2", "null", "00", "-0", "0.0", " 0"}
		lines := func(of ...string) string {
			var items []string
			for i, quantity := range of {
				items = append(items, fmt.Sprintf(`{"sku":"%d","quantity":%s}`, 7+i, quantity))
			}
			return `{"items":[` + strings.Join(items, ",") + `]}`
		}
		n := 0
		buy := func(d *crowd.Door, body string) *auditor.Attempt {
			n++
			return a.crowd.Buy(d, crowd.Wish{Buyer: fmt.Sprintf("p%d", n), Raw: body})
		}
		for _, first := range quantities {
			for _, second := range quantities {
				for _, d := range []*crowd.Door{a.doors[0], parts} {
					buy(d, lines(first, second))
					buy(d, lines(first, second, "1"))
				}
			}
		}
		for body, want := range map[string]int{lines("2", "0"): 201, lines(`""`, "0", "1"): 201, lines("0", `""`): 400} {
			if heard := buy(a.doors[0], body); heard.Status != want {
				a.violated(auditor.FromTheShop, "an order of %s was answered %d, and not %d", body, heard.Status, want)
			}
		}
		a.settle()
	},
}

package main

import (
	"fmt"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
	"github.com/stockgate/stockgate/internal/test/auditor/crowd"
	"github.com/stockgate/stockgate/internal/test/auditor/rig"
	"github.com/stockgate/stockgate/internal/test/auditor/shop"
)

// perBuyer is a limit that every buyer can reach.
const perBuyer = "limits:\n  - {per: buyer, every: sale, max: 2, count: units}\n"

var oddShops = scenario{
	name: "odd-shops", short: true,
	about: "The shop answers garbage, 1xx, 101, half an answer, broken chunks, a header of 2 MB, drop by drop, odd statuses, or resets: each order is backed, each success is the shop's",
	run: func(a *attack) {
		a.stage(1, rig.Site{Outcome: "hold_for 3s\n\t\tforward_timeout 1s"})
		odd := append(shop.Odd(), shop.Sells, shop.Refuses)
		a.count("kinds of shops", len(odd))
		a.shop.Conduct = func(o *auditor.Order) shop.Conduct { return odd[a.chance(len(odd), o.Buyer, o.Attempt)] }
		a.h.ShopFails, a.h.Max = true, 2
		n := a.size(300, 6000)
		a.sell("odd", one(int64(n)/2), perBuyer)
		crowd.Rush(n, 8, nil, func(i int) {
			w := crowd.Wish{Buyer: fmt.Sprintf("b%d", i%(n/2)), Lines: crowd.Units("7", int64(1+i%2))}
			if i%3 == 0 {
				w.Key = fmt.Sprintf("k%d", i)
			}
			a.crowd.Buy(a.doors[0], w)
			if w.Key != "" {
				a.crowd.Buy(a.doors[0], w)
			}
			if i%20 == 0 {
				a.crowd.Browse(a.doors[0])
			}
		})
		a.settle()
	},
}

var buyersLeave = scenario{
	name: "buyers-leave", short: true,
	about: "Buyers leave in the middle of the request, after it, after half a close, in the middle of the answer, or send in drops: what the shop took is backed, everything else is on sale again",
	run: func(a *attack) {
		a.stage(1, rig.Site{})
		a.shop.Conduct = func(o *auditor.Order) shop.Conduct {
			c := shop.Sells
			if a.chance(4, "refuses", o.Buyer) == 0 {
				c = shop.Refuses
			}
			return shop.Slow(time.Duration(a.chance(30, o.Buyer))*time.Millisecond, c)
		}
		n := a.size(300, 6000)
		a.sell("leave", one(int64(n)/2), "")
		crowd.Rush(n, 12, nil, func(i int) {
			a.crowd.Buy(a.doors[0], crowd.Wish{Buyer: fmt.Sprintf("b%d", i), Key: fmt.Sprintf("k%d", i), Lines: crowd.Units("7", 1),
				Leave: crowd.Leave(a.chance(int(crowd.Leaves), "leave", i))})
		})
		a.settle()
	},
}

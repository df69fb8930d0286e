package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
	"github.com/stockgate/stockgate/internal/test/auditor/crowd"
	"github.com/stockgate/stockgate/internal/test/auditor/rig"
	"github.com/stockgate/stockgate/internal/test/auditor/shop"
)

var readersOfNothing = scenario{
	name: "readers-of-nothing", short: true,
	about: "HTTP/2 clients with a window of 0 fill max_in_flight with orders that are answered 6 KB and never read: once their outcomes are in Redis, other buyers do not hear busy",
	run: func(a *attack) {
		const flights = 60
		a.stage(1, rig.Site{Flights: flights})
		a.shop.Conduct = func(o *auditor.Order) shop.Conduct {
			if o.Buyer[0] == 'h' {
				return shop.Large(6 << 10)
			}
			return shop.Sells
		}
		a.sell("readers", one(flights+200), "")
		var heard atomic.Int64
		for c := range 2 {
			reader, err := crowd.DialClosed(a.edges[0].Addr(), func() { heard.Add(1) })
			a.must(err)
			defer reader.Close()
			for i := range flights / 2 {
				a.must(reader.Ask(a.h, crowd.Wish{Buyer: fmt.Sprintf("h%d-%d", c, i), Lines: crowd.Units("7", 1)}, fmt.Sprintf("h2-%d-%d", c, i)))
			}
		}
		a.until("every reader has an answer, and the shop's orders are confirmed", func() bool {
			n, err := a.redis.Do("ZCARD", rig.Key("readers", "deadlines"))
			return heard.Load() == flights && err == nil && n == int64(0)
		})
		busy := 0
		const tries = 100
		for i := range tries {
			r := a.crowd.Buy(a.doors[0], crowd.Wish{Buyer: fmt.Sprintf("b%d", i), Lines: crowd.Units("7", 1)})
			if r.Reason != "busy" {
				break
			}
			busy++
			time.Sleep(50 * time.Millisecond)
		}
		a.count("orders that are not read", a.shop.Orders())
		if busy == tries {
			a.violated(auditor.FailClosed, "all outcomes are known, and %d attempts one after the other heard busy because %d answers are not read", busy, flights)
		}
		a.settle()
	},
}

var halfClose = scenario{
	name: "half-close", short: true,
	about: "Clients close their sending side after the request, half of them when the shop has the order, and a shop answers 101: a success is the shop's, or the connection closes; some succeed",
	run: func(a *attack) {
		a.stage(1, rig.Site{Outcome: "hold_for 3s\n\t\tforward_timeout 1s"})
		odd := shop.Odd()
		var waiting sync.Map // buyer → *lateClose
		a.shop.Conduct = func(o *auditor.Order) shop.Conduct {
			if o.Buyer[0] == 'u' { // one of the three that answer 101
				return odd[10+a.chance(3, o.Buyer)]
			}
			slow := shop.Slow(time.Duration(a.chance(20, o.Buyer))*time.Millisecond, shop.Sells)
			if c, ok := waiting.LoadAndDelete(o.Buyer); ok {
				c.(*lateClose).there.Open()
				return shop.Waits(c.(*lateClose).closed.C, slow)
			}
			return slow
		}
		a.h.ShopFails = true
		n := a.size(100, 2000)
		a.sell("half", one(int64(2*n)), "")
		var won atomic.Int64
		crowd.Rush(n, 8, nil, func(i int) {
			wish := crowd.Wish{Buyer: fmt.Sprintf("c%d", i), Lines: crowd.Units("7", 1), Leave: crowd.HalfClose}
			if i%2 == 0 {
				late := &lateClose{shop.NewGate(), shop.NewGate()}
				defer late.closed.Open()
				waiting.Store(wish.Buyer, late)
				wish.Until, wish.Left = late.there.C, late.closed.Open
			}
			if a.crowd.Buy(a.doors[0], wish).Won() {
				won.Add(1)
			}
		})
		a.count("successes after a half-close", int(won.Load()))
		if won.Load() == 0 {
			a.violated(auditor.Control, "no client that closed its side of the connection has heard of a success")
		}
		crowd.Rush(n/5, 8, nil, func(i int) {
			a.crowd.Buy(a.doors[0], crowd.Wish{Buyer: fmt.Sprintf("u%d", i), Lines: crowd.Units("7", 1)})
		})
		a.settle()
	},
}

// lateClose is an order whose client closes its side of the connection when it is there: the shop
// answers when that has closed.
type lateClose struct{ there, closed *shop.Gate }

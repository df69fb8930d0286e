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

var winnerAtSecondEdge = scenario{
	name: "winner-at-second-edge", short: true,
	about: "A unit comes back and is sold at one edge; the same key asks at another edge that still remembers that nothing is left, at once, 5 and 20 ms later, over a slow and over a stalled link: it hears of the order",
	run: func(a *attack) {
		link := a.linkedEdge()
		rounds := a.size(90, 3000)
		var all stock
		for i := range rounds {
			all = append(all, auditor.Units{Cell: fmt.Sprintf("r%d", i), Qty: 1})
		}
		var waiting sync.Map // sku → *firstHold
		a.shop.Conduct = func(o *auditor.Order) shop.Conduct {
			if f, ok := waiting.LoadAndDelete(o.Lines[0].SKU); ok {
				f.(*firstHold).there.Open()
				return shop.Waits(f.(*firstHold).refuse.C, shop.Refuses)
			}
			return shop.Sells
		}
		a.sell("winner", all, "")
		turn := func(i int, link *rig.Proxy) { a.comesBack(i, &waiting, link) }
		// on the link as it is, then a slow one, some at a time; then one by one while it stands still
		for _, part := range []struct {
			upTo  int
			delay time.Duration
		}{{rounds / 3, 0}, {rounds * 2 / 3, 5 * time.Millisecond}, {rounds * 9 / 10, 20 * time.Millisecond}} {
			link.Delay(part.delay)
			from := a.counts["rounds"]
			crowd.Rush(part.upTo-from, 4, nil, func(i int) { turn(from+i, nil) })
			a.count("rounds", part.upTo-from)
		}
		link.Delay(0)
		for i := a.counts["rounds"]; i < rounds; i++ {
			turn(i, link)
		}
		a.settle()
	},
}

// linkedEdge starts a shop, a Redis and two edges. The second edge reaches Redis over the link.
func (a *attack) linkedEdge() (link *rig.Proxy) {
	a.startShop()
	a.startRedis(false, rig.Durable...)
	link, err := rig.NewProxy(a.redis.Addr())
	a.must(err)
	a.cleanup = append(a.cleanup, link.Close)
	a.stage(1, rig.Site{})
	a.startEdge(rig.Site{Redis: rig.RedisAt(link.Addr(), "5s")})
	return link
}

// firstHold is the order that holds a unit first: it is there when the shop has it, and
// refused when the scenario says so.
type firstHold struct{ there, refuse *shop.Gate }

// comesBack: the unit of an item is held, refused at the second edge, released, sold at the
// first edge, and then its buyer asks again at the second.
func (a *attack) comesBack(i int, waiting *sync.Map, stalled *rig.Proxy) {
	first, second := a.doors[0], a.doors[1]
	lines := crowd.Units(fmt.Sprintf("r%d", i), 1)
	hold := &firstHold{shop.NewGate(), shop.NewGate()}
	waiting.Store(lines[0].SKU, hold)
	held := make(chan struct{})
	go func() {
		defer close(held)
		a.crowd.Buy(first, crowd.Wish{Buyer: fmt.Sprintf("held%d", i), Lines: lines})
	}()
	select {
	case <-hold.there.C:
	case <-held: // it was refused, say because Redis was slow
	}
	for range 1000 { // until the second edge has heard from Redis that nothing is there
		if r := a.crowd.Buy(second, crowd.Wish{Buyer: fmt.Sprintf("late%d", i), Lines: lines}); r.Reason == "all_held" || r.Heard == 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if stalled != nil {
		stalled.Stall()
	}
	hold.refuse.Open()
	<-held
	wish := crowd.Wish{Buyer: fmt.Sprintf("winner%d", i), Key: fmt.Sprintf("key%d", i), Lines: lines}
	won := a.crowd.Buy(first, wish)
	if stalled != nil {
		time.AfterFunc(time.Duration(300+100*a.chance(5, "stall", i))*time.Millisecond, stalled.Resume)
	} else {
		time.Sleep([]time.Duration{0, 5 * time.Millisecond, 20 * time.Millisecond}[i%3])
	}
	if won.Won() {
		a.crowd.Buy(second, wish)
		a.crowd.Buy(second, wish)
	}
}

var winnerWhileApplied = scenario{
	name: "winner-while-applied", short: true,
	about: "Operators apply, pause and open a sale all the time; a buyer who buys meanwhile repeats the key at the same edge at once, and much later: each time it hears of the order",
	run: func(a *attack) {
		a.stage(1, rig.Site{})
		n := a.size(3000, 50_000)
		a.sell("apply", one(int64(n)), "")
		wish := func(i int) crowd.Wish {
			return crowd.Wish{Buyer: fmt.Sprintf("w%d", i), Key: fmt.Sprintf("k%d", i), Lines: crowd.Units("7", 1)}
		}
		var changes atomic.Int64
		rig.During(func(stop <-chan struct{}) {
			for i := 0; pause(time.Millisecond, stop); i++ {
				e := a.edges[0]
				e.Admin("PUT", "sales/apply", file("apply", one(int64(n)), fmt.Sprintf("max_hold: %dm", 10+i%50)))
				if i%3 == 0 {
					e.Admin("POST", "sales/apply/pause", "")
					e.Admin("POST", "sales/apply/open", "")
				}
				changes.Add(1)
			}
		}, func() {
			crowd.Rush(n, 8, nil, func(i int) {
				if !a.crowd.Buy(a.doors[0], wish(i)).Won() {
					time.Sleep(5 * time.Millisecond) // the sale is paused for a moment
					return
				}
				a.crowd.Buy(a.doors[0], wish(i))
				a.crowd.Buy(a.doors[0], wish(a.chance(i+1, "earlier", i)))
			})
		})
		a.count("changes of the sale", int(changes.Load()))
		a.settle()
	},
}

var winnerWithTwoKeys = scenario{
	name: "winner-with-two-keys", short: true,
	about: "A buyer's second purchase is on its way to Redis over a slow link of the second edge while the first one is sold at the first edge and its key is repeated at the second: it hears of the order",
	run: func(a *attack) {
		link := a.linkedEdge()
		rounds := a.size(30, 1000)
		a.sell("two", one(int64(2*rounds)), "")
		link.Delay(20 * time.Millisecond)
		crowd.Rush(rounds, 3, nil, func(i int) {
			wish := func(key string) crowd.Wish {
				return crowd.Wish{Buyer: fmt.Sprintf("b%d", i), Key: key, Lines: crowd.Units("7", 1)}
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				a.crowd.Buy(a.doors[1], wish("second"))
			}()
			if a.crowd.Buy(a.doors[0], wish("first")).Won() {
				a.crowd.Buy(a.doors[1], wish("first"))
			}
			<-done
		})
		link.Delay(0)
		a.settle()
	},
}

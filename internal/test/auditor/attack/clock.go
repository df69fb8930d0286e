package main

import (
	"fmt"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
	"github.com/stockgate/stockgate/internal/test/auditor/crowd"
	"github.com/stockgate/stockgate/internal/test/auditor/rig"
)

// ends is how often a deadline is asked for before it counts as never: a hold lasts 3 s.
const ends = 60 * time.Second

var stepOfClock = scenario{
	name: "step-of-redis-clock", short: true,
	about: "Redis's clock is two hours ahead for a moment, and is put right: holds of 3 s still expire, a sale that ends in an hour is not over, no token outlives its hold, no unit is sold twice",
	run: func(a *attack) {
		a.startRedis(true, rig.Durable...)
		a.stage(1, a.backend("3s"))
		a.shop.Later = true
		a.h.ByOperators = true
		soon := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
		a.sellFile("hour", one(30), window("hour", one(30), "2020-01-01T00:00:00Z", soon, ""))
		a.sell("ever", stock{{Cell: "8", Qty: 30}}, "")
		buy := func(name string, n int) {
			crowd.Rush(n, 4, nil, func(i int) {
				for _, sku := range []string{"7", "8"} {
					a.crowd.Buy(a.doors[0], crowd.Wish{Buyer: fmt.Sprintf("%s%d", name, i), Lines: crowd.Units(sku, 1)})
				}
			})
		}
		buy("before", 5)
		a.must(a.redis.Shift(2 * time.Hour))
		buy("ahead", 20)
		time.Sleep(2500 * time.Millisecond)
		a.must(a.redis.Shift(0))
		heard := a.crowd.Buy(a.doors[0], crowd.Wish{Buyer: "back", Lines: crowd.Units("7", 1)})
		for end := time.Now().Add(ends); heard.Reason != "" && heard.Reason != "all_held" && time.Now().Before(end); {
			time.Sleep(100 * time.Millisecond)
			heard = a.crowd.Buy(a.doors[0], crowd.Wish{Buyer: "back", Lines: crowd.Units("7", 1)})
		}
		if heard.Reason != "" {
			a.violated(auditor.FailClosed, "Redis's clock is right again for %v, the sale has stock and ends in an hour, and a buyer hears %s", ends, heard.Reason)
		}
		buy("after", 3)
		for _, sale := range []string{"hour", "ever"} {
			a.untilExpired(sale)
			a.outlived(sale)
		}
	},
}

// untilExpired waits until no hold is left.
func (a *attack) untilExpired(sale string) {
	left := any(nil)
	for end := time.Now().Add(ends); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if left, _ = a.redis.Do("ZCARD", rig.Key(sale, "deadlines")); left == int64(0) {
			return
		}
	}
	a.violated(auditor.OneState, "%v holds of 3 s in sale %s have not ended within %v", left, sale, ends)
}

// outlived looks for tokens that are valid now by plain time while their hold has expired.
func (a *attack) outlived(sale string) {
	s, err := rig.Collect(a.redis.Addr(), sale)
	a.must(err)
	now := time.Now().Unix()
	replayed, _ := auditor.Replay(sale, s.Movements)
	n := 0
	for _, o := range a.h.Orders {
		if o.Sale == sale && replayed.States[o.JTI] == "expired" && o.Expires > now+1 {
			n++
			if n == 1 {
				a.violated(auditor.ValidToken, "the hold of %s has expired, and its token is valid for %d s more", o, o.Expires-now)
			}
		}
	}
	a.count("tokens that outlive their hold", n)
}

var clockJumps = scenario{
	name: "redis-clock-jumps", short: true,
	about: "Redis's clock jumps by up to 5 s, forward and back, several times a second under buyers: no unit is sold twice, no order comes with an expired token",
	run: func(a *attack) {
		a.startRedis(true, rig.Durable...)
		a.stage(2, rig.Site{Outcome: "hold_for 30s\n\t\tforward_timeout 5s"})
		a.h.Max = 2
		a.sell("jumps", one(int64(a.size(200, 2000))), perBuyer)
		a.crowdWhile("jumps", 10, func() {
			for range a.size(15, 200) {
				time.Sleep(200 * time.Millisecond)
				a.must(a.redis.Shift(time.Duration(a.dice.IntN(10_000)-5000) * time.Millisecond))
			}
			a.must(a.redis.Shift(0))
		})
		a.settle()
	},
}

package main

import (
	"path/filepath"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
	"github.com/stockgate/stockgate/internal/test/auditor/rig"
	"github.com/stockgate/stockgate/internal/test/auditor/shop"
)

var storeKilled = scenario{
	name: "store-killed", short: true,
	about: "Caddy with a store, its redis-server, or both are killed with -9 at random moments under buyers, and started again: every order that a buyer heard of is in the books, and nothing is sold twice",
	run: func(a *attack) {
		dir := filepath.Join(a.dir, "stock")
		a.redis = rig.Store(dir)
		a.stage(1, rig.Site{Store: dir + " {\n\t\ttimeout 5s\n\t}", Outcome: "hold_for 4s\n\t\tforward_timeout 2s"})
		a.h.EdgesDie, a.h.Max = true, 2
		a.shop.Conduct = func(o *auditor.Order) shop.Conduct {
			return shop.Slow(time.Duration(a.chance(40, o.Attempt))*time.Millisecond, shop.Sells)
		}
		a.sell("store", one(int64(a.size(300, 5000))), perBuyer)
		a.crowdWhile("store", a.size(12, 64), func() {
			for range a.size(10, 300) {
				pause(time.Duration(100+a.dice.IntN(400))*time.Millisecond, nil)
				a.killStore(a.dice.IntN(4))
			}
		})
		a.settle()
		a.sellsAgain("7")
		a.settle()
	},
}

// killStore kills the server of the store, Caddy, or both in either order.
func (a *attack) killStore(which int) {
	e := a.edges[0]
	switch which {
	case 0:
		a.redis.KillStore()
		a.count("servers killed", 1)
		return // Caddy starts it again
	case 1:
		e.Kill()
		a.count("edges killed", 1)
	case 2:
		a.redis.KillStore()
		e.Kill()
		a.count("both killed", 1)
	case 3:
		e.Kill()
		a.redis.KillStore()
		a.count("both killed", 1)
	}
	a.must(e.Run(a.site))
}

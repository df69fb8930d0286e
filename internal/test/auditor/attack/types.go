package main

import (
	"fmt"

	"github.com/stockgate/stockgate/internal/test/auditor"
	"github.com/stockgate/stockgate/internal/test/auditor/crowd"
	"github.com/stockgate/stockgate/internal/test/auditor/rig"
	"github.com/stockgate/stockgate/internal/test/auditor/shop"
)

// parts are the names of a sale's keys.
var parts = []string{"meta", "cells", "limits", "records", "deadlines", "in_doubt", "unbacked", "tombstones", "adjustments", "journal", "bindings", "returns", "unpaid"}

const (
	spoil  = `if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('RENAME', KEYS[1], KEYS[2]) end redis.call('SET', KEYS[1], 'x') return 1`
	mended = `redis.call('DEL', KEYS[1]) if redis.call('EXISTS', KEYS[2]) == 1 then redis.call('RENAME', KEYS[2], KEYS[1]) end return 1`
)

var wrongTypes = scenario{
	name: "wrong-types", short: true,
	about: "Each key of a sale has the wrong type for a while, under reserves, confirms, releases and returns: what fails leaves nothing behind, and when the key is right again all goes on",
	run: func(a *attack) {
		a.stage(1, rig.Site{Outcome: "hold_for 10s\n\t\tforward_timeout 5s"})
		a.sell("types", one(1000), perBuyer)
		buyers := 0
		for range a.size(1, 5) {
			for _, part := range parts {
				key, aside := rig.Key("types", part), rig.Key("types", part+":spoilt")
				wait := shop.NewGate()
				a.shop.Conduct = func(o *auditor.Order) shop.Conduct {
					switch {
					case o.Buyer[0] != 'w':
						return shop.Sells
					case len(o.Buyer)%2 == 0:
						return shop.Waits(wait.C, shop.Refuses)
					}
					return shop.Waits(wait.C, shop.Sells)
				}
				rig.During(func(<-chan struct{}) {
					crowd.Rush(6, 6, nil, func(i int) {
						a.crowd.Buy(a.doors[0], crowd.Wish{Buyer: fmt.Sprintf("w%s%d%.*s", part, buyers, i, "xxxxxx"), Lines: crowd.Units("7", 1)})
					})
				}, func() {
					a.until("the shop has the orders that wait", func() bool { return a.held("types") >= 6 })
					_, err := a.redis.Do("EVAL", spoil, "2", key, aside)
					a.must(err)
					wait.Open()
					crowd.Rush(12, 4, nil, func(i int) {
						a.crowd.Buy(a.doors[0], crowd.Wish{Buyer: fmt.Sprintf("b%d-%d", buyers, i), Key: fmt.Sprintf("k%d", i%2), Lines: crowd.Units("7", 1)})
					})
					_, err = a.redis.Do("EVAL", mended, "2", key, aside)
					a.must(err)
					buyers++
				})
			}
		}
		a.settle()
		a.sellsAgain("7")
		a.settle()
	},
}

// held is how many holds a sale has now; -1: Redis does not say.
func (a *attack) held(sale string) int64 {
	n, err := a.home(sale).Do("ZCARD", rig.Key(sale, "deadlines"))
	if i, ok := n.(int64); ok && err == nil {
		return i
	}
	return -1
}

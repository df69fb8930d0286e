package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor/crowd"
	"github.com/stockgate/stockgate/internal/test/auditor/rig"
)

const (
	// hoarded are the units of each sale, for which hoarders and honest buyers compete.
	hoarded, hoarders, honestBuyers = 20, 10, 40
	hoardedFor                      = 4 * time.Second
)

var hoarding = scenario{
	name: "hoarding", short: true,
	about: "Ten buyers ask without a pause, hold whatever they get and never pay, at two sales of 20 units with holds of 4 s; forty honest buyers ask every two seconds, and pay: they get at least half of the sale that says nothing of unpaid holds. Of the other one, with unpaid: off, they must get less, or the attack is none",
	run: func(a *attack) {
		a.stage(1, a.backend(hoardedFor.String()))
		a.shop.Later = true
		a.h.Hoarding.Fakes = map[string]bool{}
		for i := range hoarders {
			a.h.Hoarding.Fakes[fake(i)] = true
		}
		// a busy machine weakens the attack: until it works, each hoarder asks twice as much
		for round, end := 0, time.Now().Add(rig.Patience); a.hoarded(round) && time.Now().Before(end); {
			round++
		}
	},
}

// hoarded attacks two sales of their own, each hoarder on 2^round connections. It reports whether the
// attack was too weak: honest buyers have half of the sale that has no bound.
func (a *attack) hoarded(round int) (weak bool) {
	bounded, unbounded := fmt.Sprint("bounded", round), fmt.Sprint("unbounded", round)
	skus := []string{fmt.Sprint("7-", round), fmt.Sprint("8-", round)}
	a.sell(bounded, stock{{Cell: skus[0], Qty: hoarded}}, "")
	a.sell(unbounded, stock{{Cell: skus[1], Qty: hoarded}}, "unpaid: off")
	a.h.Hoarding.Sales, a.h.Hoarding.Controls = append(a.h.Hoarding.Sales, bounded), []string{unbounded}
	rig.During(func(stop <-chan struct{}) { a.hoard(skus, 1<<round, stop) }, func() {
		a.until("hoarders hold all units of the control", func() bool { return a.edges[0].ItemState(unbounded, skus[1]) == "all_held" })
		rig.During(func(stop <-chan struct{}) { a.honest(skus, stop) }, func() { time.Sleep(time.Duration(a.size(4, 8)) * hoardedFor) })
	})
	a.settle()
	bought, stock := a.h.BoughtHonestly(unbounded)
	return 2*bought >= stock
}

func fake(i int) string { return fmt.Sprintf("fake%d", i) }

// hoard lets each hoarder ask at both sales, on so many connections, until it is stopped.
func (a *attack) hoard(skus []string, connections int, stop <-chan struct{}) {
	var all sync.WaitGroup
	defer all.Wait()
	for i := range hoarders * connections {
		for _, sku := range skus {
			all.Go(func() {
				for pause(2*time.Millisecond, stop) {
					a.crowd.Buy(a.doors[0], crowd.Wish{Buyer: fake(i % hoarders), Lines: crowd.Units(sku, 1)})
				}
			})
		}
	}
}

// honest lets each honest buyer ask at both sales until it has bought one unit of each, or
// is stopped.
func (a *attack) honest(skus []string, stop <-chan struct{}) {
	var all sync.WaitGroup
	defer all.Wait()
	for i := range honestBuyers {
		for _, sku := range skus {
			all.Go(func() {
				wait := time.Duration(a.chance(2000, "first", i, sku)) * time.Millisecond
				for pause(wait, stop) && !a.buys(fmt.Sprintf("honest%d", i), sku) {
					wait = 2 * time.Second // what Retry-After of all_held says
				}
			})
		}
	}
}

// buys is one attempt of an honest buyer, who pays after a quarter of the hold's time.
func (a *attack) buys(buyer, sku string) bool {
	heard := a.crowd.Buy(a.doors[0], crowd.Wish{Buyer: buyer, Lines: crowd.Units(sku, 1)})
	if !heard.Won() {
		return false
	}
	time.Sleep(hoardedFor / 4)
	if status, _ := a.says(heard.Reservation, "confirm", "{}"); status != 200 {
		return false
	}
	return a.shop.Take(heard.Reservation)
}

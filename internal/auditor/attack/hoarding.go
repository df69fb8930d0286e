package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/stockgate/stockgate/internal/auditor"
	"github.com/stockgate/stockgate/internal/auditor/crowd"
	"github.com/stockgate/stockgate/internal/auditor/rig"
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
		a.sell("bounded", one(hoarded), "")
		a.sell("unbounded", stock{{Cell: "8", Qty: hoarded}}, "unpaid: off")
		a.h.Hoarding = auditor.Hoarding{Fakes: map[string]bool{}, Sales: []string{"bounded"}, Controls: []string{"unbounded"}}
		for i := range hoarders {
			a.h.Hoarding.Fakes[fake(i)] = true
		}
		rig.During(a.hoard, func() {
			a.until("hoarders hold all units of the control", func() bool { return a.edges[0].ItemState("unbounded", "8") == "all_held" })
			rig.During(a.honest, func() { time.Sleep(time.Duration(a.size(4, 8)) * hoardedFor) })
		})
		a.settle()
	},
}

func fake(i int) string { return fmt.Sprintf("fake%d", i) }

// hoard lets each hoarder ask at both sales until it is stopped.
func (a *attack) hoard(stop <-chan struct{}) {
	var all sync.WaitGroup
	defer all.Wait()
	for i := range hoarders {
		for _, sku := range []string{"7", "8"} {
			all.Go(func() {
				for pause(2*time.Millisecond, stop) {
					a.crowd.Buy(a.doors[0], crowd.Wish{Buyer: fake(i), Lines: crowd.Units(sku, 1)})
				}
			})
		}
	}
}

// honest lets each honest buyer ask at both sales until it has bought one unit of each, or
// is stopped.
func (a *attack) honest(stop <-chan struct{}) {
	var all sync.WaitGroup
	defer all.Wait()
	for i := range honestBuyers {
		for _, sku := range []string{"7", "8"} {
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

package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
	"github.com/stockgate/stockgate/internal/test/auditor/crowd"
	"github.com/stockgate/stockgate/internal/test/auditor/rig"
)

var waitlistOptions = scenario{
	name: "waitlist-options", short: true,
	about: "While people wait, enter, leave and order at two edges, operators change each option of the waiting list (offer, max, away and back), limits and stock, pause and open the sale, and reload both edges with other options of gate and list: open offers keep their deadlines, no person is told twice or forgotten, and every answer is true",
	run: func(a *attack) {
		a.stageWaitlist("20s", "")
		const least = 20
		a.waitLimited("options", one(10), "offer: "+shortestOffer, least, "")
		a.h.ByOperators = true
		rig.During(func(stop <-chan struct{}) {
			crowd.Rush(0, 30, stop, func(i int) { a.comesAndGoes(i, stop) })
		}, func() {
			for round := range a.size(1, 12) {
				a.changeOptions(round)
			}
		})
		a.hasNoneIdle("options")
		a.must(a.edges[0].Insist("", "sale", "close", "options"))
		a.settle()
		a.tellIdle("options")
	},
}

// comesAndGoes is a person who orders or waits, and leaves after a while: by a word, or without.
func (a *attack) comesAndGoes(i int, stop <-chan struct{}) {
	p := &crowd.Person{Sale: "options", Buyer: fmt.Sprintf("o%d", i), Line: auditor.Line{SKU: "7", Qty: int64(1 + a.chance(2, "quantity", i))}}
	door := func(n int) int { return a.chance(2, "door", i, n) }
	order := func(n int) bool {
		got := a.crowd.Buy(a.doors[door(n)], crowd.Wish{Buyer: p.Buyer, Lines: crowd.Units("7", p.Line.Qty)})
		if !got.Won() {
			return false
		}
		for pause(time.Duration(100+a.chance(400, "holds", i))*time.Millisecond, nil); ; { // a unit that is not sold comes back
			if status, _ := a.saysAt(door(n), got.Reservation, "release", "{}"); status != 0 && status < 500 {
				return true
			}
		}
	}
	if order(0) || a.crowd.Enter(a.doors[door(1)], p).Status != 201 {
		pause(100*time.Millisecond, stop)
		return
	}
	for n, most := 0, 5+a.chance(40, "patience", i); n < most; n++ {
		w := a.crowd.Stands(a.doors[door(n)], p)
		if w.State == "ended" {
			a.heard(w.Why)
			return
		}
		if w.State == "offered" && a.chance(5, "comes", i) > 0 {
			p.Line.Qty = w.Quantity
			if order(n) {
				return
			}
		}
		if !pause(time.Duration(100+a.chance(200, "asks", i, n))*time.Millisecond, stop) {
			break
		}
	}
	if a.chance(4, "says", i) > 0 {
		a.crowd.Withdraw(a.doors[door(99)], p)
	}
}

// changeOptions makes each change once, in an order that the seed draws, some of them at both edges at once.
func (a *attack) changeOptions(round int) {
	added := 0
	apply := func(waitlist, more string) func() {
		return func() {
			a.applies(a.edges[a.dice.IntN(2)], waitlist+"unpaid: off\n"+more)
		}
	}
	reload := func(change func(*rig.Site)) func() {
		return func() {
			var both sync.WaitGroup
			failed := make([]error, len(a.edges))
			for i, e := range a.edges {
				site := a.sites[i]
				change(&site)
				both.Go(func() { failed[i] = e.Reload(site) })
			}
			both.Wait()
			a.must(errors.Join(failed...))
		}
	}
	changes := map[string]func(){
		"offer longer":       apply("waitlist: {offer: 10m, max: 1000}\n", ""),
		"offer shorter":      apply("waitlist: {offer: 31s, max: 1000}\n", ""),
		"list smaller":       apply("waitlist: {offer: 30s, max: 20}\n", ""),
		"defaults":           apply("waitlist: {}\n", ""),
		"a limit":            apply("waitlist: {offer: 40s}\n", "limits:\n  - {per: buyer, every: sale, max: 1, count: units}\n"),
		"a limit of orders":  apply("waitlist: {offer: 40s}\n", "limits:\n  - {per: buyer, every: sale, max: 3, count: orders}\n"),
		"no list, and again": func() { apply("", "")(); pause(700*time.Millisecond, nil); apply("waitlist: {max: 1000}\n", "")() },
		"pause and open": func() {
			a.must(a.edges[0].Insist("", "sale", "pause", "options"))
			pause(500*time.Millisecond, nil)
			a.must(a.edges[1].Insist("", "sale", "open", "options"))
		},
		"offers paused": func() {
			a.must(a.edges[0].Insist("", "waitlist", "pause", "options"))
			pause(500*time.Millisecond, nil)
			a.must(a.edges[1].Insist("", "waitlist", "resume", "options"))
		},
		"stock": func() {
			added++
			a.h.Load("options", "7", 2)
			a.until("stock is added", func() bool {
				status, _, err := a.edges[added%2].Admin("POST", "sales/options/items/7/stock", fmt.Sprintf(`{"id":"add-%d-%d","delta":2}`, round, added))
				return err == nil && status == 200
			})
		},
		"the gate's hold":  reload(func(s *rig.Site) { s.Outcome = "outcome backend\n\t\thold_for 5s" }),
		"another identity": reload(func(s *rig.Site) { s.Reads = "identity phone {header.X-Phone}" }),
		"rates":            reload(func(s *rig.Site) { s.Reads = "rate {client_ip} 100000 1s" }),
		"fewer in flight":  reload(func(s *rig.Site) { s.Flights = 900 }),
		"fast refusals":    reload(func(s *rig.Site) { s.Gate, s.Server = "fast_refusals", "listener_wrappers {\n\t\t\tstockgate\n\t\t}" }),
		"no place for a while": func() {
			reload(func(s *rig.Site) { s.Waits = false })()
			pause(300*time.Millisecond, nil)
			reload(func(*rig.Site) {})()
		},
	}
	names := slices.Sorted(maps.Keys(changes))
	a.dice.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names {
		pause(time.Duration(200+a.dice.IntN(500))*time.Millisecond, nil)
		changes[name]()
		a.count(name, 1)
	}
	a.applies(a.edges[0], "waitlist: {}\nunpaid: off\n")
}

// applies changes the sale file at an edge: limits come and go, of which the operator knows.
func (a *attack) applies(e *rig.Edge, more string) {
	said := ""
	err := rig.Until("a sale file is applied", func() bool {
		status, text, err := e.Admin("PUT", "sales/options?force=1", file("options", one(10), more))
		said = fmt.Sprint(status, text, err)
		return err == nil && status < 300
	})
	if err != nil {
		a.must(fmt.Errorf("%w: %s", err, said))
	}
}

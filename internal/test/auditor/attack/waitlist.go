package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
	"github.com/stockgate/stockgate/internal/test/auditor/crowd"
	"github.com/stockgate/stockgate/internal/test/auditor/rig"
)

// shortestOffer is the least that a sale file allows.
const shortestOffer = "30s"

var waitlistRun = scenario{
	name: "waitlist", short: true,
	about: "5,000 people wait at two edges for 200 units that others hold; 10 % of those who are offered one do not come, 5 % come in the moment in which the offer ends, 30 % hold and do not pay, and bots ask all the time: all units are sold, each offer goes to the first in order, no order overtakes, and every answer is true",
	run: func(a *attack) {
		people, units := a.size(220, 5000), a.size(20, 200)
		a.stageWaitlist("8s", "")
		a.wait("waitlist", one(int64(units)), "offer: "+shortestOffer, int64(people))
		var ended atomic.Int64
		rig.During(func(stop <-chan struct{}) {
			var all sync.WaitGroup
			defer all.Wait()
			for i := range 4 { // bots, who do not wait
				all.Go(func() {
					for n := 0; pause(time.Duration(20+a.chance(60, "bot", i, n))*time.Millisecond, stop); n++ {
						a.orders(fmt.Sprintf("bot%d-%d", i, n), a.chance(2, "door", i, n))
					}
				})
			}
			for i := range people {
				all.Go(func() { a.waitsFor(i, stop); ended.Add(1) })
			}
		}, func() {
			a.until("all units are sold", func() bool { return a.shop.Orders() == units || int(ended.Load()) == people })
			a.until("no hold is open", func() bool {
				n, err := a.redis.Do("ZCARD", rig.Key("waitlist", "deadlines"))
				return err == nil && n == int64(0)
			})
			a.hasNoneIdle("waitlist")
			a.must(a.edges[0].Insist("", "sale", "close", "waitlist"))
		})
		if sold := a.shop.Orders(); sold != units {
			a.violated(auditor.InTurn, "%d of %d units are sold, and people waited", sold, units)
		}
		a.settle()
		a.tellIdle("waitlist")
	},
}

// stageWaitlist starts two edges at which people wait, and whose shop tells later who has paid. Each has an API of its own.
func (a *attack) stageWaitlist(hold, reads string) {
	a.startShop()
	a.startRedis(false, rig.Durable...)
	a.stageWaitlistOver([]string{a.redis.Addr(), a.redis.Addr()}, hold, reads)
}

// stageWaitlistOver is stageWaitlist with a way to Redis for each edge.
func (a *attack) stageWaitlistOver(ways []string, hold, reads string) {
	for _, way := range ways {
		site := a.backend(hold)
		site.Waits, site.Reads, site.Redis, site.Shop = true, reads, rig.RedisAt(way, "5s"), a.shop.Addr()
		a.startEdge(site)
		a.sites = append(a.sites, site)
	}
	a.shop.Later = true
}

// wait puts a sale with a waiting list on sale, and notes from then on how far its journal is.
func (a *attack) wait(sale string, s stock, options string, most int64) {
	a.waitLimited(sale, s, options, most, "")
}

// waitLimited is wait with more of the sale file, such as limits.
func (a *attack) waitLimited(sale string, s stock, options string, most int64, more string) {
	a.sell(sale, s, fmt.Sprintf("waitlist: {%s, max: %d}\nunpaid: off\n%s", options, most, more))
	a.h.Waitlists = append(a.h.Waitlists, auditor.Waitlist{Sale: sale, Max: most})
	a.mark(sale)
}

// mark notes how far a journal is until the history is judged.
func (a *attack) mark(sale string) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for read := rig.LastMovement(a.redis.Addr(), sale); pause(5*time.Millisecond, stop); {
			a.h.Mark(sale, read)
		}
	}()
	end := sync.OnceFunc(func() { close(stop); <-done })
	a.marking, a.cleanup = append(a.marking, end), append(a.cleanup, end)
}

// orders asks for a unit at a door.
func (a *attack) orders(buyer string, door int) *auditor.Attempt {
	return a.crowd.Buy(a.doors[door], crowd.Wish{Buyer: buyer, Lines: crowd.Units("7", 1)})
}

// pays lets the shop take the order of a hold; false: the hold is over.
func (a *attack) pays(id string, door int) bool {
	for range 5 {
		if status, _ := a.saysAt(door, id, "confirm", "{}"); status == 200 {
			return a.shop.Take(id)
		}
	}
	return false
}

// waitsFor is one person: who gets no unit at once waits for one, and pays for it, or does not.
func (a *attack) waitsFor(i int, stop <-chan struct{}) {
	p := &crowd.Person{Sale: "waitlist", Buyer: fmt.Sprintf("p%d", i), Line: auditor.Line{SKU: "7", Qty: 1}}
	door := func(n int) int { return a.chance(2, "door", i, n) }
	pause(time.Duration(a.chance(a.size(1000, 6000), "comes", i))*time.Millisecond, nil)
	if got := a.orders(p.Buyer, door(0)); got.Won() {
		a.paysOrNot(i, got)
		return
	}
	for n := 1; p.Place == "" && pause(time.Duration(n)*10*time.Millisecond, stop); n++ {
		if w := a.crowd.Enter(a.doors[door(n)], p); w.Reason == "available" {
			if got := a.orders(p.Buyer, door(n)); got.Won() {
				a.paysOrNot(i, got)
				return
			}
		}
	}
	late := false
	for n := 1; pause(time.Duration(a.size(400, 3000)+a.chance(a.size(400, 3000), "ask", i, n))*time.Millisecond, stop) || n == 1; n++ {
		w := a.crowd.Stands(a.doors[door(n)], p)
		switch {
		case w.Heard == 0 || w.Status != 200:
		case w.State == "ended":
			a.heard(w.Why)
			return
		case w.State == "offered" && !late:
			switch late = true; a.chance(20, "late", i) {
			case 0, 1: // does not come
				continue
			case 2: // comes in the moment in which the offer ends
				pause(time.Until(w.Until), stop)
			}
			if got := a.orders(p.Buyer, door(n+1)); got.Won() {
				a.paysOrNot(i, got)
			}
		}
	}
}

// paysOrNot is what 70 % of people do with a hold.
func (a *attack) paysOrNot(i int, got *auditor.Attempt) {
	if pause(500*time.Millisecond, nil); a.chance(10, "pays", i) < 7 {
		a.pays(got.Reservation, a.chance(2, "at", i))
	}
}

// heard counts how people were told that their entries ended.
func (a *attack) heard(why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counts["ended: "+why]++
}

// hasNoneIdle looks for units that are free while people wait. Those that have just come back are offered soon.
func (a *attack) hasNoneIdle(sale string) {
	a.until("no unit is free while people wait", func() bool { return len(a.people(sale).Idle()) == 0 })
}

// people are all who have waited in a sale, as its movements tell.
func (a *attack) people(sale string) *auditor.People {
	s, err := rig.Collect(a.redis.Addr(), sale)
	a.must(err)
	return auditor.ReplayPeople(auditor.Waitlist{Sale: sale}, s.Movements)
}

// tellIdle counts what the movements tell of a waiting list. How long a unit was free depends on the machine, and is not judged.
func (a *attack) tellIdle(sale string) {
	p, offers, lapsed := a.people(sale), 0, 0
	for _, stay := range p.Stays {
		if stay.Offered > 0 {
			offers++
		}
		if stay.Why == "lapsed" {
			lapsed++
		}
	}
	a.count("entries", len(p.Stays))
	a.count("offers", offers)
	a.count("offers that lapsed", lapsed)
	a.count("requests about the waiting list", len(a.h.Waits))
	a.count("longest time for which a unit was free and awaited, in ms", int(p.LongestIdle().Milliseconds()))
}

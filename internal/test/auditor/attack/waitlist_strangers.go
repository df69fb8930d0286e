package main

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
	"github.com/stockgate/stockgate/internal/test/auditor/crowd"
	"github.com/stockgate/stockgate/internal/test/auditor/rig"
)

var waitlistStrangers = scenario{
	name: "waitlist-strangers", short: true,
	about: "Units are offered to three people, who order them in the end. Until then strangers try to get them in 10,000 ways: orders with the person's key and ref, names like the person's, holds and tokens of others, forged places, entries that join two people, entries beyond the end of the list, at two edges of which one sees the journal late. No stranger gets a unit, learns where the person stands or takes the person off the list",
	run: func(a *attack) {
		a.startShop()
		a.startRedis(false, rig.Durable...)
		link, err := rig.NewProxy(a.redis.Addr())
		a.must(err)
		a.cleanup = append(a.cleanup, link.Close)
		a.stageWaitlistOver([]string{a.redis.Addr(), link.Addr()}, "2m", "identity phone {header.X-Phone}")
		link.Delay(20 * time.Millisecond)
		const units, listed = 3, 9
		a.waitLimited("strangers", one(units), "offer: "+shortestOffer, listed, phoneLimit)
		tries := a.size(1500, 10_000)
		for round := 0; a.counts["tries"] < tries; round++ {
			a.strangers(round, units, listed, min(tries-a.counts["tries"], 2500))
		}
		a.hasNoneIdle("strangers")
		a.must(a.edges[0].Insist("", "sale", "close", "strangers"))
		a.settle()
		a.tellIdle("strangers")
	},
}

// phoneLimit lets a person be known by a phone too. A person may have any number of units.
const phoneLimit = "limits:\n  - {per: phone, every: sale, max: 100000, count: units}\n"

// strangers is one round: some hold all units, people wait, the units come back and are offered to them, strangers try, and
// the people order.
func (a *attack) strangers(round, units, listed, tries int) {
	name := func(what string, i int) string { return fmt.Sprintf("%s%d-%d", what, round, i) }
	phone := func(what string, i int) []string { return []string{"X-Phone: +4670" + name(what, i)} }
	var holds []string
	for i := range units {
		var got *auditor.Attempt
		a.until("a unit is held", func() bool {
			got = a.crowd.Buy(a.doors[0], crowd.Wish{Buyer: name("holder", i), Lines: crowd.Units("7", 1), Header: phone("holder", i)})
			return got.Won()
		})
		holds = append(holds, got.Reservation)
	}
	people := make([]*crowd.Person, listed-1)
	for i := range people {
		people[i] = &crowd.Person{Sale: "strangers", Buyer: name("person", i), Phone: "+4670" + name("person", i), Line: auditor.Line{SKU: "7", Qty: 1}}
		a.until("a person waits", func() bool { return a.crowd.Enter(a.doors[i%2], people[i]).Status == 201 })
	}
	for _, id := range holds {
		a.until("a hold is released", func() bool { status, _ := a.says(id, "release", "{}"); return status == 200 })
	}
	offered := people[:units]
	for i, p := range offered {
		a.until("units are offered to a person", func() bool { return a.crowd.Stands(a.doors[i%2], p).State != "waiting" })
	}
	began := time.Now()
	var left atomic.Int64 // tries for which there was no time: the people come before their offers end
	crowd.Rush(tries, 12, nil, func(i int) {
		if time.Since(began) > 15*time.Second {
			left.Add(1)
			return
		}
		a.stranger(name("stranger", i), i, offered[i%units], people[units+i%(len(people)-units)])
	})
	a.count("tries", tries-int(left.Load()))
	var all sync.WaitGroup
	for i, p := range offered { // at both edges at once: one of them gets it
		for _, d := range a.doors {
			all.Go(func() {
				got := a.crowd.Buy(d, crowd.Wish{Buyer: p.Buyer, Key: "key-of-" + p.Buyer, Ref: "ref-of-" + p.Buyer, Lines: crowd.Units("7", 1), Header: phone("person", i)})
				if got.Won() && !got.Replayed {
					a.mu.Lock()
					defer a.mu.Unlock()
					a.counts["offers that were accepted"]++
				}
			})
		}
	}
	all.Wait()
	for i, p := range people { // the list is empty for the next round, and the units are free
		a.until("a person leaves", func() bool {
			w := a.crowd.Withdraw(a.doors[i%2], p)
			return w.Heard > 0 && w.Status == 200
		})
	}
	s, err := rig.Collect(a.redis.Addr(), "strangers")
	a.must(err)
	for id, record := range s.Records {
		if strings.HasPrefix(record, "held\t") && !strings.HasPrefix(id, "w") {
			a.until("a hold is released", func() bool { status, _ := a.says(id, "release", "{}"); return status == 200 })
		}
	}
}

// stranger is one try to get what is offered to a person, or to do a person harm. other waits, and has no offer.
func (a *attack) stranger(name string, i int, p, other *crowd.Person) {
	d := a.doors[a.chance(2, "door", name)]
	w := crowd.Wish{Buyer: name, Lines: crowd.Units("7", 1), Header: []string{"X-Phone: +4671" + name}}
	me := &crowd.Person{Sale: p.Sale, Buyer: name, Phone: "+4671" + name, Line: p.Line}
	switch a.chance(12, "way", name) {
	case 0: // by the person's key, which the stranger has guessed
		w.Key = "key-of-" + p.Buyer
	case 1: // by the person's ref
		w.Ref = "ref-of-" + p.Buyer
	case 2: // as one whose name looks like the person's
		w.Buyer = []string{strings.ToUpper(p.Buyer), p.Buyer + ",", p.Buyer + "%20", p.Buyer + "\u200b", "0" + p.Buyer}[i%5]
	case 3: // as two buyers
		w.Header = append(w.Header, "X-User-Id: "+p.Buyer)
	case 4: // with what the person's browser may have shown
		w.Header = append(w.Header, "Stockgate-Waitlist: "+p.Place, "Cookie: place="+p.Place, "Referer: http://shop"+p.Place)
	case 5: // with the offer's hold, whose name can be guessed
		w.Header = append(w.Header, fmt.Sprintf("Stockgate-Reservation: w%d.%d", i%9+1, time.Now().UnixMilli()), "Stockgate-Token: eyJhbGciOiJub25lIn0.e30.")
	case 6: // for none, or for so many
		w.Lines = crowd.Units("7", []int64{2, 3, 100}[i%3])
	case 7: // twice in one order
		w.Lines = append(w.Lines, w.Lines[0])
	case 8: // at places that are not the stranger's
		a.forges(d, p, i)
		return
	case 9: // as the one who waits next
		w.Buyer, w.Header = other.Buyer, []string{"X-Phone: " + other.Phone}
	case 10: // as one who is two people
		me.Buyer, me.Phone = p.Buyer, other.Phone
		if got := a.crowd.Enter(d, me); got.Status/100 == 2 {
			a.violated(auditor.OneEntry, "an attempt that joins %s and %s has an entry: %d %s", p.Buyer, other.Buyer, got.Status, got.Reason)
		}
		return
	case 11: // on a list that is full, or all but
		if got := a.crowd.Enter(d, me); got.Status == 201 {
			a.crowd.Withdraw(d, me)
		}
		return
	}
	a.crowd.Buy(d, w) // the movements tell whether this was in turn
}

// forges asks and deletes at places that no edge has told, made from a person's place.
func (a *attack) forges(d *crowd.Door, p *crowd.Person, i int) {
	secret := p.Place[len(p.Place)-22:]
	forged := *p
	forged.Place = []string{
		strings.TrimSuffix(p.Place, secret),
		strings.TrimSuffix(p.Place, secret) + strings.Repeat("A", 22),
		p.Place[:len(p.Place)-1],
		p.Place + "A",
		strings.Replace(p.Place, p.Sale, p.Sale+"x", 1),
		"/waitlist/" + p.Buyer,
		"/waitlist/" + p.Sale + "~" + secret,
		"/waitlist/x/../" + strings.Repeat("A", len(p.Place)-10),
	}[i%8]
	forged.Buyer = "forger of " + p.Buyer
	for _, ask := range []func(*crowd.Door, *crowd.Person) *auditor.Wait{a.crowd.Stands, a.crowd.Withdraw} {
		if got := ask(d, &forged); got.Heard > 0 && got.Status < 400 {
			a.violated(auditor.WaitlistSay, "a forged place %s answers %d %+v", forged.Place, got.Status, got.WaitAnswer)
		}
	}
}

package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
	"github.com/stockgate/stockgate/internal/test/auditor/crowd"
	"github.com/stockgate/stockgate/internal/test/auditor/rig"
	"github.com/stockgate/stockgate/internal/test/auditor/shop"
)

// versions are the binaries of the last version and of the present one.
func (a *attack) versions() (last, present string) {
	if len(a.caddies) != 2 {
		a.must(errors.New("it needs two versions, such as -caddy bin/last/caddy,bin/caddy; make upgrade builds both"))
	}
	return a.caddies[0], a.caddies[1]
}

// change stops an edge as a service manager does, and starts it again with another binary.
func (a *attack) change(edge int, binary string) {
	e := a.edges[edge]
	e.Terminate()
	e.Binary = binary
	a.must(e.Run(a.site))
	a.count("changes of version", 1)
}

// crash is change without a stop: the edge is killed.
func (a *attack) crash(edge int, binary string) {
	a.edges[edge].Kill()
	a.change(edge, binary)
}

var upgraded = scenario{
	name: "upgrade", asked: true,
	about: "Three edges of the last version become the present one, and go back, one by one, stopped or killed, under buyers with keys and limits whose orders the shop refuses, loses and takes back; a failover comes while both versions sell. No oversell, no lost unit, limits kept, and the last version settles what the present one has left in doubt",
	run: func(a *attack) {
		last, present := a.versions()
		a.caddies = a.caddies[:1]
		r := a.startReplicated()
		a.stage(3, rig.Site{Redis: r.door.Addr() + " {\n\t\ttimeout 5s\n\t\treplica_acks 1 2s\n\t}"})
		a.h.EdgesDie, a.h.ShopFails, a.h.ByOperators, a.h.Max = true, true, true, 2
		a.shop.Conduct = a.losesSome
		a.sell("plenty", stock{{Cell: "7", Qty: 1_000_000}}, perBuyer)
		scarce := stock{{Cell: "8", Qty: 150}}
		a.sell("scarce", scarce, perBuyer)
		both := func(sells ...func()) { // lets buyers buy between two steps, at every edge
			for _, step := range sells {
				pause(600*time.Millisecond, nil)
				step()
			}
			pause(time.Second, nil)
		}
		rig.During(a.buysOfTwoSales, func() {
			both(
				func() { a.change(0, present) },
				func() { a.operates(0, "scarce", scarce, 20) },
				func() {
					r.promote(a)
					a.newReplica(r.replica.Addr())
					r.lead(a)
					a.sellsAgain("7")
				},
				func() { a.crash(1, present) },
				func() { a.operates(2, "scarce", scarce, 10) },
				func() { a.change(2, present) },
				func() { a.change(1, last) },
				func() { a.crash(0, last) },
				func() { a.change(2, last) },
				func() { a.refusesNewer("scarce", "8") },
			)
		})
		a.settle()
		a.resolves("plenty", "scarce")
		a.sellsAgain("7")
		a.settle()
	},
}

// refusesNewer lets the last version find a sale of a schema that it does not know: it says so, and changes
// nothing until the schema is what it was.
func (a *attack) refusesNewer(sale, sku string) {
	meta := rig.Key(sale, "meta")
	was, err := a.redis.Do("HGET", meta, "schema")
	a.must(err)
	_, err = a.redis.Do("HSET", meta, "schema", "999")
	a.must(err)
	before, err := a.redis.Do("HGET", meta, "seq")
	a.must(err)
	for i, e := range a.edges {
		said, _, err := e.CLI("", "doctor")
		a.must(err)
		if want := "a newer stockgate has written the keys of " + sale; !strings.Contains(said, want) || !strings.Contains(said, "update it") {
			a.violated(auditor.FailClosed, "the doctor of edge %s does not say that %s:\n%s", e.Name, want, said)
		}
		t := a.crowd.Buy(a.doors[i], crowd.Wish{Buyer: "newer-" + e.Name, Lines: crowd.Units(sku, 1)})
		if t.Heard > 0 && t.Reason == "" {
			a.violated(auditor.FailClosed, "a sale of a newer schema sells: %v", t)
		}
	}
	after, err := a.redis.Do("HGET", meta, "seq")
	a.must(err)
	if before != after {
		a.violated(auditor.FailClosed, "a sale of a newer schema was changed: from movement %v to %v", before, after)
	}
	_, err = a.redis.Do("HSET", meta, "schema", fmt.Sprint(was))
	a.must(err)
}

// losesSome is a shop that is slow, refuses one order of ten, and breaks the connection at one of twenty.
func (a *attack) losesSome(o *auditor.Order) shop.Conduct {
	c := shop.Sells
	switch n := a.chance(40, "conduct", o.Attempt); {
	case n < 4:
		c = shop.Refuses
	case n < 6:
		c = shop.Odd()[n%2+1] // it takes the order, and resets the connection or closes it
	}
	return shop.Slow(time.Duration(a.chance(30, "slow", o.Attempt))*time.Millisecond, c)
}

// buysOfTwoSales has buyers at all edges: of plenty, where some give back what they have bought, and of scarce.
func (a *attack) buysOfTwoSales(stop <-chan struct{}) {
	crowd.Rush(0, 10, stop, func(i int) {
		w := crowd.Wish{Buyer: fmt.Sprintf("b%d", i/4), Lines: crowd.Units([]string{"7", "8"}[i/4%2], int64(1+a.chance(2, "qty", i)))}
		if i%3 == 0 {
			w.Key = fmt.Sprintf("k%d", i)
		}
		if i%16 == 15 { // comes once: what is given back may be bought again
			w.Buyer, w.Lines = fmt.Sprintf("r%d", i), crowd.Units("7", 2)
		}
		t := a.crowd.Buy(a.doors[a.chance(len(a.doors), "door", i)], w)
		if w.Key != "" {
			a.crowd.Buy(a.doors[a.chance(len(a.doors), "again", i)], w)
		}
		if w.Buyer[0] == 'r' && t.Won() && t.Reservation != "" {
			// of one unit, twice with one id, at two edges; one that is being replaced does not answer
			body := fmt.Sprintf(`{"id":"return-%d","lines":[{"sku":"7","qty":1}],"restock":true}`, i)
			for n := range 2 {
				status, _, err := a.edges[a.chance(len(a.edges), "return", i, n)].Admin("POST", "reservations/"+t.Reservation+"/return", body)
				if err == nil && status == 200 {
					a.returns.Add(1)
				}
			}
		}
		pause(time.Duration(10+a.chance(20, "pause", i))*time.Millisecond, stop)
	})
}

// operates pauses a sale at an edge, adds stock, applies its file once more, and opens it at another one.
func (a *attack) operates(edge int, sale string, s stock, more int64) {
	a.h.Load(sale, s[0].Cell, more)
	a.must(a.edges[edge].Insist("", "sale", "pause", sale))
	a.must(a.edges[edge].Insist("", "stock", "add", sale, s[0].Cell, fmt.Sprint(more), "--id", fmt.Sprintf("more-%d", edge)))
	a.must(a.edges[(edge+1)%3].Insist(file(sale, s, perBuyer), "sale", "apply", "-"))
	a.must(a.edges[(edge+2)%3].Insist("", "sale", "open", sale))
}

// resolves settles what is in doubt, as operators do who ask the shop's database.
func (a *attack) resolves(sales ...string) {
	taken := map[string]bool{}
	for _, o := range a.h.Orders {
		taken[o.JTI] = taken[o.JTI] || o.Taken
	}
	a.count("returns", int(a.returns.Load()))
	for _, sale := range sales {
		s, err := rig.Collect(a.home(sale).Addr(), sale)
		a.must(err)
		for i, id := range s.InDoubt {
			word := "release"
			if taken[id] {
				word = "confirm"
			}
			a.must(a.edges[i%len(a.edges)].Insist("", "reservation", word, id))
		}
		a.count("in doubt", len(s.InDoubt))
	}
}

var goesBack = scenario{
	name: "upgrade-store", asked: true,
	about: "One edge with a store, a ledger, an outbox and orders that wait changes from the last version to the present one and back, three times, stopped or killed in the middle of orders: the last version reads what the present one has written, each order is sent once, and ledger and receiver have every movement",
	run: func(a *attack) {
		last, present := a.versions()
		a.caddies = a.caddies[:1]
		dir := filepath.Join(a.dir, "stock")
		a.redis = rig.Store(dir)
		receiver, err := rig.StartReceiver()
		a.must(err)
		a.cleanup = append(a.cleanup, receiver.Close)
		p, site := a.withLedger()
		site.App += "\n\t\t" + receiver.Option()
		site.Store, site.Outcome = dir+" {\n\t\ttimeout 5s\n\t}", "hold_for 6s\n\t\tforward_timeout 3s"
		site.Queue = "at_once 3\n\t\t\twait 8s"
		a.stage(1, site)
		a.h.EdgesDie, a.h.Queues = true, []auditor.Queue{{Sale: "back", AtOnce: 3}}
		a.shop.Conduct = func(o *auditor.Order) shop.Conduct {
			c := shop.Sells
			if a.chance(10, "refuses", o.Attempt) == 0 {
				c = shop.Refuses
			}
			return shop.Slow(time.Duration(10+a.chance(40, "slow", o.Attempt))*time.Millisecond, c)
		}
		a.sell("back", one(1_000_000), "")
		waiting := func() {
			a.until("orders wait", func() bool {
				n, err := a.redis.Do("ZCARD", rig.Key("back", "line"))
				return err == nil && n != int64(0)
			})
		}
		rig.During(func(stop <-chan struct{}) {
			crowd.Rush(0, 16, stop, func(i int) { a.buysInLine(i, stop) })
		}, func() {
			for _, step := range []func(int, string){a.change, a.crash, a.change} {
				for _, binary := range []string{present, last} {
					pause(500*time.Millisecond, nil)
					waiting()
					step(0, binary)
				}
			}
			pause(500*time.Millisecond, nil)
		})
		a.settle()
		a.sellsAgain("7")
		a.settle()
		ledger, s := a.caughtUp(p, "back")
		a.found = append(a.found, auditor.JudgeLedger(ledger, s)...)
		end := s.Movements[len(s.Movements)-1].Seq
		a.until("the receiver has every movement", func() bool { return receiver.Last("back") == end })
		for _, what := range slices.Sorted(slices.Values(receiver.Wrong())) {
			a.violated(auditor.Balance, "the outbox: %s", what)
		}
		a.count("messages of the outbox", receiver.Messages())
	},
}

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
	"github.com/stockgate/stockgate/internal/test/auditor/shop"
)

var queued = scenario{
	name: "queue", short: true,
	about: "Orders wait for a shop that takes 40 a second, 8 at a time. Their buyers wait, leave, ask at places, cancel and repeat keys at two edges, which are killed, stopped and reloaded while Redis stalls, is killed and loses replies: no order is sent twice or given up, the pace holds in every window of time, and every answer is true",
	run: func(a *attack) {
		a.waits("pace 40 1s\n\t\t\tat_once 8", auditor.Queue{Sale: "queue", AtOnce: 8, Every: 25 * time.Millisecond}, 30)
	},
}

var queuedInOrder = scenario{
	name: "queue-in-order", short: true,
	about: "The same where one order at a time is at the shop: they come there in the order in which their stock was held, over all edges and faults",
	run: func(a *attack) {
		a.waits("at_once 1", auditor.Queue{Sale: "in-order", AtOnce: 1, InOrder: true}, 12)
	},
}

var queueLostTogether = scenario{
	name: "queue-lost-together", short: true,
	about: "Two edges and their Redis, which keeps what it acknowledges, are killed together while orders wait, one at a time at the shop: not more than that one is in doubt, all others are sent once, and no place is gone",
	run: func(a *attack) {
		a.startRedis(false, rig.Durable...)
		redis := fmt.Sprintf("%s {\n\t\ttimeout 2s\n\t\tfence 4s\n\t}", a.redis.Addr())
		a.stage(2, rig.Site{Redis: redis, Queue: "at_once 1\n\t\t\twait 8s", Outcome: "hold_for 10s\n\t\tforward_timeout 8s"})
		a.h.EdgesDie, a.h.Queues = true, []auditor.Queue{{Sale: "together", AtOnce: 1}}
		var killed atomic.Bool
		a.shop.Conduct = func(*auditor.Order) shop.Conduct {
			if killed.Load() {
				return shop.Sells
			}
			return shop.Slow(250*time.Millisecond, shop.Sells)
		}
		a.sell("together", one(1000), "")
		told := make([]*auditor.Attempt, 41)
		var all sync.WaitGroup
		for i := range told {
			all.Go(func() {
				told[i] = a.crowd.Buy(a.doors[i%2], crowd.Wish{Buyer: fmt.Sprintf("b%d", i), Lines: crowd.Units("7", 1), Header: []string{"Prefer: respond-async"}})
			})
		}
		all.Wait()
		a.until("both edges have said how they keep what they send", func() bool {
			text, err := a.redis.Do("HGET", rig.Key("together", "meta"), "keeps")
			return err == nil && len(strings.Fields(fmt.Sprint(text))) == 4
		})
		a.until("one of those that waited is at the shop", func() bool {
			n, err := a.redis.Do("ZCOUNT", rig.Key("together", "at_shop"), "9000000000000000", "+inf")
			return err == nil && n == int64(1)
		})
		for _, e := range a.edges {
			e.Kill()
		}
		a.redis.Kill()
		killed.Store(true)
		a.must(a.redis.Run())
		waiting, err := a.redis.Do("ZCARD", rig.Key("together", "line"))
		a.must(err)
		a.count("waiting", int(waiting.(int64)))
		for _, e := range a.edges {
			a.must(e.Run(a.site))
		}
		for i, t := range told {
			a.follows(i, t, nil)
		}
		a.settle()
		shard, err := rig.Collect(a.redis.Addr(), "together")
		a.must(err)
		doubted := 0
		for _, m := range shard.Movements {
			if m.Kind == "in_doubt" {
				doubted++
			}
		}
		if a.count("in doubt", doubted); doubted > 1 {
			a.violated(auditor.Places, "%d orders are in doubt, and the shop had one at a time", doubted)
		}
	},
}

// waits attacks a gate whose orders wait for the shop.
func (a *attack) waits(options string, q auditor.Queue, together int) {
	a.startRedis(false, rig.Durable...)
	link, err := rig.NewProxy(a.redis.Addr())
	a.must(err)
	a.cleanup = append(a.cleanup, link.Close)
	a.stage(2, rig.Site{Redis: rig.RedisAt(link.Addr(), "1s"), Queue: options + "\n\t\t\twait 8s", Outcome: "hold_for 4s\n\t\tforward_timeout 2s"})
	a.h.EdgesDie, a.h.Queues = true, []auditor.Queue{q}
	a.shop.Conduct = func(o *auditor.Order) shop.Conduct {
		c := shop.Sells
		if a.chance(10, "refuses", o.Attempt) == 0 {
			c = shop.Refuses
		}
		return shop.Slow(time.Duration(a.chance(15, "slow", o.Attempt))*time.Millisecond, c)
	}
	a.sell(q.Sale, one(1_000_000), "")
	rig.During(func(stop <-chan struct{}) {
		crowd.Rush(0, together, stop, func(i int) { a.buysInLine(i, stop) })
	}, func() { a.disturbQueue(link) })
	a.settle()
	a.sellsAgain("7")
	a.settle()
	for _, key := range []string{"line", "orders", "at_shop"} {
		if n, err := a.redis.Do("EXISTS", rig.Key(q.Sale, key)); err != nil || n != int64(0) {
			a.violated(auditor.NotLost, "every hold has ended, and the line has something left: %s: %v %v", key, n, err)
		}
	}
}

// buysInLine is one buyer of a crowd that waits.
func (a *attack) buysInLine(i int, stop <-chan struct{}) {
	here, there := a.doors[a.chance(len(a.doors), "door", i)], a.doors[a.chance(len(a.doors), "other", i)]
	w := crowd.Wish{Buyer: fmt.Sprintf("b%d", i), Lines: crowd.Units("7", 1)}
	key, async := fmt.Sprintf("k%d", i), []string{"Prefer: respond-async"}
	switch a.chance(9, "way", i) {
	case 0, 1: // waits
		a.follows(i, a.crowd.Buy(here, w), stop)
	case 2, 3: // does not wait
		w.Header = async
		a.follows(i, a.crowd.Buy(here, w), stop)
	case 4: // thinks better of it
		w.Header = async
		if t := a.crowd.Buy(here, w); t.Queue != "" {
			if a.chance(2, "late", i) == 0 {
				a.crowd.Look(there, t, "")
			}
			a.crowd.Cancel(there, t)
			a.follows(i, t, stop)
		}
	case 5: // leaves, and comes back elsewhere
		w.Key, w.Leave = key, crowd.AfterAsking
		a.crowd.Buy(here, w)
		w.Leave = crowd.Stays
		a.follows(i, a.crowd.Buy(there, w), stop)
	case 6: // closes only one side, with a key and without
		if w.Leave = crowd.HalfClose; i%2 == 0 {
			w.Key = key
		}
		a.follows(i, a.crowd.Buy(here, w), stop)
	case 7: // is impatient, at two edges
		w.Key = key
		var both sync.WaitGroup
		both.Go(func() { a.crowd.Buy(a.doors[0], w) })
		w.Header = async
		both.Go(func() { a.follows(i, a.crowd.Buy(a.doors[len(a.doors)-1], w), stop) })
		both.Wait()
	case 8: // asks again when it is over
		w.Key = key
		a.follows(i, a.crowd.Buy(here, w), stop)
		a.follows(i, a.crowd.Buy(there, w), stop)
	}
	if i%50 == 0 {
		a.crowd.Browse(here)
	}
	pause(time.Duration(5+a.chance(30, "pause", i))*time.Millisecond, stop)
}

// follows asks at the place that an attempt was told until its order has ended.
func (a *attack) follows(i int, t *auditor.Attempt, stop <-chan struct{}) {
	if t.Heard == 0 || t.Queue == "" {
		return
	}
	for n, end := 0, time.Now().Add(rig.Patience); time.Now().Before(end); n++ {
		l := a.crowd.Look(a.doors[a.chance(len(a.doors), "look", i, n)], t, []string{"", "1", "2"}[a.chance(3, "patience", i, n)])
		if l.Heard > 0 && l.Status != 503 && l.State != "waiting" && l.State != "at_shop" {
			return
		}
		pause(time.Duration(20+a.chance(100, "again", i, n))*time.Millisecond, nil)
	}
	a.violated(auditor.NotLost, "after %v an order has not ended: %v", rig.Patience, t)
}

// disturbQueue does everything once, in an order that the seed draws; in a long run many times.
func (a *attack) disturbQueue(link *rig.Proxy) {
	edge := func() *rig.Edge { return a.edges[a.dice.IntN(2)] }
	reloads := 0
	faults := map[string]func(){
		"edge killed": func() {
			e := edge()
			e.Kill()
			pause(time.Duration(a.dice.IntN(2000))*time.Millisecond, nil)
			a.must(e.Run(a.site))
		},
		"edge stopped": func() {
			e := edge()
			e.Stop()
			pause(time.Duration(500+a.dice.IntN(5000))*time.Millisecond, nil)
			e.Continue()
		},
		"edges reloaded": func() {
			for _, e := range a.edges {
				reloads++
				site := a.site
				site.App = fmt.Sprintf("list l%d redis", reloads)
				site.Queue += fmt.Sprintf("\n\t\t\tkeep %dm", 15+reloads) // each edge has another gate now
				a.must(e.Reload(site))
			}
		},
		"redis stalled": func() { a.redis.Stall(time.Duration(300+a.dice.IntN(2000)) * time.Millisecond) },
		"redis killed": func() {
			a.redis.Kill()
			a.must(a.redis.Run())
		},
		"replies lost": func() {
			link.Deafen()
			pause(time.Duration(50+a.dice.IntN(600))*time.Millisecond, nil)
			link.Resume()
		},
	}
	names := []string{"edge killed", "edge stopped", "edges reloaded", "redis stalled", "redis killed", "replies lost"}
	for range a.size(1, 8) {
		a.dice.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for _, name := range names {
			pause(time.Duration(300+a.dice.IntN(700))*time.Millisecond, nil)
			faults[name]()
			a.count(name, 1)
		}
	}
	pause(time.Second, nil)
}

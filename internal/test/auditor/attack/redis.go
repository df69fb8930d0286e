package main

import (
	"fmt"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor/crowd"
	"github.com/stockgate/stockgate/internal/test/auditor/rig"
)

var redisStalls = scenario{
	name: "redis-stalls", short: true,
	about: "Redis stands still for 0.4 s and longer, up to 40 s, under buyers at two edges: clear refusals meanwhile, other routes work, then selling goes on, and every unit is somewhere",
	run: func(a *attack) {
		a.stage(2, rig.Site{Redis: rig.RedisAt(a.redisFirst(), "500ms")})
		a.h.Max = 2
		stalls := []time.Duration{400 * time.Millisecond, 1500 * time.Millisecond, 4 * time.Second}
		if a.long {
			stalls = append(stalls, 8*time.Second, 15*time.Second, 40*time.Second, 700*time.Millisecond, 2500*time.Millisecond)
		}
		a.sell("stalls", one(int64(a.size(200, 2000))), perBuyer)
		a.crowdWhile("stalls", 20, func() {
			for _, d := range stalls {
				time.Sleep(time.Second)
				a.redis.Stall(d)
			}
			time.Sleep(time.Second)
		})
		a.settle()
		a.sellsAgain("7")
		a.settle()
	},
}

// redisFirst starts Redis before the edges, and says where it is.
func (a *attack) redisFirst() string {
	a.startRedis(false, rig.Durable...)
	return a.redis.Addr()
}

// crowdWhile has buyers at all doors as long as a function goes on: with keys and without, one
// to two units, some of them again at another edge; and now and then other routes are asked.
func (a *attack) crowdWhile(sale string, together int, meanwhile func()) {
	rig.During(func(stop <-chan struct{}) {
		crowd.Rush(0, together, stop, func(i int) {
			w := crowd.Wish{Buyer: fmt.Sprintf("b%d", i/2), Lines: crowd.Units("7", int64(1+a.chance(2, "qty", i)))}
			door := a.doors[a.chance(len(a.doors), "door", i)]
			if i%3 == 0 {
				w.Key = fmt.Sprintf("k%d", i)
			}
			a.crowd.Buy(door, w)
			if w.Key != "" {
				a.crowd.Buy(a.doors[a.chance(len(a.doors), "again", i)], w)
			}
			if i%50 == 0 {
				a.crowd.Browse(door)
			}
			// the machine belongs to others too
			pause(time.Duration(5+a.chance(20, "pause", i))*time.Millisecond, stop)
		})
	}, meanwhile)
}

package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
	"github.com/stockgate/stockgate/internal/test/auditor/crowd"
	"github.com/stockgate/stockgate/internal/test/auditor/rig"
	"github.com/stockgate/stockgate/internal/test/auditor/shop"
)

var scriptFlush = scenario{
	name: "script-flush", short: true,
	about: "SCRIPT FLUSH twenty times a second, and connections that Redis closes, under buyers: all goes on",
	run: func(a *attack) {
		a.stage(1, rig.Site{})
		a.h.Max = 2
		a.sell("flush", one(int64(a.size(150, 1500))), perBuyer)
		a.crowdWhile("flush", 10, func() {
			for i := range a.size(60, 600) {
				time.Sleep(50 * time.Millisecond)
				a.redis.Do("SCRIPT", "FLUSH")
				if i%10 == 0 {
					a.redis.Do("CLIENT", "KILL", "TYPE", "normal")
				}
			}
		})
		a.settle()
		a.sellsAgain("7")
		a.settle()
	},
}

var fullMemory = scenario{
	name: "full-memory", short: true,
	about: "Redis is full in the middle of orders: new ones are refused, those under way end well, and selling goes on when there is room again",
	run: func(a *attack) {
		a.stage(1, rig.Site{})
		a.h.Max = 2
		a.shop.Conduct = func(o *auditor.Order) shop.Conduct {
			return shop.Slow(time.Duration(a.chance(50, o.Attempt))*time.Millisecond, shop.Sells)
		}
		a.sell("full", one(int64(a.size(300, 3000))), perBuyer)
		a.crowdWhile("full", 10, func() {
			for range a.size(3, 20) {
				time.Sleep(700 * time.Millisecond)
				info, err := a.redis.Do("INFO", "memory")
				a.must(err)
				_, used, _ := strings.Cut(fmt.Sprint(info), "used_memory:")
				used, _, _ = strings.Cut(used, "\r")
				n, _ := strconv.Atoi(used)
				a.must(a.config("maxmemory", strconv.Itoa(max(n-1000, 1))))
				time.Sleep(700 * time.Millisecond)
				a.must(a.config("maxmemory", "0"))
			}
		})
		a.settle()
		a.sellsAgain("7")
		a.settle()
	},
}

func (a *attack) config(option, value string) error {
	_, err := a.redis.Do("CONFIG", "SET", option, value)
	return err
}

var eviction = scenario{
	name: "eviction-policy", short: true,
	about: "maxmemory-policy is set to one that evicts: the gate stops selling, and goes on when it is noeviction again",
	run: func(a *attack) {
		a.stage(1, rig.Site{})
		a.sell("evict", one(100_000), "")
		buy := func(i int) *auditor.Attempt {
			return a.crowd.Buy(a.doors[0], crowd.Wish{Buyer: fmt.Sprintf("b%d", i), Lines: crowd.Units("7", 1)})
		}
		crowd.Rush(20, 4, nil, func(i int) { buy(i) })
		for round := range a.size(1, 3) {
			a.must(a.config("maxmemory-policy", []string{"allkeys-lru", "volatile-ttl", "allkeys-random"}[round]))
			n := 1000 * (round + 1)
			a.until("the gate does not sell while Redis may evict", func() bool {
				n++
				time.Sleep(20 * time.Millisecond)
				return buy(n).Reason == "unavailable"
			})
			a.must(a.config("maxmemory-policy", "noeviction"))
			a.sellsAgain("7")
		}
		a.settle()
	},
}

var carts = scenario{
	name: "carts", short: true,
	about: "Carts of up to 200 lines with long names, numbers up to 2^64 and beyond, and everything else that a quantity is not: refused, or sold as they are; what cannot be sold is never reserved",
	run: func(a *attack) {
		a.stage(1, rig.Site{})
		var all stock
		for i := range 200 {
			all = append(all, auditor.Units{Cell: fmt.Sprintf("%s%03d", strings.Repeat("n", 100), i), Qty: 1000})
		}
		a.sell("carts", append(all, auditor.Units{Cell: "7", Qty: 1000}), "")
		numbers := []string{"0", "-1", "1.0", "1e0", "1.5", "00001", "01", "10001", "99999", "100000", "2147483648", "4294967297", "9007199254740993", "9223372036854775807",
			"9223372036854775808", "18446744073709551615", "18446744073709551616", "1e400", "null", "true", `"1"`, `"1 "`, `"0x1"`, `"٣"`, "[1]", `{"a":1}`, `"-0"`, "-0", `""`}
		for round := range a.size(1, 10) {
			for n := 1; n <= 200; n += 1 + n/8 {
				w := crowd.Wish{Buyer: fmt.Sprintf("c%d-%d", round, n)}
				for i := range n {
					w.Lines = append(w.Lines, auditor.Line{SKU: all[(i*7+round)%200].Cell, Qty: 1})
				}
				a.crowd.Buy(a.doors[0], w)
			}
			crowd.Rush(len(numbers), 4, nil, func(i int) {
				a.crowd.Buy(a.doors[0], crowd.Wish{Buyer: fmt.Sprintf("n%d-%d", round, i), Raw: fmt.Sprintf(`{"items":[{"sku":"7","quantity":%s}]}`, numbers[i])})
			})
		}
		a.settle()
		s, err := rig.Collect(a.redis.Addr(), "carts")
		a.must(err)
		seen, idle := map[string]bool{}, 0
		for _, o := range a.h.Orders {
			seen[o.JTI] = true
		}
		for _, m := range s.Movements {
			if m.Kind == "held" && !seen[m.ID] {
				idle++
			}
		}
		if idle > 0 {
			a.violated(auditor.ChargesNone, "%d carts were reserved and released, and the shop never saw them: that they cannot be sold is known before", idle)
		}
	},
}

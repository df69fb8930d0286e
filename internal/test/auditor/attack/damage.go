package main

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/stockgate/stockgate/internal/test/auditor"
	"github.com/stockgate/stockgate/internal/test/auditor/crowd"
	"github.com/stockgate/stockgate/internal/test/auditor/rig"
	"github.com/stockgate/stockgate/internal/test/auditor/shop"
)

// damages are what happens to a sale's keys. %s is a reservation that is sold, or its field.
var damages = [][]string{
	{"HSET", "cells", "7", "1000 999 0 0 1"},
	{"HSET", "cells", "7", "0 0 0 0 0"},
	{"HSET", "cells", "7", "rubbish"},
	{"HDEL", "cells", "7"},
	{"HSET", "cells", "9", "5 5 0 0 0"},
	{"DEL", "cells"},
	{"HDEL", "records", "<sold>"},
	{"HSET", "records", "<sold>", "rubbish"},
	{"HSET", "records", "<sold>", "<released>"},
	{"DEL", "records"},
	{"HDEL", "limits", "<limit>"},
	{"HSET", "limits", "<limit>", "77 0"},
	{"HSET", "limits", "<limit>", "rubbish"},
	{"DEL", "limits"},
	{"ZREM", "deadlines", "<held>"},
	{"ZADD", "deadlines", "9999999999999", "<sold>"},
	{"DEL", "deadlines"},
	{"ZADD", "in_doubt", "1", "<sold>"},
	{"ZREM", "in_doubt", "<doubt>"},
	{"DEL", "in_doubt"},
	{"ZADD", "unbacked", "1", "<sold>"},
	{"HDEL", "bindings", "<binding>"},
	{"HSET", "bindings", "<binding>", "another-reservation"},
	{"DEL", "bindings"},
	{"HDEL", "adjustments", "more"},
	{"DEL", "adjustments"},
}

var damaged = scenario{
	name: "damage-and-repairs", short: true,
	about: fmt.Sprintf("%d kinds of damage to the keys of a sale, one by one and then several at once, each under four simultaneous repairs at two edges: afterwards all is as the journal says, and selling goes on", len(damages)),
	run: func(a *attack) {
		a.stage(2, rig.Site{Outcome: "hold_for 10m\n\t\tforward_timeout 1s"})
		a.shop.Conduct = func(o *auditor.Order) shop.Conduct {
			if o.Buyer == "doubt" {
				return shop.Status(500, true)
			}
			return shop.Sells
		}
		a.sell("damage", one(200), perBuyer)
		buy := func(name string, n int) {
			crowd.Rush(n, 4, nil, func(i int) {
				a.crowd.Buy(a.doors[i%2], crowd.Wish{Buyer: fmt.Sprintf("%s%d", name, i), Key: fmt.Sprintf("k%d", i), Lines: crowd.Units("7", 1)})
			})
		}
		buy("first", 12)
		a.crowd.Buy(a.doors[0], crowd.Wish{Buyer: "doubt", Lines: crowd.Units("7", 1)})
		a.h.Load("damage", "7", 10)
		a.command(a.edges[0], "", "stock", "add", "damage", "7", "10", "--id", "more")
		a.settle()
		for i := range damages {
			a.damage(damages[i])
			a.repaired(fmt.Sprint(damages[i]))
		}
		for round := range a.size(2, 20) {
			for j := range 5 {
				a.damage(damages[a.chance(len(damages), round, j)])
			}
			a.repaired("five at once")
			buy(fmt.Sprintf("r%d-", round), 4)
			a.settle()
		}
	},
}

// damage does one of them, with names of the sale put in.
func (a *attack) damage(words []string) {
	s, err := rig.Collect(a.redis.Addr(), "damage")
	a.must(err)
	names := map[string]string{"<limit>": "x", "<sold>": "x", "<held>": "x", "<doubt>": "x", "<binding>": "x"}
	for id, record := range s.Records {
		if len(record) > 9 && record[:9] == "confirmed" {
			names["<sold>"], names["<released>"] = id, "released"+record[9:]
		}
	}
	for field := range s.Limits {
		names["<limit>"] = field
	}
	if len(s.InDoubt) > 0 {
		names["<doubt>"] = s.InDoubt[0]
	}
	fields, err := a.redis.Do("HKEYS", rig.Key("damage", "bindings"))
	a.must(err)
	if list, _ := fields.([]any); len(list) > 0 {
		names["<binding>"] = fmt.Sprint(list[0])
	}
	command := []string{words[0], rig.Key("damage", words[1])}
	for _, w := range words[2:] {
		if name, ok := names[w]; ok {
			w = name
		}
		command = append(command, w)
	}
	_, err = a.redis.Do(command...)
	a.must(err)
}

// repaired lets four repairs run at once, until one finds nothing any more.
func (a *attack) repaired(what string) {
	last := ""
	for range 20 {
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() { a.edges[i%2].Admin("POST", "sales/damage/reconcile", `{"repair":true}`) })
		}
		all.Wait()
		status, text, err := a.edges[0].Admin("POST", "sales/damage/reconcile", `{}`)
		a.must(err)
		var report struct{ Agrees bool }
		json.Unmarshal([]byte(text), &report)
		if last = text; status == 200 && report.Agrees {
			a.count("repairs", 1)
			return
		}
	}
	a.violated(auditor.Balance, "after %s, twenty times four repairs leave: %.600s", what, last)
}

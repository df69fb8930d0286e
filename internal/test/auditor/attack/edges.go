package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
	"github.com/stockgate/stockgate/internal/test/auditor/crowd"
	"github.com/stockgate/stockgate/internal/test/auditor/rig"
	"github.com/stockgate/stockgate/internal/test/auditor/shop"
)

var edgesDie = scenario{
	name: "edges-die", short: true,
	about: "Edges are killed with -9 and started again, or stand still beyond the deadline of their holds (SIGSTOP), under buyers: no unit is lost or sold twice",
	run: func(a *attack) {
		a.stage(2, rig.Site{Outcome: "hold_for 4s\n\t\tforward_timeout 2s"})
		a.h.EdgesDie, a.h.Max = true, 2
		a.shop.Conduct = func(o *auditor.Order) shop.Conduct {
			return shop.Slow(time.Duration(a.chance(40, o.Attempt))*time.Millisecond, shop.Sells)
		}
		a.sell("die", one(int64(a.size(150, 1500))), perBuyer)
		a.crowdWhile("die", 12, func() {
			for i := range a.size(4, 30) {
				time.Sleep(time.Duration(200+a.dice.IntN(500)) * time.Millisecond)
				e := a.edges[i%2]
				if i%4 == 3 {
					e.Stop()
					time.Sleep(5 * time.Second)
					e.Continue()
					continue
				}
				e.Kill()
				a.must(e.Run(a.site))
			}
		})
		a.settle()
		a.sellsAgain("7")
		a.settle()
	},
}

var reloads = scenario{
	name: "reloads", short: true,
	about: "60 reloads a minute of changed configurations under buyers: no outcome is lost, other routes answer",
	run: func(a *attack) {
		a.stage(1, rig.Site{})
		a.h.Max = 2
		a.sell("reloads", one(int64(a.size(300, 3000))), perBuyer)
		a.crowdWhile("reloads", 12, func() {
			for i := range a.size(8, 60) {
				time.Sleep(time.Second)
				site := a.site
				site.Flights = 1000 + i%3
				site.Gate = []string{"", "rate {client_ip} 100000 1s", "fast_refusals"}[i%3]
				if i%3 == 2 {
					site.Server = "listener_wrappers {\n\t\t\tstockgate\n\t\t}"
				}
				a.must(a.edges[0].Reload(site))
			}
		})
		a.settle()
		a.sellsAgain("7")
		a.settle()
	},
}

var stormOfOperators = scenario{
	name: "storm-of-operators", short: true,
	about: "Operators apply files, add stock, pause, open, change lists and ask for everything, all at once at two edges under buyers: the stock is exactly what operators were told",
	run: func(a *attack) {
		a.stage(2, rig.Site{App: "list vips redis\n\t\tlist bad redis", Gate: "deny bad"})
		a.h.Max = 2
		a.sell("storm", one(50), perBuyer)
		var added atomic.Int64 // acknowledged
		var failed atomic.Int64
		a.crowdWhile("storm", 8, func() {
			crowd.Rush(a.size(600, 8000), 6, nil, func(i int) {
				pause(10*time.Millisecond, nil)
				e := a.edges[i%2]
				ask := func(method, path, body string) int {
					status, _, err := e.Admin(method, path, body)
					if err != nil || status >= 400 { // what is asked is always allowed
						failed.Add(1)
					}
					return status
				}
				switch a.chance(8, "op", i) {
				case 0, 1:
					a.h.Load("storm", "7", 2)
					body := fmt.Sprintf(`{"id":"add-%d","delta":2}`, i)
					if ask("POST", "sales/storm/items/7/stock", body) == 200 {
						added.Add(2)
						ask("POST", "sales/storm/items/7/stock", body) // again: it counts once
					}
				case 2:
					ask("POST", "sales/storm/pause", "")
				case 3, 4:
					ask("POST", "sales/storm/open", "")
				case 5:
					ask("PUT", "sales/storm", file("storm", one(50), perBuyer+fmt.Sprintf("max_hold: %dm", 10+i%40)))
				case 6:
					ask("POST", "lists/vips/add", fmt.Sprintf(`["buyer:v%d"]`, i))
				case 7:
					ask("GET", []string{"sales", "sales/storm", "holds", "doctor", "sales/storm/tally"}[i%5], "")
				}
			})
		})
		status, text, err := a.edges[0].Admin("POST", "sales/storm/open", "")
		a.must(err)
		if status != 200 {
			a.must(fmt.Errorf("open: %d %s", status, text))
		}
		a.settle()
		a.sellsAgain("7")
		a.settle()
		a.count("commands that failed", int(failed.Load()))
		s, err := rig.Collect(a.redis.Addr(), "storm")
		a.must(err)
		replayed, _ := auditor.Replay("storm", s.Movements)
		if have, least := replayed.Cells["7"].Stock, 50+added.Load(); have < least {
			a.violated(auditor.Balance, "operators were told that %d units are loaded, the movements say %d", least, have)
		}
	},
}

var foreignKeys = scenario{
	name: "foreign-keys", short: true,
	about: "An edge with another signing key joins, clients send tokens and Stockgate headers of their own: no order reaches the shop without a token of the edges that sell",
	run: func(a *attack) {
		a.stage(1, rig.Site{})
		a.sell("keys", one(100), "")
		stranger, err := rig.NewEdge(a.caddies[0], "stranger", a.dir, filepath.Join(a.dir, "elsewhere"))
		a.must(err)
		a.must(stranger.Run(a.site))
		a.cleanup = append(a.cleanup, stranger.Terminate)
		foreign := &crowd.Door{Name: "stranger", Addr: stranger.Addr()}
		first := a.crowd.Buy(a.doors[0], crowd.Wish{Buyer: "first", Lines: crowd.Units("7", 1)})
		forged := strings.Repeat("eyJhbGciOiJub25lIn0", 1) + ".e30."
		crowd.Rush(a.size(60, 1000), 6, nil, func(i int) {
			w := crowd.Wish{Buyer: fmt.Sprintf("b%d", i), Lines: crowd.Units("7", 1)}
			switch i % 4 {
			case 1:
				w.Header = []string{"Stockgate-Token: " + forged}
			case 2:
				w.Header = []string{"stockgate-token: " + forged, "Stockgate-Reservation: " + first.Reservation, "Stockgate-Replayed: true"}
			case 3:
				w.Header = []string{"Connection: stockgate-token, close"}
			}
			a.crowd.Buy([]*crowd.Door{a.doors[0], foreign}[i/4%2], w)
		})
		for _, t := range a.h.Attempts {
			if t.Edge == "stranger" && t.Heard > 0 && t.Reason == "" {
				a.violated(auditor.ValidToken, "an edge with another signing key sold: %v", t)
				break
			}
		}
		a.settle()
	},
}

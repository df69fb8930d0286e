package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/stockgate/stockgate/internal/test/auditor"
	"github.com/stockgate/stockgate/internal/test/auditor/crowd"
	"github.com/stockgate/stockgate/internal/test/auditor/rig"
)

var ownLedgers = scenario{
	name: "own-ledgers", short: true,
	about: "Two edges keep ledgers of their own, one of them is away while all is sold, and Redis is emptied: a rebuild from its ledger is refused, one from the other ledger brings every order back, and nothing is sold again",
	run: func(a *attack) {
		const units = 10
		site := rig.Site{App: "ledger sqlite " + filepath.Join(a.dir, "first.db")}
		a.stage(1, site)
		other := a.site
		other.App = "ledger sqlite " + filepath.Join(a.dir, "second.db")
		behind := a.startEdge(other)
		a.sell("own", one(units), "")
		a.untilLedger(behind, "own")
		behind.Kill()
		crowd.Rush(2*units, 4, nil, func(i int) {
			a.crowd.Buy(a.doors[0], crowd.Wish{Buyer: fmt.Sprintf("b%d", i), Lines: crowd.Units("7", 1)})
		})
		a.settle()
		a.untilLedger(a.edges[0], "own")
		before, err := rig.Collect(a.redis.Addr(), "own") // the journal of the rebuilt sale has none of it
		a.must(err)
		a.h.Shards, a.sales = append(a.h.Shards, before), nil
		last, err := a.redis.Do("HGET", rig.Key("own", "meta"), "seq")
		a.must(err)
		_, err = a.redis.Do("FLUSHALL")
		a.must(err)
		a.must(behind.Run(other))
		a.until("the other edge has told what its ledger has", func() bool {
			mark, err := a.redis.Do("HGET", "stockgate:ledgers", "own") // epoch, number, edge
			return err == nil && strings.Contains(fmt.Sprint(mark), fmt.Sprintf(" %v ", last))
		})
		for _, more := range [][]string{{"--dry-run"}, {"--open"}} {
			out, status, err := behind.CLI("", append([]string{"rebuild", "own", "--from", "ledger"}, more...)...)
			a.must(err)
			if status == 0 || !strings.Contains(out, "--force") {
				a.violated(auditor.NoOversell, "a rebuild %v from a ledger that lacks what was sold is not refused (%d): %s", more, status, strings.TrimSpace(out))
			}
		}
		a.command(a.edges[0], "", "rebuild", "own", "--from", "ledger", "--open")
		for i, e := range a.edges {
			a.untilState(e, "own", "7", "sold_out")
			for n := range units {
				a.crowd.Buy(a.doors[i], crowd.Wish{Buyer: fmt.Sprintf("late%d-%d", i, n), Lines: crowd.Units("7", 1)})
			}
		}
	},
}

// untilLedger waits until an edge's ledger has all of a sale's journal. Metrics are some seconds old.
func (a *attack) untilLedger(e *rig.Edge, sale string) {
	a.until("the ledger of "+e.Name+" has everything", func() bool {
		var status struct {
			Last   int64
			Ledger *struct{ Has int64 }
		}
		code, text, err := e.Admin("GET", "sales/"+sale+"/journal", "")
		return err == nil && code == http.StatusOK && json.Unmarshal([]byte(text), &status) == nil && status.Ledger != nil && status.Ledger.Has == status.Last
	})
}

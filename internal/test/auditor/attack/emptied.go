package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
	"github.com/stockgate/stockgate/internal/test/auditor/crowd"
	"github.com/stockgate/stockgate/internal/test/auditor/rig"
)

var emptied = scenario{
	name: "emptied-redis", short: true,
	about: "Redis is emptied under a gate that passes other items: no listed item reaches the shop without a token, buyers hear unavailable, doctor and metrics tell of it, and the file is not loaded again without being asked twice",
	run: func(a *attack) {
		a.startRedis(false, rig.Durable...)
		site := rig.Site{Redis: rig.RedisAt(a.redis.Addr(), "2s"), Gate: "other_items pass", App: "ledger sqlite " + filepath.Join(a.dir, "ledger.db")}
		a.stage(1, site)
		a.shop.Others = map[string]bool{"other": true}
		a.sell("emptied", one(20), "")
		crowd.Rush(10, 4, nil, func(i int) {
			a.crowd.Buy(a.doors[0], crowd.Wish{Buyer: fmt.Sprintf("b%d", i), Lines: crowd.Units("7", 1)})
		})
		a.crowd.Buy(a.doors[0], crowd.Wish{Buyer: "o", Lines: crowd.Units("other", 1)})
		a.settle()
		a.untilLedger(a.edges[0], "emptied")
		before, err := rig.Collect(a.redis.Addr(), "emptied") // after it there is nothing left to judge
		a.must(err)
		a.h.Shards, a.sales = append(a.h.Shards, before), nil

		errors := func() int { return strings.Count(a.edges[0].Log.String(), `"level":"error"`) }
		quiet := errors()
		if a.chance(2, "how") == 0 {
			_, err := a.redis.Do("FLUSHALL")
			a.must(err)
		} else { // a new volume
			a.redis.Kill()
			a.must(os.RemoveAll(filepath.Join(a.redis.Dir(), "appendonlydir")))
			a.must(a.redis.Run())
		}
		a.soon("buyers at the running edge hear unavailable", func() (bool, string) {
			r := a.crowd.Buy(a.doors[0], crowd.Wish{Buyer: "after", Lines: crowd.Units("7", 1)})
			return r.Reason == "unavailable", fmt.Sprint(r)
		})
		// a machine that has the signing key, and has never seen what is on sale
		pem, err := os.ReadFile(filepath.Join(a.dir, "storage", "stockgate", "token.ed25519.pem"))
		a.must(err)
		a.storage = filepath.Join(a.dir, "new-machine")
		a.must(os.MkdirAll(filepath.Join(a.storage, "stockgate"), 0o700))
		a.must(os.WriteFile(filepath.Join(a.storage, "stockgate", "token.ed25519.pem"), pem, 0o600))
		a.startEdge(site)
		for i := range 10 {
			a.crowd.Buy(a.doors[1], crowd.Wish{Buyer: fmt.Sprintf("new%d", i), Lines: crowd.Units("7", 1)})
		}
		a.soon("doctor reports an error", func() (bool, string) {
			out, status, err := a.edges[0].CLI("", "doctor")
			a.must(err)
			return status == 1, fmt.Sprintf("exit status %d: %s", status, out)
		})
		a.soon("the log of the edge has an error", func() (bool, string) {
			return errors() > quiet, "no line of that level"
		})
		if out, status, err := a.edges[0].CLI(file("emptied", one(20), ""), "sale", "apply", "-"); err == nil && status == 0 {
			a.violated(auditor.NoOversell, "the file of a sale that the ledger remembers was loaded again without being asked twice: %s", strings.TrimSpace(out))
		}
	},
}

// soon must come true while it is asked for half a minute; else it is a broken promise.
func (a *attack) soon(what string, true func() (bool, string)) {
	last := ""
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		done, said := true()
		if done {
			return
		}
		last = said
	}
	a.violated(auditor.FailClosed, "it should be that %s; it is: %s", what, strings.TrimSpace(last))
}

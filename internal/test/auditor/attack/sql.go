package main

import (
	"fmt"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
	"github.com/stockgate/stockgate/internal/test/auditor/crowd"
	"github.com/stockgate/stockgate/internal/test/auditor/rig"
)

// withLedger is a site whose movements go to a PostgreSQL.
func (a *attack) withLedger() (*rig.Postgres, rig.Site) {
	p, err := rig.StartPostgres()
	if p != nil {
		a.cleanup = append(a.cleanup, p.Remove)
	}
	a.must(err)
	return p, rig.Site{App: fmt.Sprintf("ledger postgres %q", p.DSN())}
}

// caughtUp waits until the ledger has every movement of a sale's journal, and returns them.
func (a *attack) caughtUp(p *rig.Postgres, sale string) (ledger []auditor.Movement, s *auditor.Shard) {
	ledger, s, err := p.CaughtUp(a.redis, sale)
	a.must(err)
	return ledger, s
}

var redisAndSQL = scenario{
	name: "redis-and-sql", short: true,
	about: "Redis, PostgreSQL and an edge are killed with -9 in turns under buyers: journal, ledger, cells, orders and answers agree",
	run: func(a *attack) {
		p, site := a.withLedger()
		a.startRedis(false, rig.Durable...)
		site.Redis = rig.RedisAt(a.redis.Addr(), "1s")
		a.stage(2, site)
		a.h.EdgesDie, a.h.Max = true, 2
		a.sell("sql", one(int64(a.size(150, 1500))), perBuyer)
		a.crowdWhile("sql", 10, func() {
			for i := range a.size(4, 24) {
				time.Sleep(time.Duration(300+a.dice.IntN(700)) * time.Millisecond)
				down := time.Duration(a.dice.IntN(1500)) * time.Millisecond
				switch i % 4 {
				case 0, 2:
					a.redis.Kill()
					time.Sleep(down)
					a.must(a.redis.Run())
				case 1:
					p.Kill()
					time.Sleep(down)
					a.must(p.Run())
				case 3:
					e := a.edges[i/4%2]
					e.Kill()
					a.must(e.Run(a.site))
				}
			}
		})
		a.settle()
		a.sellsAgain("7")
		a.settle()
		a.found = append(a.found, auditor.JudgeLedger(a.caughtUp(p, "sql"))...)
	},
}

var totalLoss = scenario{
	name: "rebuild-after-total-loss", short: true,
	about: "Redis loses everything, the sale is rebuilt from the ledger and opened: winners hear of their orders, nothing is sold twice, the ledger's movements of both lives add up to the cells",
	run: func(a *attack) {
		p, site := a.withLedger()
		a.stage(2, site)
		a.h.Max = 2
		n := a.size(60, 800)
		a.sell("loss", one(int64(n)), perBuyer)
		wish := func(i int) crowd.Wish {
			return crowd.Wish{Buyer: fmt.Sprintf("b%d", i), Key: fmt.Sprintf("k%d", i), Lines: crowd.Units("7", int64(1+i%2))}
		}
		for range a.size(1, 4) {
			crowd.Rush(n/3, 6, nil, func(i int) { a.crowd.Buy(a.doors[i%2], wish(i)) })
			a.settle()
			a.caughtUp(p, "loss")
			_, err := a.redis.Do("FLUSHALL")
			a.must(err)
			a.until("the sale is rebuilt", func() bool {
				_, status, err := a.edges[0].CLI("", "rebuild", "loss", "--from", "ledger")
				return err == nil && status == 0
			})
			a.command(a.edges[0], "", "sale", "open", "loss")
			for _, e := range a.edges {
				a.untilState(e, "loss", "7", "on_sale", "low", "sold_out", "all_held")
			}
			a.sellsAgain("7")
			crowd.Rush(n, 6, nil, func(i int) { a.crowd.Buy(a.doors[(i+1)%2], wish(i)) })
			a.settle()
		}
		ledger, s := a.caughtUp(p, "loss")
		s.Movements = ledger // of all lives
		a.count("movements", len(ledger))
		a.h.Shards, a.sales = append(a.h.Shards, s), nil
	},
}

package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/stockgate/stockgate/internal/test/auditor"
	"github.com/stockgate/stockgate/internal/test/auditor/crowd"
	"github.com/stockgate/stockgate/internal/test/auditor/rig"
	"github.com/stockgate/stockgate/internal/test/auditor/shop"
)

// stage starts a Redis that keeps what it has acknowledged, a shop and some edges.
func (a *attack) stage(edges int, site rig.Site) {
	a.startShop()
	if a.redis == nil {
		a.startRedis(false, rig.Durable...)
	}
	if site.Redis == "" && site.Store == "" {
		site.Redis = rig.RedisAt(a.redis.Addr(), "5s")
	}
	site.Shop = a.shop.Addr()
	a.site = site
	for range edges {
		a.startEdge(site)
	}
}

func (a *attack) startShop() {
	if a.shop != nil {
		return
	}
	s, err := shop.Start(a.h)
	a.must(err)
	a.cleanup = append(a.cleanup, s.Close)
	a.shop = s
}

// startRedis runs the Redis of the scenario.
func (a *attack) startRedis(fakeClock bool, settings ...string) {
	a.redis = a.newRedis(fakeClock, settings...)
}

func (a *attack) newRedis(fakeClock bool, settings ...string) *rig.Redis {
	r, err := rig.StartRedis(a.dir, settings...)
	a.must(err)
	if fakeClock {
		a.must(r.FakeClock())
	}
	a.must(r.Run())
	a.cleanup = append(a.cleanup, func() { r.Kill() })
	return r
}

// startEdge runs one more edge; all of them share the storage, and so the signing key.
func (a *attack) startEdge(site rig.Site) *rig.Edge {
	e, err := rig.NewEdge(a.caddies[len(a.edges)%len(a.caddies)], fmt.Sprintf("edge%d", len(a.edges)+1), a.dir, cmp.Or(a.storage, filepath.Join(a.dir, "storage")))
	a.must(err)
	site.Shop = a.shop.Addr()
	a.must(e.Run(site))
	a.cleanup = append(a.cleanup, e.Terminate)
	a.edges = append(a.edges, e)
	a.doors = append(a.doors, &crowd.Door{Name: e.Name, Addr: e.Addr()})
	a.shop.Trust(e.URL())
	return e
}

// stock is what a sale loads, in the order of the file.
type stock []auditor.Units

// one is a sale of one item.
func one(units int64) stock { return stock{{Cell: "7", Qty: units}} }

// file is a sale's file. More are lines of YAML such as limits.
func file(sale string, s stock, more string) string {
	return window(sale, s, "2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z", more)
}

func window(sale string, s stock, from, to, more string) string {
	return rig.SaleFile(sale, s, from, to, more)
}

// sell loads a sale as an operator does, opens it, and waits until all edges know it.
func (a *attack) sell(sale string, s stock, more string) {
	a.sellFile(sale, s, file(sale, s, more))
}

func (a *attack) sellFile(sale string, s stock, text string) {
	for _, u := range s {
		a.h.Load(sale, u.Cell, u.Qty)
	}
	a.sales = append(a.sales, sale)
	a.must(a.edges[0].Insist(text, "sale", "apply", "-"))
	a.must(a.edges[0].Insist("", "sale", "open", sale))
	for _, e := range a.edges {
		a.untilState(e, sale, s[0].Cell, "on_sale", "low", "sold_out")
	}
}

// command runs `caddy stockgate …` and must succeed.
func (a *attack) command(e *rig.Edge, stdin string, args ...string) string {
	out, err := e.Command(stdin, args...)
	a.must(err)
	return out
}

// untilState waits until an edge says so of an item.
func (a *attack) untilState(e *rig.Edge, sale, sku string, states ...string) {
	last := ""
	err := rig.Until("edge "+e.Name+" says "+strings.Join(states, " or "), func() bool {
		last = e.ItemState(sale, sku)
		for _, s := range states {
			if s == last {
				return true
			}
		}
		return false
	})
	if err != nil {
		a.must(fmt.Errorf("%w; it says %q", err, last))
	}
}

// settle waits until every hold has ended and each edge has told what it had to tell.
func (a *attack) settle() {
	for _, sale := range a.sales {
		a.until("every hold of "+sale+" ends", func() bool {
			n, err := a.home(sale).Do("ZCARD", rig.Key(sale, "deadlines"))
			return err == nil && n == int64(0)
		})
	}
	for _, e := range a.edges {
		a.until("edge "+e.Name+" has told Redis every outcome", e.Told)
	}
}

// sellsAgain waits until a new buyer hears something else than that the gate is closed.
func (a *attack) sellsAgain(sku string) {
	for i, d := range a.doors {
		if !a.edges[i].Alive() {
			continue
		}
		d.Forget()
		n := 0
		a.until("edge "+d.Name+" sells again", func() bool {
			n++
			heard := a.crowd.Buy(d, crowd.Wish{Buyer: fmt.Sprintf("late-%s-%d", d.Name, n), Lines: crowd.Units(sku, 1)})
			return heard.Heard > 0 && heard.Reason != "unavailable" && heard.Reason != "busy" && heard.Status < 500
		})
	}
}

package main

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/stockgate/stockgate/internal/test/auditor"
	"github.com/stockgate/stockgate/internal/test/auditor/crowd"
	"github.com/stockgate/stockgate/internal/test/auditor/rig"
	"github.com/stockgate/stockgate/internal/test/auditor/shop"
)

var failover = scenario{
	name: "failover", short: true,
	about: "With replica_acks 1 the replica hears nothing any more, then it is promoted: what the shop, buyers and operators were told before is there (confirm, extend, release, return, pause, stock add, a sale file, orders); without a replica the edge says that it is not ready",
	run: func(a *attack) {
		r := a.startReplicated()
		site := a.backend("10m")
		site.Redis = fmt.Sprintf("%s {\n\t\ttimeout 5s\n\t\treplica_acks 1 500ms\n\t}", r.door.Addr())
		a.stage(1, site)
		a.shop.Later, a.h.ByOperators = true, true
		a.sell("failover", one(40), "")
		ids := make([]string, 6)
		for i := range ids {
			ids[i] = a.reserve(fmt.Sprintf("b%d", i), "7")
		}
		a.until("the replica acknowledges a confirm in time", func() bool {
			status, _ := a.says(ids[0], "confirm", "{}")
			return status == 200
		})
		a.shop.Take(ids[0])
		promises := a.underDeafReplica(r.replication, ids)

		r.promote(a)
		r.lead(a)
		shard, err := rig.Collect(r.replica.Addr(), "failover")
		a.must(err)
		meta, err := r.replica.Do("HGET", rig.Key("failover", "meta"), "status")
		a.must(err)
		for _, p := range promises {
			if !p.kept(shard, fmt.Sprint(meta)) {
				a.violated(auditor.AtMostOnce, "%s was answered 200, and it is gone after the failover", p.what)
			}
		}
		a.soon("the edge says that it is not ready: nothing acknowledges", func() (bool, string) {
			a.crowd.Buy(a.doors[0], crowd.Wish{Buyer: "late", Lines: crowd.Units("7", 1)})
			text, err := a.edges[0].Metrics()
			return err == nil && strings.Contains(text, "\nstockgate_ready") && rig.Metric(text, "stockgate_ready") == 0, "stockgate_ready is 1"
		})
	},
}

// promise is something that was answered 200, and how to see that it was kept.
type promise struct {
	what string
	kept func(s *auditor.Shard, status string) bool
}

// replicated is a Redis with a replica. Edges reach it through the door, which leads to the
// replica after that is promoted; replication is the link between the two.
type replicated struct {
	primary, replica  *rig.Redis
	door, replication *rig.Proxy
}

// startReplicated starts both, and waits until the replica follows.
func (a *attack) startReplicated() *replicated {
	a.startRedis(false)
	r := &replicated{primary: a.redis}
	var err error
	r.replication, err = rig.NewProxy(r.primary.Addr())
	a.must(err)
	r.door, err = rig.NewProxy(r.primary.Addr())
	a.must(err)
	a.cleanup = append(a.cleanup, r.replication.Close, r.door.Close)
	r.replica = a.newReplica(r.replication.Addr())
	return r
}

// newReplica starts a Redis that replicates the one at an address, and waits until it follows.
func (a *attack) newReplica(of string) *rig.Redis {
	replica := a.newRedis(false, "repl-diskless-sync-delay 0")
	a.must(replica.Follow(of))
	a.until("the replica follows", replica.Follows)
	return replica
}

// promote kills the primary and makes the replica the master.
func (r *replicated) promote(a *attack) {
	r.primary.Kill()
	r.replication.Cut()
	a.must(r.replica.Promote())
}

// lead brings the edges to the replica.
func (r *replicated) lead(a *attack) {
	a.redis = r.replica
	r.door.Lead(r.replica.Addr())
}

// underDeafReplica does every operation while the replica gets nothing, and returns those that
// were answered as done.
func (a *attack) underDeafReplica(replication *rig.Proxy, ids []string) (told []promise) {
	replication.Stall()
	e := a.edges[0]
	add := func(what string, status int, kept func(s *auditor.Shard, status string) bool) {
		a.count(fmt.Sprintf("%s: %d", what, status), 1)
		if status == 200 || status == 201 {
			told = append(told, promise{what, kept})
		}
	}
	moved := func(kind, id string) func(*auditor.Shard, string) bool {
		return func(s *auditor.Shard, _ string) bool {
			for _, m := range s.Movements {
				if m.Kind == kind && m.ID == id {
					return true
				}
			}
			return false
		}
	}
	status, _ := a.says(ids[1], "confirm", "{}")
	if status == 200 {
		a.shop.Take(ids[1])
	}
	add("confirm", status, moved("confirmed", ids[1]))
	status, _ = a.says(ids[2], "extend", `{"hold_for":"20m"}`)
	add("extend", status, moved("extended", ids[2]))
	status, _ = a.says(ids[3], "release", "{}")
	add("release", status, moved("released", ids[3]))
	status, _ = a.says(ids[0], "return", `{"id":"return-1"}`)
	add("return", status, moved("returned", ids[0]))
	status, _, err := e.Admin("POST", "sales/failover/items/7/stock", `{"id":"more","delta":5}`)
	a.must(err)
	a.h.Load("failover", "7", 5)
	add("stock add", status, moved("adjusted", "more"))
	heard := a.crowd.Buy(a.doors[0], crowd.Wish{Buyer: "deaf", Lines: crowd.Units("7", 1)})
	add("reserve", heard.Status, moved("held", heard.Reservation))
	status, _, err = e.Admin("PUT", "sales/failover", file("failover", one(45), ""))
	a.must(err)
	a.h.Load("failover", "7", 5)
	add("sale apply", status, func(s *auditor.Shard, _ string) bool {
		n := 0
		for _, m := range s.Movements {
			if m.Kind == "applied" {
				n++
			}
		}
		return n == 2
	})
	status, _, err = e.Admin("POST", "sales/failover/pause", "")
	a.must(err)
	add("pause", status, func(_ *auditor.Shard, status string) bool { return status == "paused" })
	return told
}

var answersWithAcks = scenario{
	name: "failover-of-orders", short: true,
	about: "With replica_acks 1 and outcome response the replica goes deaf in the middle of orders and is promoted: no order that a buyer was told of is on sale again",
	run: func(a *attack) {
		r := a.startReplicated()
		a.stage(1, rig.Site{Redis: fmt.Sprintf("%s {\n\t\ttimeout 5s\n\t\treplica_acks 1 500ms\n\t}", r.door.Addr())})
		n := a.size(60, 400)
		a.sell("orders", one(int64(n)), "")
		var orders atomic.Int64
		a.shop.Conduct = func(*auditor.Order) shop.Conduct {
			if orders.Add(1) == int64(n/3) {
				r.replication.Stall()
			}
			return shop.Sells
		}
		crowd.Rush(n, 6, nil, func(i int) {
			a.crowd.Buy(a.doors[0], crowd.Wish{Buyer: fmt.Sprintf("b%d", i), Lines: crowd.Units("7", 1)})
		})
		r.promote(a)
		// with a replica of its own again, or nothing would sell
		a.newReplica(r.replica.Addr())
		r.lead(a)
		a.sellsAgain("7")
		a.settle()
	},
}

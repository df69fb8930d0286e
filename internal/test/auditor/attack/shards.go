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

// twoShards is a cluster of two: one has the slot of the named sale alone, the other all
// else, and is reached over a link.
func (a *attack) twoShards(sale string) (most, other *rig.Redis, link *rig.Proxy, slot int64) {
	settings := append([]string{rig.Node, "cluster-require-full-coverage no", "cluster-node-timeout 60000", "cluster-allow-replica-migration no"}, rig.Durable...)
	link, err := rig.NewProxy("")
	a.must(err)
	a.cleanup = append(a.cleanup, link.Close)
	_, port, _ := strings.Cut(link.Addr(), ":")
	other = a.newRedis(false, settings...)
	most = a.newRedis(false, append(settings, "cluster-announce-ip 127.0.0.1", "cluster-announce-port "+port)...)
	link.Lead(most.Addr())
	do := func(r *rig.Redis, args ...string) any {
		answer, err := r.Do(args...)
		a.must(err)
		return answer
	}
	slot = do(most, "CLUSTER", "KEYSLOT", rig.Key(sale, "meta")).(int64)
	do(other, "CLUSTER", "SET-CONFIG-EPOCH", "2")
	do(most, "CLUSTER", "SET-CONFIG-EPOCH", "1")
	at := strconv.FormatInt(slot, 10)
	do(other, "CLUSTER", "ADDSLOTS", at)
	do(most, "CLUSTER", "ADDSLOTSRANGE", "0", strconv.FormatInt(slot-1, 10), strconv.FormatInt(slot+1, 10), "16383")
	do(most, "CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(other.Port), strconv.Itoa(other.Bus))
	for _, r := range []*rig.Redis{most, other} {
		a.until("the cluster is whole", func() bool {
			slots, err := r.Do("CLUSTER", "SLOTS")
			list, _ := slots.([]any)
			info, failed := r.Do("CLUSTER", "INFO")
			return err == nil && failed == nil && len(list) == 3 && strings.Contains(fmt.Sprint(info), "cluster_state:ok")
		})
	}
	a.redis = most
	return most, other, link, slot
}

func clusterAt(r *rig.Redis) string {
	return fmt.Sprintf("{\n\t\taddress %s\n\t\tcluster\n\t\tat_risk any\n\t\ttimeout 500ms\n\t}", r.Addr())
}

var deadShard = scenario{
	name: "dead-shard", short: true,
	about: "In a cluster the shard of one sale stands still under buyers of two sales, and the link to the other is cut for a moment: every outcome of the other sale is told before its deadline",
	run: func(a *attack) {
		most, other, link, _ := a.twoShards("dead")
		a.at["dead"] = other
		a.stage(1, rig.Site{Redis: clusterAt(most), Outcome: "hold_for 10s\n\t\tforward_timeout 5s"})
		a.shop.Conduct = func(*auditor.Order) shop.Conduct { return shop.Slow(300*time.Millisecond, shop.Sells) }
		a.sell("healthy", one(100_000), "")
		a.sell("dead", stock{{Cell: "8", Qty: 100_000}}, "")
		rig.During(func(stop <-chan struct{}) {
			crowd.Rush(0, 80, stop, func(i int) {
				sku := []string{"7", "8"}[i%2]
				a.crowd.Buy(a.doors[0], crowd.Wish{Buyer: fmt.Sprintf("b%d", i), Lines: crowd.Units(sku, 1)})
				pause(20*time.Millisecond, stop)
			})
		}, func() {
			time.Sleep(time.Second)
			other.Stop()
			time.Sleep(1500 * time.Millisecond) // what the shop did with orders of the dead sale waits now
			link.Cut()
			time.Sleep(600 * time.Millisecond)
			link.Resume()
			time.Sleep(time.Duration(a.size(2, 20)) * time.Second)
		})
		a.until("the holds of the healthy sale end", func() bool { return a.held("healthy") == 0 })
		s, err := rig.Collect(most.Addr(), "healthy")
		a.must(err)
		a.inTime(s)
		other.Continue()
		a.settle()
	},
}

// inTime: no hold of a sale that is well ends by its deadline.
func (a *attack) inTime(s *auditor.Shard) {
	orders, began := map[string]*auditor.Order{}, map[string]int64{}
	for _, o := range a.h.Orders {
		orders[o.JTI] = o
	}
	v := auditor.Violation{Promise: auditor.OneState}
	late := 0
	for _, m := range s.Movements {
		switch {
		case m.Kind == "held":
			began[m.ID] = m.Time
		case m.Kind == "in_doubt" && m.Cause == "deadline":
			late++
			if late <= 3 {
				v.Evidence = append(v.Evidence, fmt.Sprintf("%v, held for %d ms; at the shop: %v", m, m.Time-began[m.ID], orders[m.ID]))
			}
		}
	}
	if late > 0 {
		v.What = fmt.Sprintf("%d outcomes of a sale whose shard is well came after the deadline, because another sale's shard stands still", late)
		a.found = append(a.found, v)
	}
}

var cutLinks = scenario{
	name: "cut-links", short: true,
	about: "The edge's link to Redis is cut for 0.9 s again and again under many buyers: nothing is in doubt that the shop never saw",
	run: func(a *attack) {
		a.startRedis(false, rig.Durable...)
		link, err := rig.NewProxy(a.redis.Addr())
		a.must(err)
		a.cleanup = append(a.cleanup, link.Close)
		a.stage(1, rig.Site{Redis: rig.RedisAt(link.Addr(), "500ms"), Outcome: "hold_for 15s\n\t\tforward_timeout 3s"})
		a.sell("cuts", one(100_000), perBuyer)
		a.crowdWhile("cuts", a.size(50, 250), func() {
			for range a.size(5, 30) {
				time.Sleep(time.Duration(100+a.dice.IntN(400)) * time.Millisecond)
				link.Cut()
				time.Sleep(900 * time.Millisecond)
				link.Resume()
			}
		})
		a.settle()
		a.sellsAgain("7")
		a.settle()
		a.count("times that the backlog was full", strings.Count(a.edges[0].Log.String(), "backlog is full"))
	},
}

var slotMigration = scenario{
	name:  "slot-migration",
	about: "The slot of a sale is moved to another node of the cluster and back, key by key, under buyers: refusals meanwhile, every unit is somewhere afterwards",
	run: func(a *attack) {
		most, other, _, slot := a.twoShards("moving")
		a.at["moving"] = other
		a.stage(1, rig.Site{Redis: clusterAt(most)})
		a.h.Max = 2
		a.sell("moving", one(int64(a.size(200, 2000))), perBuyer)
		a.crowdWhile("moving", 10, func() {
			from, to := other, most
			for range 2 * a.size(1, 5) {
				time.Sleep(500 * time.Millisecond)
				a.must(rig.MigrateSlot(from, to, strconv.FormatInt(slot, 10), 20*time.Millisecond))
				a.at["moving"] = to
				from, to = to, from
			}
		})
		a.settle()
		a.sellsAgain("7")
		a.settle()
	},
}

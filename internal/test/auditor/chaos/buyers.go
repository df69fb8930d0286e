package chaos

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
	"github.com/stockgate/stockgate/internal/test/auditor/crowd"
	"github.com/stockgate/stockgate/internal/test/auditor/rig"
	"github.com/stockgate/stockgate/internal/test/auditor/shop"
)

// chance is a number from 0 to n-1 that depends on the seed and on what it is for, and on
// nothing else: goroutines may ask in any order.
func (r *Run) chance(n int, about ...any) int {
	sum := fnv.New64a()
	fmt.Fprint(sum, r.seed, r.Name, about)
	return int(rand.New(rand.NewPCG(r.seed, sum.Sum64())).Uint64N(uint64(n)))
}

// conduct: the shop is slow now and then, and refuses one order of twenty.
func (r *Run) conduct(o *auditor.Order) shop.Conduct {
	c := shop.Sells
	if n := r.chance(20, "refuses", o.Attempt); n == 0 || r.waits && n < 6 {
		c = shop.Refuses
	}
	return shop.Slow(time.Duration(r.chance(30, "slow", o.Attempt))*time.Millisecond, c)
}

// together is how many buyers ask at the same time.
const together = 8

// allBuyers is at all doors until stop.
func (r *Run) allBuyers(stop <-chan struct{}) {
	if !r.waits {
		r.buyers(stop)
		return
	}
	var both sync.WaitGroup
	both.Go(func() { r.buyers(stop) })
	both.Go(func() { r.people(stop) })
	both.Wait()
}

// buyers buy at all doors until stop: one or two units, of either sale, half of them with a
// key that is asked again at a door.
func (r *Run) buyers(stop <-chan struct{}) {
	crowd.Rush(0, together, stop, func(i int) {
		sale := r.sales[r.chance(len(r.sales), "sale", i/2)] // a buyer stays with one sale: its limit is theirs
		w := crowd.Wish{Buyer: fmt.Sprintf("b%d", i/2), Lines: crowd.Units(items(sale)[r.chance(3, "item", i)/2], int64(1+r.chance(2, "qty", i)))}
		if i%2 == 0 {
			w.Key = fmt.Sprintf("k%d", i)
		}
		r.follow(i, r.buy(r.chance(len(r.doors), "door", i), r.wish(i, w)))
		if w.Key != "" {
			r.follow(i, r.buy(r.chance(len(r.doors), "again", i), w))
		}
		if i%50 == 0 {
			r.crowd.Browse(r.doors[i%len(r.doors)])
		}
		select { // the machine belongs to others too
		case <-time.After(time.Duration(10+r.chance(30, "pause", i)) * time.Millisecond):
		case <-stop:
		}
	})
}

func (r *Run) buy(door int, w crowd.Wish) *auditor.Attempt {
	a := r.crowd.Buy(r.doors[door], w)
	if sells(a) {
		r.good.add(door, time.Now())
	}
	return a
}

// sells reports whether an answer is that of an edge that sells.
func sells(a *auditor.Attempt) bool {
	return a.Heard > 0 && a.Reason != "unavailable" && a.Reason != "busy" && a.Status < 500
}

// goods are the moments at which a door sold.
type goods struct {
	mu sync.Mutex
	at [edges][]time.Time
}

func (g *goods) add(door int, at time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.at[door] = append(g.at[door], at)
}

// after is how long after a moment every door has sold again.
func (g *goods) after(moment time.Time) (longest time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, at := range g.at {
		i := sort.Search(len(at), func(i int) bool { return at[i].After(moment) })
		if i < len(at) {
			longest = max(longest, at[i].Sub(moment))
		}
	}
	return longest
}

// sellsAgain waits until every edge sells both sales to a new buyer.
func (r *Run) sellsAgain() {
	for i, d := range r.doors {
		for _, sale := range r.sales {
			n := 0
			r.until("edge "+d.Name+" sells "+sale+" again", func() bool {
				if n++; n%triesOfOperator == 0 && r.Class == AtRisk {
					r.operate(r.edges[i], sale)
				}
				a := r.buy(i, crowd.Wish{Buyer: fmt.Sprintf("late-%s-%s-%d", d.Name, sale, n), Lines: crowd.Units(items(sale)[0], 1)})
				return sells(a)
			})
		}
	}
}

// triesOfOperator is after how many buyers without success an operator looks, about every five seconds.
const triesOfOperator = 25

// operate does what docs/failover.md tells an operator to do if a sale waits for a decision: a store of class (c) went back
// to a history that the edges do not know, and no server has theirs any more; or the edges have read a sale file in the
// journal that no operator was told is kept, and that the new primary lacks.
func (r *Run) operate(e *rig.Edge, sale string) {
	said, _, err := e.CLI("", "doctor")
	r.must(err)
	waits := strings.Contains(said, "which cannot be applied again") || r.Class == AtRisk && strings.Contains(said, "other movements than the edges know")
	if advice := "sale unfence " + sale; waits && strings.Contains(said, advice) {
		out, _, err := e.CLI("", "sale", "unfence", sale)
		r.must(err)
		r.note("an operator ran %s: %s", advice, strings.TrimSpace(out))
	}
}

// askAgain repeats the keys of buyers who have won, at every door.
func (r *Run) askAgain() {
	const most = 100
	var won []*auditor.Attempt
	for _, a := range r.h.Attempts {
		if a.Won() && a.Key != "" && !a.Replayed {
			won = append(won, a)
		}
	}
	n := min(most, len(won))
	crowd.Rush(n*len(r.doors), together, nil, func(i int) {
		a := won[i/len(r.doors)*len(won)/n]
		r.crowd.Buy(r.doors[i%len(r.doors)], crowd.Wish{Buyer: a.Buyer, Key: a.Key, Lines: a.Lines})
	})
}

// drain asks for the scarce items until nothing is left of them: a unit that is sold twice
// must show.
func (r *Run) drain() {
	crowd.Rush(len(r.sales)*2*scarceStock, together, nil, func(i int) {
		sale := r.sales[i%len(r.sales)]
		r.crowd.Buy(r.doors[i/2%len(r.doors)], crowd.Wish{Buyer: fmt.Sprintf("drain%d", i), Lines: crowd.Units(items(sale)[1], 1)})
	})
}

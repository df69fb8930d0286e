//go:build shops

package shoptest_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// An end is how a buyer's visit ended, as the buyer was told.
type end string

const (
	ordered end = "ordered"
	soldOut end = "told that it is sold out"
)

// visit is one buyer's way through a shop.
type visit struct {
	End  end
	At   time.Duration // when it ended, after the crowd came
	Paid time.Duration // how long the request that placed the order took; 0: none did
}

// crowd lets buyers come at once, each through the next of the bases, and returns how each of
// them ended.
func crowd(ctx context.Context, buyers int, bases []string, shop func(ctx context.Context, b *browser, n int) end) crowdReport {
	visits := make([]visit, buyers)
	begin := make(chan struct{})
	var came time.Time
	var all sync.WaitGroup
	for i := range visits {
		all.Go(func() {
			b := newBrowser(bases[i%len(bases)])
			defer b.close()
			<-begin
			visits[i].End = shop(ctx, b, i)
			visits[i].At, visits[i].Paid = time.Since(came), b.paid
		})
	}
	came = time.Now()
	close(begin)
	all.Wait()
	return crowdReport{visits}
}

// crowdReport is what a crowd saw.
type crowdReport struct{ visits []visit }

func (r crowdReport) ends() map[end]int {
	ends := map[end]int{}
	for _, v := range r.visits {
		ends[v.End]++
	}
	return ends
}

// String has one line for each number that docs/shops.md says.
func (r crowdReport) String() string {
	var orders, ends, paid []time.Duration
	for _, v := range r.visits {
		ends = append(ends, v.At)
		if v.End == ordered {
			orders = append(orders, v.At)
			paid = append(paid, v.Paid)
		}
	}
	var s strings.Builder
	told := r.ends()
	for _, e := range slices.Sorted(maps.Keys(told)) {
		fmt.Fprintf(&s, "%d %s\n", told[e], e)
	}
	fmt.Fprintf(&s, "visits: p50 %v, p99 %v, last %v\n", quantile(ends, .5), quantile(ends, .99), quantile(ends, 1))
	fmt.Fprintf(&s, "orders: first %v, last %v; the request that places one: p50 %v, p99 %v\n",
		quantile(orders, 0), quantile(orders, 1), quantile(paid, .5), quantile(paid, .99))
	return s.String()
}

func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[int(q*float64(len(all)-1))].Round(10 * time.Microsecond)
}

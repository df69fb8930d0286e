package dashboard

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
)

const (
	// tickEvery is how often the page gets news.
	tickEvery = 500 * time.Millisecond
	// staleAfter is when the stock of a sale that is read at every tick is no longer known.
	staleAfter = 2 * time.Second
	// idleEvery is how often a sale is read that neither sells nor is looked at.
	idleEvery = 5 * time.Second
	// readWithin bounds one look at a sale, and readSoon how long a tick waits for it.
	readWithin, readSoon = 5 * time.Second, 200 * time.Millisecond
	// maxSales bounds the sales whose stock is followed: those that sell come first.
	maxSales = 32
)

// collector reads what the dashboards of an edge runtime show, once for all viewers.
type collector struct {
	runtime *edgeruntime.Runtime
	counter *counter
	server  *serverReader
	cancel  context.CancelFunc
	done    sync.WaitGroup

	mu      sync.Mutex
	sales   map[string]*saleReader
	viewed  map[string]int // sale → viewers
	viewers int
	tick    chan struct{} // closed at the next tick
	frames  map[string][]byte
	order   []*edge.Listing // of the catalogue, at the last tick
}

// startCollector starts to collect. Destruct ends it.
func startCollector(d *edgeruntime.Runtime) *collector {
	ctx, cancel := context.WithCancel(context.Background())
	c := &collector{
		runtime: d, counter: newCounter(), cancel: cancel, sales: make(map[string]*saleReader), viewed: make(map[string]int),
		tick: make(chan struct{}), frames: make(map[string][]byte),
	}
	c.server = newServerReader(c)
	c.done.Go(func() { c.run(ctx) })
	c.done.Go(func() { c.server.run(ctx) })
	return c
}

// Destruct ends the collector and every stream that it feeds.
func (c *collector) Destruct() error {
	c.cancel()
	c.done.Wait()
	return nil
}

// run looks at everything until ctx ends.
func (c *collector) run(ctx context.Context) {
	ticks := time.NewTicker(tickEvery)
	defer ticks.Stop()
	for ctx.Err() == nil {
		c.look(ctx)
		select {
		case <-ticks.C:
		case <-ctx.Done():
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.tick)
	c.tick = nil
}

// look reads counters and sales, and wakes the streams. Sales are read at the same time, and
// one whose Redis does not answer delays no tick: the page then says how old its numbers are.
func (c *collector) look(ctx context.Context) {
	now := time.Now()
	c.counter.read(now)
	order := c.listings()
	followed := order[:min(len(order), maxSales)]
	var readers sync.WaitGroup
	for i, l := range followed {
		s := c.reader(l.Sale.ID)
		if !c.eager(l, i == 0) && now.Sub(s.lastTried()) < idleEvery || !s.busy.CompareAndSwap(false, true) {
			continue
		}
		readers.Add(1)
		c.done.Go(func() {
			defer readers.Done()
			defer s.busy.Store(false)
			ctx, cancel := context.WithTimeout(ctx, readWithin)
			defer cancel()
			s.look(ctx, c.runtime, l)
		})
	}
	read := make(chan struct{})
	c.done.Go(func() { readers.Wait(); close(read) })
	late := time.NewTimer(readSoon)
	defer late.Stop()
	select {
	case <-read:
	case <-late.C:
	case <-ctx.Done():
	}
	ready := c.runtime.Ready() == nil
	for i, l := range followed {
		known := idleEvery + tickEvery
		if c.eager(l, i == 0) {
			known = staleAfter
		}
		c.reader(l.Sale.ID).sample(time.Now(), known, c.counter, ready)
	}
	c.wake(order)
}

// wake forgets sales that are gone, and tells the streams that there is news.
func (c *collector) wake(order []*edge.Listing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.sales {
		if !slices.ContainsFunc(order, func(l *edge.Listing) bool { return l.Sale.ID == id }) {
			delete(c.sales, id)
		}
	}
	c.order = order
	clear(c.frames)
	close(c.tick)
	c.tick = make(chan struct{})
}

// listings returns the sales in the order of the page.
func (c *collector) listings() []*edge.Listing {
	var all []placed
	for l := range c.runtime.Catalogue().All {
		all = append(all, placed{l, rank(l, l.Now())})
	}
	slices.SortFunc(all, compare)
	listings := make([]*edge.Listing, len(all))
	for i := range all {
		listings[i] = all[i].Listing
	}
	return listings
}

// placed is a sale, and whether it sells, will sell or has ended.
type placed struct {
	*edge.Listing
	rank int
}

// compare orders sales: those that sell, then those that will, then those that ended last. The id decides
// between sales at the same time, so that the first one stays the first.
func compare(a, b placed) int {
	when := a.Sale.StartsAt.Compare(b.Sale.StartsAt)
	if a.rank == ended {
		when = b.Sale.EndsAt.Compare(a.Sale.EndsAt)
	}
	return cmp.Or(a.rank-b.rank, when, strings.Compare(a.Sale.ID, b.Sale.ID))
}

const (
	sells = iota
	willSell
	ended
)

func rank(l *edge.Listing, now time.Time) int {
	switch {
	case l.Status == sale.Closed || !now.Before(l.Sale.EndsAt):
		return ended
	case l.Status != sale.Draft && !now.Before(l.Sale.StartsAt):
		return sells
	}
	return willSell
}

// eager reports whether a sale is read at every tick: it sells, or there are viewers. Viewers who
// have chosen none see the first.
func (c *collector) eager(l *edge.Listing, first bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return rank(l, l.Now()) == sells || c.viewed[l.Sale.ID] > 0 || first && c.viewed[""] > 0
}

// reader returns the reader of a sale, and makes it.
func (c *collector) reader(id string) *saleReader {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.sales[id]
	if !ok {
		s = newSaleReader(id)
		c.sales[id] = s
	}
	return s
}

// find returns the sale that a viewer wants, or the one to look at first; nil: there is none.
func (c *collector) find(id string) (*saleReader, *edge.Listing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.order {
		if s := c.sales[l.Sale.ID]; s != nil && (id == "" || id == l.Sale.ID) {
			return s, l
		}
	}
	return nil, nil
}

// next returns a channel that is closed at the next tick; nil: there is none.
func (c *collector) next() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tick == nil {
		return nil
	}
	return c.tick
}

// watched reports whether there are viewers.
func (c *collector) watched() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.viewers > 0
}

// enter counts a viewer of a sale; false: there are too many.
func (c *collector) enter(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.viewers >= maxViewers {
		return false
	}
	c.viewers++
	c.viewed[id]++
	if c.viewers == 1 {
		c.server.hurry() // what is only read for viewers is old
	}
	return true
}

func (c *collector) leave(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.viewers--
	if c.viewed[id]--; c.viewed[id] == 0 {
		delete(c.viewed, id)
	}
}

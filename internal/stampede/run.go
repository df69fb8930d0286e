package stampede

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stockgate/stockgate/internal/loop"
	"github.com/stockgate/stockgate/internal/sale"
)

// run is one stampede.
type run struct {
	Crowd
	target    *url.URL
	transport *http.Transport
	bodies    [][]byte      // of the baskets
	who       []int32       // who places each order; nil: in turn
	roles     []role        // of the orders; nil: each is simply sent
	slots     chan struct{} // one for each connection of an open loop; nil: each worker has its own
	book      *notebook
	started   time.Time
	next      atomic.Int64 // the next order
	bought    atomic.Int64 // orders that succeeded, for ComeBack

	waiters sync.WaitGroup // persons on the waiting list
	asking  chan struct{}  // one for each connection on which they ask
	offers  atomic.Int64   // that they had, for Decline
}

// Run sends the crowd and waits until every buyer has an answer. When ctx ends, no further
// buyer begins, and those who wait are cut off. An error means that the crowd could not be
// set up; what its buyers experience is in the tally.
func (c Crowd) Run(ctx context.Context) (*Tally, error) {
	c, target, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &run{Crowd: c, target: target, book: newNotebook(&c)}
	for i := range c.Baskets {
		if c.Template != nil {
			break
		}
		body, err := c.Baskets[i].body()
		if err != nil {
			return nil, fmt.Errorf("basket %d: %w", i+1, err)
		}
		r.bodies = append(r.bodies, body)
	}
	if c.Zipf != 0 {
		dice := rand.NewZipf(rand.New(rand.NewPCG(c.Seed, c.Seed)), c.Zipf, 1, uint64(c.Buyers-1))
		r.who = make([]int32, c.Purchases)
		for i := range r.who {
			r.who[i] = int32(dice.Uint64())
		}
	}
	r.roles = c.Shares.roles(c.Purchases, c.Seed)
	r.transport = &http.Transport{
		DialContext:         c.Dial,
		MaxIdleConnsPerHost: 2 * c.Concurrency,
		DisableCompression:  true,
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: c.Insecure},
	}
	defer r.transport.CloseIdleConnections()

	r.started = time.Now()
	end := r.report()
	if c.open() {
		r.slots = make(chan struct{}, c.Concurrency)
		r.asking = r.slots
		r.dispatch(ctx)
	} else {
		r.asking = make(chan struct{}, max(1, c.Concurrency/4))
		var workers sync.WaitGroup
		for range c.Concurrency {
			workers.Go(func() { r.work(ctx) })
		}
		workers.Wait()
	}
	r.waiters.Wait()
	end()
	return r.book.tally(time.Since(r.started)), nil
}

// dispatch lets every order begin when it is due, and waits for their answers.
func (r *run) dispatch(ctx context.Context) {
	var orders sync.WaitGroup
	for n := range r.Purchases {
		due := r.started
		if r.Arrivals != nil {
			due = due.Add(r.Arrivals[n])
		} else {
			due = due.Add(time.Duration(float64(n) / r.Rate * float64(time.Second)))
		}
		if !loop.Rest(ctx, time.Until(due), nil) {
			break
		}
		orders.Go(func() { r.order(ctx, n, due) })
	}
	orders.Wait()
}

// work places order after order.
func (r *run) work(ctx context.Context) {
	for ctx.Err() == nil {
		n := int(r.next.Add(1) - 1)
		if n >= r.Purchases {
			return
		}
		r.order(ctx, n, time.Now())
	}
}

// order places one order as often as its buyer sends it.
func (r *run) order(ctx context.Context, n int, due time.Time) {
	role := plain
	if r.roles != nil {
		role = r.roles[n]
	}
	var others sync.WaitGroup
	switch {
	case role == bot:
		for range BotConnections - 1 {
			others.Go(func() { r.insist(ctx, n) })
		}
		r.insist(ctx, n)
	case role == leaver:
		r.attempt(ctx, r.buyer(n), n%len(r.Baskets), due, leaving)
	default:
		if role == double || r.DoubleClick > 0 && n%r.DoubleClick == 0 {
			others.Go(func() { r.purchase(ctx, n, due) })
		}
		r.purchase(ctx, n, due)
	}
	others.Wait()
}

// insist is a bot on one connection: it asks again at once, whatever it hears.
func (r *run) insist(ctx context.Context, n int) {
	for range BotRequests {
		if ctx.Err() != nil {
			return
		}
		r.attempt(ctx, r.buyer(n), n%len(r.Baskets), time.Now(), insisting)
	}
}

// buyer is who places an order.
func (r *run) buyer(n int) int {
	if r.who != nil {
		return int(r.who[n])
	}
	return n % r.Buyers
}

// purchase is one buyer with one order, until they have it or give up.
func (r *run) purchase(ctx context.Context, n int, begun time.Time) {
	buyer, basket, how := r.buyer(n), n%len(r.Baskets), waiting
	if r.open() {
		how = scheduled
	}
	for retries := 0; ; retries++ {
		a := r.attempt(ctx, buyer, basket, begun, how)
		switch {
		case a.Accepted && r.ComeBack > 0 && r.bought.Add(1)%int64(r.ComeBack) == 0:
			r.attempt(ctx, buyer, basket, time.Now(), waiting)
			return
		case r.enters(n, a.refusal):
			r.waiters.Go(func() { r.wait(ctx, buyer, basket) })
			return
		case a.refusal == "" || retries == r.Retry.Times || !mayPass(a.refusal):
			return
		}
		pause := time.Duration(0)
		if !r.Retry.AtOnce {
			pause = a.retryAfter
		}
		if !loop.Rest(ctx, pause, nil) {
			return
		}
		begun, how = time.Now(), waiting
	}
}

// name is what a buyer is called.
func (c *Crowd) name(buyer int) string {
	if c.Template != nil {
		return c.Template.Name(buyer)
	}
	return c.Prefix + strconv.Itoa(buyer+1)
}

func mayPass(reason string) bool {
	kind, known := sale.KindOf(sale.Reason(reason))
	return known && kind.Wait
}

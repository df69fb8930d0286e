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

	"github.com/stockgate/stockgate/sale"
)

// run is one stampede.
type run struct {
	Crowd
	target    *url.URL
	transport *http.Transport
	bodies    [][]byte // of the baskets
	who       []int32  // who places each order; nil: in turn
	book      *notebook
	started   time.Time
	next      atomic.Int64 // the next order
	bought    atomic.Int64 // orders that succeeded, for ComeBack
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
	r.transport = &http.Transport{
		MaxIdleConnsPerHost: 2 * c.Concurrency,
		DisableCompression:  true,
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: c.Insecure},
	}
	defer r.transport.CloseIdleConnections()

	var workers sync.WaitGroup
	r.started = time.Now()
	for range c.Concurrency {
		workers.Go(func() { r.work(ctx) })
	}
	workers.Wait()
	return r.book.tally(time.Since(r.started)), nil
}

// work places order after order.
func (r *run) work(ctx context.Context) {
	for ctx.Err() == nil {
		n := int(r.next.Add(1) - 1)
		if n >= r.Purchases {
			return
		}
		begun := time.Now()
		if r.Rate > 0 {
			begun = r.started.Add(time.Duration(float64(n) / r.Rate * float64(time.Second)))
			if !wait(ctx, time.Until(begun)) {
				return
			}
		}
		var twin sync.WaitGroup
		if r.DoubleClick > 0 && n%r.DoubleClick == 0 {
			twin.Go(func() { r.purchase(ctx, n, begun) })
		}
		r.purchase(ctx, n, begun)
		twin.Wait()
	}
}

// purchase is one buyer with one order, until they have it or give up.
func (r *run) purchase(ctx context.Context, n int, begun time.Time) {
	buyer := n % r.Buyers
	if r.who != nil {
		buyer = int(r.who[n])
	}
	basket := n % len(r.Baskets)
	for retries := 0; ; retries++ {
		a := r.attempt(ctx, buyer, basket, begun)
		switch {
		case a.Accepted && r.ComeBack > 0 && r.bought.Add(1)%int64(r.ComeBack) == 0:
			r.attempt(ctx, buyer, basket, time.Now())
			return
		case a.refusal == "" || retries == r.Retry.Times || !mayPass(a.refusal):
			return
		}
		pause := time.Duration(0)
		if !r.Retry.AtOnce {
			pause = a.retryAfter
		}
		if !wait(ctx, pause) {
			return
		}
		begun = time.Now()
	}
}

// name is what a buyer calls himself.
func (c *Crowd) name(buyer int) string { return c.Prefix + strconv.Itoa(buyer+1) }

func mayPass(reason string) bool {
	kind, known := sale.KindOf(sale.Reason(reason))
	return known && kind.Wait
}

// wait returns false if ctx ends meanwhile.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

package main

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// crowd are buyers who try until they know. Each has its page open, and so a connection, before
// the sale begins: what the crowd itself takes to connect is in none of its times. All press the
// button at one moment, and every time counts from there. One who knows leaves the page open.
type crowd struct {
	options
	addr    string
	dialing sync.WaitGroup // one for each buyer that is not connected yet
	start   chan struct{}
	began   time.Time
	tried   atomic.Int64
	open    atomic.Int64

	mu              sync.Mutex
	winners, losers []float64 // seconds until they knew
	once, refused   int
}

// connecting is how many buyers connect at a time.
const connecting = 64

func (c *crowd) run() {
	c.start = make(chan struct{})
	slots := make(chan struct{}, connecting)
	var all, buying sync.WaitGroup
	over := make(chan struct{})
	c.dialing.Add(c.connections)
	buying.Add(c.connections)
	for i := range c.connections {
		all.Go(func() {
			b := buyer{addr: c.addr, request: fmt.Appendf(nil, "POST /api/order HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nX-User-Id: buyer-%d\r\nContent-Length: 11\r\n\r\n{\"sku\":\"1\"}", c.addr, i)}
			slots <- struct{}{}
			b.connect() // a failure shows in its first attempt
			<-slots
			c.dialing.Done()
			<-c.start
			c.buy(&b)
			buying.Done()
			<-over
			b.close()
		})
	}
	c.dialing.Wait()
	c.began = time.Now()
	close(c.start)
	buying.Wait()
	close(over)
	all.Wait()
}

func (c *crowd) buy(b *buyer) {
	for tries := 1; ; tries++ {
		if c.tried.Add(1) > int64(c.attempts) {
			c.tried.Add(-1)
			c.mu.Lock()
			c.refused++
			c.mu.Unlock()
			return
		}
		c.open.Add(1)
		status, reason, wait := b.ask()
		c.open.Add(-1)
		c.mu.Lock()
		took := time.Since(c.began).Seconds()
		told := true
		switch {
		case status == http.StatusCreated:
			c.winners = append(c.winners, took)
			if tries == 1 {
				c.once++
			}
		case reason == "sold_out" || reason == "all_held" || status == http.StatusConflict && reason == "":
			c.losers = append(c.losers, took)
		default:
			told = false
		}
		c.mu.Unlock()
		if told {
			return
		}
		time.Sleep(wait)
	}
}

func (c *crowd) report(r *result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.Sort(c.winners)
	slices.Sort(c.losers)
	r.Attempts, r.Refused, r.Losers = int(c.tried.Load()), c.refused, len(c.losers)
	if n := len(c.winners); n > 0 {
		r.Once, r.WinnerP50, r.WinnerMax = float64(c.once)/float64(n), c.winners[n/2], c.winners[n-1]
	}
	if n := len(c.losers); n > 0 {
		r.LoserP50, r.LoserMax = c.losers[n/2], c.losers[n-1]
	}
}

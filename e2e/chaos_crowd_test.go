package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// crowd runs this many buyers at a time: when one has their order, the next one begins.
// It returns a function that waits until all have finished.
func (c *chaos) crowd(n int) (wait func()) {
	over, cancel := context.WithCancel(context.Background())
	c.over = over
	var crowd sync.WaitGroup
	var arrived atomic.Int64
	for range n {
		crowd.Go(func() {
			for !c.closing.Load() && over.Err() == nil {
				n := arrived.Add(1)
				r := c.insist(one(fmt.Sprintf("buyer-%d", n), "7", 1, "").under(fmt.Sprintf("key-%d", n)))
				c.mu.Lock()
				c.results = append(c.results, r)
				c.mu.Unlock()
			}
		})
	}
	c.t.Cleanup(crowd.Wait)
	c.t.Cleanup(cancel)
	return crowd.Wait
}

// patientFor is how long a buyer waits for an edge that may hang, before retrying.
const patientFor = 5 * time.Second

// insist asks for an order, always under the same key, until the buyer has it or the
// sale closes. No buyer may be told that there is no such sale, that their limit is
// reached, or anything else that is not true.
func (c *chaos) insist(o order) (r result) {
	for {
		patient, cancel := context.WithTimeout(c.over, patientFor)
		r = c.door.buyContext(patient, o)
		cancel()
		switch {
		case c.over.Err() != nil:
			return r
		case r.err != nil, r.status >= 500 && r.reason == "", r.status == 422 && r.reason == "":
		case r.status/100 == 2, r.reason == "already_ordered":
			return r
		case r.reason == "unavailable":
			c.unavailable.Add(1)
		case r.reason == "sold_out" && c.closing.Load():
			return r
		case r.reason == "sold_out", r.reason == "all_held", r.reason == "busy", r.reason == "duplicate", r.reason == "pending", r.reason == "in_doubt":
		case r.status == 403 && strings.Contains(r.body, "token"): // an edge slept until its token was no good any more
		default:
			c.t.Errorf("a buyer hears what is not so: %v", r)
		}
		select {
		case <-time.After(100 * time.Millisecond): // a person, not a machine
		case <-c.over.Done():
			return r
		}
	}
}

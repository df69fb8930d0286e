package queue

import "sync"

const (
	// mostPolls is how many clients may wait at an edge for news of orders. Each has Redis asked once
	// a second.
	mostPolls = 10_000
	// mostPollsOfOrder is how many of them may wait for news of one order.
	mostPollsOfOrder = 4
)

// polls are the clients that wait for news.
type polls struct {
	mu  sync.Mutex
	all int
	of  map[string]int // by sale and id
}

// Poll lets a client wait for news of an order, until leave is called. False: as many wait as may, and
// the client is told at once what is known.
func (q *Queue) Poll(sale, id string) (leave func(), ok bool) {
	p, key := &q.polls, sale+" "+id
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all >= q.mostPolls || p.of[key] >= mostPollsOfOrder {
		return nil, false
	}
	if p.of == nil {
		p.of = make(map[string]int)
	}
	p.all++
	p.of[key]++
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.all--
		if p.of[key]--; p.of[key] == 0 {
			delete(p.of, key)
		}
	}), true
}

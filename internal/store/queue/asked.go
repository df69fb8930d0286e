package queue

import (
	"context"
	"time"
)

// askEvery is the least time between two questions to Redis about one order.
const askEvery = 50 * time.Millisecond

// asked are the questions about one order.
type asked struct {
	next *question // has not begun; nil: none
	last time.Time // when the one before it began
}

// question is one for all callers that come before it begins.
type question struct {
	done  chan struct{}
	place Place
	err   error
}

// Ask is Place for clients, which may ask as often as they like: callers share one question to Redis,
// at most one in askEvery. What it returns is not older than the call.
func (q *Queue) Ask(ctx context.Context, sale, id string) (Place, error) {
	key := sale + " " + id
	q.mu.Lock()
	a := q.asked[key]
	if a == nil {
		a = new(asked)
		q.asked[key] = a
	}
	if other := a.next; other != nil {
		q.mu.Unlock()
		select {
		case <-other.done:
			return other.place, other.err
		case <-ctx.Done():
			return Place{}, ctx.Err()
		}
	}
	mine := &question{done: make(chan struct{})}
	a.next = mine
	wait := time.Until(a.last.Add(q.askEvery))
	q.mu.Unlock()
	if wait > 0 {
		time.Sleep(wait)
	}
	q.mu.Lock()
	a.next, a.last = nil, time.Now()
	q.mu.Unlock()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*q.shard.Timeout())
	defer cancel()
	mine.place, mine.err = q.Place(bounded, sale, id)
	close(mine.done)
	time.AfterFunc(q.askEvery, func() { q.forget(key, a) })
	return mine.place, mine.err
}

// forget drops what is known of questions that are over.
func (q *Queue) forget(key string, a *asked) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.asked[key] == a && a.next == nil && time.Since(a.last) >= q.askEvery {
		delete(q.asked, key)
	}
}

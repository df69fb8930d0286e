package queue

import "time"

// Waiter is an order whose request is open at this edge.
type Waiter struct {
	// Turn gets the turn of the order, at most one at a time.
	Turn chan Turn

	line    *line
	id      string
	gate    string
	packed  []byte
	waiting bool
}

// Enter announces that an order may come to wait, so that its turn is not given away when it
// comes before Wait. The caller calls Leave in the end.
func (q *Queue) Enter(sale, id, gate string, packed []byte) *Waiter {
	l := q.line(sale)
	w := &Waiter{Turn: make(chan Turn, 1), line: l, id: id, gate: gate, packed: packed}
	l.mu.Lock()
	l.waiters[id] = w
	l.mu.Unlock()
	l.isOf(gate)
	return w
}

// Unsent is the queue's Unsent, for the order of a turn that this waiter got. It waits on.
func (w *Waiter) Unsent(t Turn, longest, margin time.Duration) {
	w.line.queue.Unsent(t, w.packed, longest, margin)
	w.Wait()
}

// Wait says that the order waits in Redis.
func (w *Waiter) Wait() {
	w.line.mu.Lock()
	if !w.waiting {
		w.waiting = true
		w.line.waiting++
	}
	w.line.mu.Unlock()
	w.line.begin()
	w.line.poke()
}

// Leave says that the request does not wait any more. If the order still does, the edge sends
// it without its request.
func (w *Waiter) Leave() {
	w.line.mu.Lock()
	if w.line.waiters[w.id] == w {
		delete(w.line.waiters, w.id)
	}
	w.done()
	w.line.mu.Unlock()
	select {
	case t := <-w.Turn: // it came too late for the request
		w.line.pass(t)
	default:
	}
}

// done says that the order does not wait in Redis any more, as far as this edge knows.
func (w *Waiter) done() {
	if w.waiting {
		w.waiting = false
		w.line.waiting--
	}
}

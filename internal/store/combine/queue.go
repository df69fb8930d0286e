package combine

// enter queues a ticket, and starts to send its queue. When the combiner is full it rejects the
// ticket, or, if the ticket's queue has less than its share, the last ticket of the longest
// queue. The caller must hold the combiner's mu.
func (c *Combiner[Q, A]) enter(name string, t *Ticket[Q, A]) error {
	if c.closed {
		return ErrClosed
	}
	if t.Ctx.Err() != nil {
		return ErrNoTime
	}
	q := c.queues[name]
	kind := t.kind()
	if c.waiting[kind] >= most[kind] {
		if q != nil && q.waiting[kind] >= c.share(kind, q) {
			return ErrBusy
		}
		c.reject(kind)
	}
	if q == nil {
		q = &queue[Q, A]{name: name}
		c.queues[name] = q
		c.running.Go(func() { c.run(q) })
	}
	t.queue, t.prev = q, q.last
	if q.last != nil {
		q.last.next = t
	} else {
		q.first = t
	}
	q.last = t
	q.waiting[kind]++
	c.waiting[kind]++
	if q.wanted > 0 && q.count() >= q.wanted {
		q.hurry()
	}
	return nil
}

// share is how many tickets each queue may have when there is not enough room for all.
func (c *Combiner[Q, A]) share(kind int, with *queue[Q, A]) int {
	n := 0
	for _, q := range c.queues {
		if q == with || q.waiting[kind] > 0 {
			n++
		}
	}
	return max(1, most[kind]/n)
}

// reject makes room for one ticket: the last ticket of the longest queue is answered with
// ErrBusy.
func (c *Combiner[Q, A]) reject(kind int) {
	var longest *queue[Q, A]
	for _, q := range c.queues {
		if longest == nil || q.waiting[kind] > longest.waiting[kind] {
			longest = q
		}
	}
	for t := longest.last; t != nil; t = t.prev {
		if t.kind() == kind {
			c.remove(t)
			t.Fail(ErrBusy)
			return
		}
	}
}

// leave withdraws a ticket. False: it was sent or answered.
func (c *Combiner[Q, A]) leave(t *Ticket[Q, A]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.queue == nil {
		return false
	}
	c.remove(t)
	return true
}

// remove takes a ticket out of its queue. The caller must hold the combiner's mu.
func (c *Combiner[Q, A]) remove(t *Ticket[Q, A]) {
	q := t.queue
	if t.prev != nil {
		t.prev.next = t.next
	} else {
		q.first = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	} else {
		q.last = t.prev
	}
	t.queue, t.prev, t.next = nil, nil, nil
	q.waiting[t.kind()]--
	c.waiting[t.kind()]--
}

// count is how many tickets wait in a queue.
func (q *queue[Q, A]) count() int { return q.waiting[0] + q.waiting[1] }

// hurry ends the wait for further tickets.
func (q *queue[Q, A]) hurry() {
	if q.wanted > 0 {
		q.wanted = 0
		close(q.enough)
	}
}

// Load is what a combiner has to do at a moment.
type Load struct {
	Waiting int // requests that wait to be sent, and callers that wait for room
	Batches int // batches under way
	Sending int // the requests in them
}

// Load returns what the combiner has to do now.
func (c *Combiner[Q, A]) Load() Load {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.sending
	l.Waiting = c.waiting[0] + c.waiting[1] + c.outside
	return l
}

// sent notes that a batch is no longer under way.
func (c *Combiner[Q, A]) sent(batch []*Ticket[Q, A]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sending.Batches--
	c.sending.Sending -= len(batch)
}

// Waiting is how many requests wait to be sent.
func (c *Combiner[Q, A]) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting[0] + c.waiting[1]
}

package combine

import "time"

// Crowded is how many attempts may wait in a queue before others had better wait outside: what two
// calls take. More of them gain nothing, and each costs a server far more than one that waits for
// room.
const Crowded = 2 * MaxTogether

// outsider is a caller that waits for room in a queue.
type outsider struct {
	room chan struct{} // closed when there is
	in   bool          // it was told, or does not wait any more; guarded by the combiner's mu
}

// IsCrowded reports whether AwaitRoom would wait.
func (c *Combiner[Q, A]) IsCrowded(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.crowded(name) != nil
}

// AwaitRoom waits until a queue has room for one more attempt, in the order in which callers came.
// False: there was none for atMost. It reserves nothing: the caller looks whether its attempt is
// still worth a place, and asks. Where as many wait outside as may wait inside, it does not wait.
func (c *Combiner[Q, A]) AwaitRoom(name string, atMost time.Duration) bool {
	c.mu.Lock()
	q := c.crowded(name)
	if q == nil {
		c.mu.Unlock()
		return true
	}
	o := &outsider{room: make(chan struct{})}
	q.outside = append(q.outside, o)
	c.outside++
	c.mu.Unlock()
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-o.room:
	case <-timer.C:
		c.mu.Lock()
		defer c.mu.Unlock()
		if !o.in {
			o.in = true
			c.outside--
			return false
		}
	}
	return true
}

// crowded returns the queue of that name if one more must wait outside. The caller must hold the
// combiner's mu.
func (c *Combiner[Q, A]) crowded(name string) *queue[Q, A] {
	q := c.queues[name]
	if c.closed || q == nil || c.outside >= MaxWaiting || q.waiting[0] < Crowded && len(q.outside) == 0 {
		return nil
	}
	return q
}

// letIn tells as many as there is room for. The caller must hold the combiner's mu.
func (c *Combiner[Q, A]) letIn(q *queue[Q, A], room int) {
	for len(q.outside) > 0 && room > 0 {
		o := q.outside[0]
		q.outside[0] = nil
		q.outside = q.outside[1:]
		if o.in {
			continue
		}
		o.in = true
		c.outside--
		room--
		close(o.room)
	}
}

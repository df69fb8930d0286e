package queue

import "time"

// Lease sets for how long turns last, before the queue is used.
func (q *Queue) Lease(d time.Duration) { q.lease = d }

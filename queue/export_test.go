package queue

import (
	"time"

	"github.com/stockgate/stockgate/reservation"
)

// Lease sets for how long turns last, before the queue is used.
func (q *Queue) Lease(d time.Duration) { q.lease = d }

// PaceOfLine is the pace with which the edge would ask for turns of a sale now.
func (q *Queue) PaceOfLine(sale string) reservation.Pace { return q.line(sale).paceNow() }

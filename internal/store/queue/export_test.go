package queue

import (
	"time"

	"github.com/stockgate/stockgate/internal/store/reservation"
)

// AskEvery sets the least time between two questions about an order.
func (q *Queue) AskEvery(d time.Duration) { q.askEvery = d }

// MostPolls sets how many clients may wait for news.
func (q *Queue) MostPolls(n int) { q.mostPolls = n }

// Asks reports whether a question about an order has not begun, so that the next caller joins it.
func (q *Queue) Asks(sale, id string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.asked[sale+" "+id]
	return a != nil && a.next != nil
}

// AskedAbout is about how many orders something is remembered.
func (q *Queue) AskedAbout() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.asked)
}

// PaceOfLine is the pace with which the edge would ask for turns of a sale now.
func (q *Queue) PaceOfLine(sale string) reservation.Pace { return q.line(sale).paceNow() }

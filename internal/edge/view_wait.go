package edge

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
)

// ErrLater says that it is not known yet whether an attempt is new: its Waiting will be woken.
var ErrLater = errors.New("the edge is reading what other edges have bound")

// Arrival says since when an attempt is to be refused, and how it waits.
type Arrival struct {
	// At is when the attempt was there, and what it is refused for was known. The zero time: only now.
	At time.Time
	// Waiting is that of the attempt's connection. nil: the caller waits.
	Waiting *Waiting
}

// since is At by sinceStarted.
func (a *Arrival) since() time.Duration {
	if a.At.IsZero() {
		return math.MaxInt64
	}
	return a.At.Sub(started)
}

// Waiting is a connection whose attempts wait beside each other. However many they are, it
// takes one place of those that wait for a check. Its attempts must be judged one after the
// other.
type Waiting struct {
	// Wake is called, on another goroutine, when a check has ended: the attempts that wait are
	// to be judged again. It must not block.
	Wake func()

	checks []*check // that it waits for, or has waited for; at most two of a sale
}

// sent returns a check that the connection waits for or has waited for, and that was sent after
// an attempt arrived; nil: there is none. The lock of checks is held.
func (w *Waiting) sent(c *checks, sale string, arrived time.Duration) *check {
	if w == nil {
		return nil
	}
	for _, k := range w.checks {
		if k.of == c.id && k.sale == sale && arrived < k.sent {
			return k
		}
	}
	return nil
}

func (w *Waiting) waitsFor(k *check) bool { return w != nil && slices.Contains(w.checks, k) }

// add makes a check that was not sent wake the connection.
func (w *Waiting) add(k *check) {
	if w == nil {
		return
	}
	w.checks = append(slices.DeleteFunc(w.checks, (*check).hasEnded), k)
	k.wakes = append(k.wakes, w.Wake)
}

// SurelyNew reports that nothing in Redis was bound to the attempt's idempotency key or ref
// when it was called: the attempt may be refused from memory. False: ask Redis. It waits
// until this edge has read what other edges have bound, for the timeout at most. An error
// means that the edge could not read it in time.
func (e *Edge) SurelyNew(l *Listing, a *sale.Attempt) (bool, error) {
	isNew, _, err := e.SurelyNewAt(l, a, &Arrival{})
	return isNew, err
}

// SurelyNewAt is SurelyNew as of the attempt's arrival: a check that was sent later counts, even
// if it has ended. It also returns when its wait was over; the zero time: it did not wait. The
// attempts that waited together have this time in common, so that none of them reads the clock.
// With a Waiting it does not wait, but returns ErrLater.
func (e *Edge) SurelyNewAt(l *Listing, a *sale.Attempt, came *Arrival) (isNew bool, at time.Time, err error) {
	f := l.view()
	if f == nil || !f.fresh(f.now()) || f.bound.Load() == nil {
		return false, time.Time{}, nil
	}
	b, known := e.bindingsOf(a) // before the wait, while the attempt is in the processor's cache
	if !known {
		return false, time.Time{}, nil
	}
	if int64(came.since()) < f.current.Load() {
		return f.bound.Load().excludes(&b), time.Time{}, nil
	}
	k, err := e.checks.current(l.Sale.ID, came)
	if err != nil {
		return false, time.Time{}, err
	}
	if k.err != nil {
		return false, k.ended, k.err
	}
	f = l.view() // another one, of which the check knows nothing, may be there by now
	return f != nil && f.current.Load() >= int64(k.sent) && f.bound.Load().excludes(&b), k.ended, nil
}

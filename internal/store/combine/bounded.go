package combine

import (
	"context"
	"sync"
	"time"
)

// Bounded is a context that also ends at a given time, for the caller of a combiner. Only
// waitFor respects that time: Bounded has no timer of its own, and its Done is that of the
// inner context. For every other use, see Waited.
type Bounded struct {
	context.Context
	until time.Time
}

// Within bounds a context for a combiner.
func Within(ctx context.Context, d time.Duration) *Bounded {
	until := time.Now().Add(d)
	if earlier, ok := ctx.Deadline(); ok && earlier.Before(until) {
		until = earlier
	}
	return &Bounded{ctx, until}
}

func (b *Bounded) Deadline() (time.Time, bool) { return b.until, true }

func (b *Bounded) Err() error {
	if err := b.Context.Err(); err != nil {
		return err
	}
	if !time.Now().Before(b.until) {
		return context.DeadlineExceeded
	}
	return nil
}

// Waited is an ordinary context with the same end.
func (b *Bounded) Waited() (context.Context, context.CancelFunc) {
	return context.WithDeadline(b.Context, b.until)
}

// timers are stopped timers: every wait needs one, and hardly any wait ends by it.
var timers = sync.Pool{New: func() any {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}}

// waitFor returns what comes first: an answer, or the end of ctx (false).
func waitFor[A any](ctx context.Context, done <-chan SourceAnswer[A]) (a SourceAnswer[A], ok bool) {
	b, is := ctx.(*Bounded)
	if !is {
		select {
		case a = <-done:
			return a, true
		case <-ctx.Done():
			return a, false
		}
	}
	timer := timers.Get().(*time.Timer)
	timer.Reset(time.Until(b.until))
	select {
	case a = <-done:
		ok = true
	case <-ctx.Done():
	case <-timer.C:
	}
	timer.Stop() // leaves nothing in C (Go 1.23)
	timers.Put(timer)
	return a, ok
}

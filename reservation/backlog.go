package reservation

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"
)

// backlogSize bounds the outcomes that wait for Redis to come back. What does not
// fit becomes in doubt at its deadline, or expires. Outcomes that the shop has no part
// in may take half of it, so that they never keep out what the shop has said.
const backlogSize = 10_000

// outcome is what must still be told to Redis about one reservation.
type outcome struct {
	sale, id string
	tell     func(context.Context) (State, error)
	what     string
}

const (
	// unsent is the outcome of a reservation that was never forwarded.
	unsent = "unsent"
	// freed is that of an attempt that was answered while its hold goes on.
	freed = "free"
)

// backlog tells Redis, in the background and again and again, what it could not be
// told at once.
type backlog struct {
	log     *zap.Logger
	timeout time.Duration
	dropped func()

	mu      sync.Mutex
	waiting []outcome
	busy    bool          // one is being told
	changed chan struct{} // closed and renewed whenever the two above change
}

func newBacklog(log *zap.Logger, timeout time.Duration, dropped func()) *backlog {
	return &backlog{log: log, timeout: timeout, dropped: dropped, changed: make(chan struct{})}
}

// add queues an outcome; a full backlog says so in the log and drops it.
func (b *backlog) add(o outcome) {
	b.mu.Lock()
	most := backlogSize
	if o.what == unsent || o.what == freed {
		most /= 2
	}
	full := len(b.waiting) >= most
	if !full {
		b.waiting = append(b.waiting, o)
		b.signal()
	}
	b.mu.Unlock()
	if full {
		b.dropped()
		b.log.Error("backlog is full: a reservation will end by its deadline; look for it with `caddy stockgate holds`",
			zap.String("sale", o.sale), zap.String("reservation", o.id), zap.String("outcome", o.what))
	}
}

// size is the number of outcomes that Redis does not know yet.
func (b *backlog) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.waiting)
	if b.busy {
		n++
	}
	return n
}

// signal must be called with mu held.
func (b *backlog) signal() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// drain waits until the backlog is empty, or ctx ends; it returns what is left.
func (b *backlog) drain(ctx context.Context) int {
	for {
		b.mu.Lock()
		left := len(b.waiting)
		if b.busy {
			left++
		}
		changed := b.changed
		b.mu.Unlock()
		if left == 0 {
			return 0
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return left
		}
	}
}

// run tells until ctx ends. An outcome that cannot be told goes to the end of the
// queue, after a pause that grows to a second.
func (b *backlog) run(ctx context.Context) {
	const shortest, longest = 20 * time.Millisecond, time.Second
	pause := shortest
	for {
		o, ok := b.take(ctx)
		if !ok {
			return
		}
		callCtx, cancel := context.WithTimeout(ctx, b.timeout)
		state, err := o.tell(callCtx)
		cancel()
		again := errors.Is(err, ErrUnavailable)
		b.done(o, again)
		if !again {
			b.logged(o, state, err)
			pause = shortest
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
			pause = min(2*pause, longest)
		}
	}
}

func (b *backlog) take(ctx context.Context) (outcome, bool) {
	for {
		b.mu.Lock()
		if len(b.waiting) > 0 {
			o := b.waiting[0]
			b.waiting = b.waiting[1:]
			b.busy = true
			b.mu.Unlock()
			return o, true
		}
		changed := b.changed
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return outcome{}, false
		}
	}
}

func (b *backlog) done(o outcome, again bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy = false
	if again {
		b.waiting = append(b.waiting, o)
	}
	b.signal()
}

func (b *backlog) logged(o outcome, state State, err error) {
	fields := []zap.Field{zap.String("sale", o.sale), zap.String("reservation", o.id), zap.String("outcome", o.what), zap.String("state", string(state))}
	if err != nil && !errors.Is(err, ErrNotFound) {
		b.log.Error("a late outcome was not accepted", append(fields, zap.Error(err))...)
		return
	}
	b.log.Debug("a late outcome was told", fields...)
}

package shard

import (
	"sync"
	"sync/atomic"
	"time"
)

// Clock estimates the times of a sale's Redis from its replies, and from the monotonic time
// since they arrived. See docs/failover.md#clocks.
type Clock struct {
	Mono func() time.Time // the monotonic clock of this process
	last atomic.Pointer[clockReading]
	Seq  atomic.Int64         // the newest journal number that a reply has reported
	Fall atomic.Pointer[Fall] // the largest fall that was seen; nil: none
	life atomic.Int64         // counts the epochs that were seen
	// Broken says that the connection of the last call broke, so that the call may have run.
	Broken atomic.Bool

	known atomic.Pointer[Known] // nil: no term is known
	lease atomic.Pointer[lease] // nil: there is none
	used  atomic.Int64          // when a call needed the lease, by mono in ns

	mu          sync.Mutex // guards the two
	time, shard steady     // Redis's own time, and the shard's clock
}

// Fall describes movements that Redis reported and then lost: its newest number was High, and
// later, in the same epoch, it was Low. Redis has since given the numbers above Low to other
// movements.
type Fall struct{ Low, High int64 }

// Lost is the least number of movements that are lost.
func (f Fall) Lost() int64 { return f.High - f.Low }

// ClockMark is what the clock knows when a call is sent.
type ClockMark struct {
	Life, Seq int64
	sent      time.Time
	term      string
}

// Mark returns what the clock knows now.
func (c *Clock) Mark() ClockMark {
	return ClockMark{c.life.Load(), c.Seq.Load(), c.Mono(), c.Known().Term.Name}
}

// Fell notes that a reply had a lower number than was known before its call was sent: replies
// may overtake each other, but not their own call. 0: the whole sale is gone.
func (c *Clock) Fell(m ClockMark, seq int64) {
	before := m.Seq
	for 0 < seq && seq < before && c.life.Load() == m.Life {
		old := c.Fall.Load()
		next := &Fall{seq, before}
		switch {
		case old == nil:
		case before == old.High && seq < old.Low, before != old.High && next.Lost() > old.Lost():
		default:
			return
		}
		if c.Fall.CompareAndSwap(old, next) {
			return
		}
	}
}

// Regained notes that a fence has given back what a server had lost after a number, except so many
// movements. last is the server's newest number since.
func (c *Clock) Regained(base, missing, last int64) {
	f := c.Fall.Load()
	switch {
	case f == nil || f.Low != base || last < f.High:
	case missing == 0:
		c.Fall.CompareAndSwap(f, nil)
	case missing < f.Lost():
		c.Fall.CompareAndSwap(f, &Fall{f.High - missing, f.High})
	}
}

// Anew forgets what was seen in another epoch. The next promise waits for a lease on the shard with
// this one, which may have no term yet, and then no fence.
func (c *Clock) Anew(epoch int64) {
	c.life.Add(1)
	c.Seq.Store(0)
	c.Fall.Store(nil)
	if l := c.lease.Load(); l != nil && l.epoch != epoch {
		c.lease.CompareAndSwap(l, &lease{until: l.until, over: true})
	}
}

// clockReading is what the last reply reported.
type clockReading struct {
	ms int64 // Redis's own time; a new step forward counts only up to the tolerance
	at time.Time
	// lead is how far the shard's clock is ahead of Redis's own time.
	lead int64
	// stepped says that the shard's clock has jumped ahead of this process's clock.
	stepped bool
}

// heard takes in the reply to a call that was sent at a given moment.
func (c *Clock) heard(sent time.Time, ms, lead int64) {
	now := c.Mono()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.time.add(sent, now, ms)
	stepped := c.shard.add(sent, now, ms+lead)
	c.last.Store(&clockReading{min(ms, c.time.latest(now)+Tolerance), now, lead, stepped})
}

// sawSeq moves seq forward only: replies may overtake each other. A call that was sent in
// another epoch counts its entries differently.
func (c *Clock) sawSeq(m ClockMark, seq int64) {
	for m.Life == c.life.Load() {
		old := c.Seq.Load()
		if seq <= old || c.Seq.CompareAndSwap(old, seq) {
			return
		}
	}
}

// Now returns Redis's own time in ms since 1970; false: no reply has been seen yet. It is never
// later than Redis's clock, except after a step back, and it follows a step forward only when
// that has lasted a while.
func (c *Clock) Now() (int64, bool) { return c.At(c.Mono()) }

// At is Now at a given moment of this machine's clock.
func (c *Clock) At(moment time.Time) (int64, bool) {
	r := c.last.Load()
	if r == nil {
		return 0, false
	}
	return r.ms + moment.Sub(r.at).Milliseconds(), true
}

// Lead is how far the shard's clock was ahead of Redis's own time in the last reply.
func (c *Clock) Lead() int64 {
	if r := c.last.Load(); r != nil {
		return r.lead
	}
	return 0
}

// latest returns upper bounds of the shard's clock and of Redis's own time. With fewer than two
// replies they are unknown, and both are empty, as the scripts expect.
func (c *Clock) latest() (shard, own any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.time.known() {
		return "", ""
	}
	now := c.Mono()
	return c.shard.latest(now), c.time.latest(now)
}

// Stepped says that the shard's clock has jumped ahead of this process's clock.
func (c *Clock) Stepped() bool {
	r := c.last.Load()
	return r != nil && r.stepped
}

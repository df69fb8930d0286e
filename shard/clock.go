package shard

import (
	"sync"
	"sync/atomic"
	"time"
)

// clock estimates the times of a sale's Redis from its replies, and from the monotonic
// time since they came. See docs/clocks.md.
type Clock struct {
	Mono func() time.Time // the monotonic clock of this process
	last atomic.Pointer[reading]
	Seq  atomic.Int64         // the newest of the journal that a reply has told
	Fall atomic.Pointer[Fall] // the largest one that was seen; nil: none
	life atomic.Int64         // counts the lives that were seen
	// broken: the connection of the last call broke, so that the call may have run.
	Broken atomic.Bool

	mu          sync.Mutex // guards the two
	time, shard steady     // Redis's own time, and the shard's clock
}

// Fall is what is known of movements that Redis had told of and has lost: its newest
// number was High, and in the same life it was Low after that. What it has given the
// numbers above Low to since are other movements.
type Fall struct{ Low, High int64 }

// Lost is how many movements are lost, at least.
func (f Fall) Lost() int64 { return f.High - f.Low }

// mark is what is known when a call is sent.
type Mark struct {
	Life, Seq int64
	sent      time.Time
}

func (c *Clock) Mark() Mark { return Mark{c.life.Load(), c.Seq.Load(), c.Mono()} }

// fell notes that a call was told a lower number than was known before it was made:
// replies may overtake each other, but not their own call. 0: the sale is gone as a whole.
func (c *Clock) Fell(m Mark, seq int64) {
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

// anew forgets what was seen of another life.
func (c *Clock) Anew() {
	c.life.Add(1)
	c.Seq.Store(0)
	c.Fall.Store(nil)
}

// reading is what the last reply told.
type reading struct {
	ms int64 // Redis's own time; of a step forward that is new only the tolerance
	at time.Time
	// lead is what the shard's clock is ahead of it.
	lead int64
	// stepped: the shard's clock has jumped ahead of this process's.
	stepped bool
}

// heard takes in a reply to what was sent at a moment.
func (c *Clock) heard(sent time.Time, ms, lead int64) {
	now := c.Mono()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.time.add(sent, now, ms)
	stepped := c.shard.add(sent, now, ms+lead)
	c.last.Store(&reading{min(ms, c.time.latest(now)+Tolerance), now, lead, stepped})
}

// sawSeq moves seq forward only: replies may overtake each other. What was asked in another
// life counts its entries otherwise.
func (c *Clock) sawSeq(m Mark, seq int64) {
	for m.Life == c.life.Load() {
		old := c.Seq.Load()
		if seq <= old || c.Seq.CompareAndSwap(old, seq) {
			return
		}
	}
}

// now returns Redis's own time in ms since the epoch; false: no reply has been seen yet.
// It is never later than Redis's, but for a step back, and does not follow a step forward
// before that has lasted a while.
func (c *Clock) Now() (int64, bool) { return c.At(c.Mono()) }

// at is now at a moment of this machine's clock.
func (c *Clock) At(moment time.Time) (int64, bool) {
	r := c.last.Load()
	if r == nil {
		return 0, false
	}
	return r.ms + moment.Sub(r.at).Milliseconds(), true
}

// lead is how far the shard's clock was ahead of Redis's own time in the last reply.
func (c *Clock) Lead() int64 {
	if r := c.last.Load(); r != nil {
		return r.lead
	}
	return 0
}

// latest says how late it is at most, by the shard's clock and by Redis's own time. Without
// at least two replies it is not known: then both are empty, as scripts take them.
func (c *Clock) latest() (shard, own any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.time.known() {
		return "", ""
	}
	now := c.Mono()
	return c.shard.latest(now), c.time.latest(now)
}

// stepped says that the shard's clock has jumped ahead of this process's.
func (c *Clock) Stepped() bool {
	r := c.last.Load()
	return r != nil && r.stepped
}

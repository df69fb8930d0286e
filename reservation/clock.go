package reservation

import (
	"sync/atomic"
	"time"
)

// clock estimates Redis's time from the last reply: the time that it carried, and
// the monotonic time since it came. The estimate is never ahead of Redis by more
// than Redis's own clock steps: the reply was made before it arrived.
type clock struct {
	last atomic.Pointer[reading]
	seq  atomic.Int64                // the newest of the journal that a reply has told
	head atomic.Pointer[JournalHead] // what was seen of the journal last
}

type reading struct {
	ms int64
	at time.Time
}

func (c *clock) set(ms int64) { c.last.Store(&reading{ms, time.Now()}) }

// sawSeq moves seq forward only: replies may overtake each other.
func (c *clock) sawSeq(seq int64) {
	for {
		old := c.seq.Load()
		if seq <= old || c.seq.CompareAndSwap(old, seq) {
			return
		}
	}
}

// now returns ms since the epoch; false: no reply has been seen yet.
func (c *clock) now() (int64, bool) { return c.at(time.Now()) }

// at is now at a moment of this machine's clock.
func (c *clock) at(moment time.Time) (int64, bool) {
	r := c.last.Load()
	if r == nil {
		return 0, false
	}
	return r.ms + moment.Sub(r.at).Milliseconds(), true
}

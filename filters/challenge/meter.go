package challenge

import (
	"math"
	"sync/atomic"
	"time"
)

// meter counts attempts in windows of time, without a lock. The current window or the
// previous one counts, whichever has more attempts: the rate rises with each attempt,
// and falls after a whole window with fewer.
type meter struct {
	window int64  // ns
	late   uint32 // how many windows a time may be behind the current one, and counts in it
	// Each holds the number of a window in its upper half and its attempts in the lower one.
	now, before atomic.Uint64
}

// maxLate is how late attempts may be counted, because a goroutine had to wait or another
// processor's clock is ahead. A clock that is set back further starts over; the meter waits
// for one that is set back by less.
const maxLate = 2 * time.Second

func newMeter(window time.Duration) meter {
	return meter{window: int64(window), late: 1 + uint32(maxLate/window)}
}

// count counts an attempt and returns the rate.
func (m *meter) count(t time.Time) uint32 {
	at := m.number(t)
	for {
		seen := m.now.Load()
		next := uint64(at)<<32 | 1
		if number, n := halves(seen); number-at <= m.late { // numbers wrap
			at = number
			if n == math.MaxUint32 {
				return n
			}
			next = seen + 1
		} else if at == number+1 {
			raise(&m.before, seen)
		}
		if m.now.CompareAndSwap(seen, next) {
			return m.most(at, next)
		}
	}
}

// foresee returns what count would return, without counting.
func (m *meter) foresee(t time.Time) uint32 {
	at, seen := m.number(t), m.now.Load()
	next := uint64(at)<<32 | 1
	switch number, n := halves(seen); {
	case number-at <= m.late && n == math.MaxUint32:
		return n
	case number-at <= m.late:
		at, next = number, seen+1
	case at == number+1:
		_, now := halves(next)
		return max(n, now)
	}
	return m.most(at, next)
}

// most is the larger count of a window and of the one before it.
func (m *meter) most(at uint32, window uint64) uint32 {
	_, n := halves(window)
	if number, before := halves(m.before.Load()); number+1 == at {
		return max(n, before)
	}
	return n
}

func (m *meter) number(t time.Time) uint32 { return uint32(t.UnixNano() / m.window) }

func halves(window uint64) (number, attempts uint32) { return uint32(window >> 32), uint32(window) }

// raise replaces an older window, or the same window with fewer attempts.
func raise(p *atomic.Uint64, window uint64) {
	for {
		old := p.Load()
		oldNumber, oldN := halves(old)
		number, n := halves(window)
		behind := oldNumber - number // numbers wrap; a late caller is only a little late
		if 0 < behind && behind < 1000 || behind == 0 && n <= oldN || p.CompareAndSwap(old, window) {
			return
		}
	}
}

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
	window int64 // ns
	// Each holds the number of a window in its upper half and its attempts in the lower one.
	now, before atomic.Uint64
}

// count counts an attempt and returns the rate.
func (m *meter) count(t time.Time) uint32 {
	at := m.number(t)
	for {
		seen := m.now.Load()
		next := uint64(at)<<32 | 1
		if number, n := halves(seen); number == at || number == at+1 { // another processor's clock may be ahead
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
	case (number == at || number == at+1) && n == math.MaxUint32:
		return n
	case number == at || number == at+1:
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

package option

import "sync/atomic"

// silentAfter is the number of attempts without a value after which a gate says that its
// configuration probably reads the wrong place.
const silentAfter = 200

// Silence notices a value that the first attempts of a gate all lack. It costs one atomic load
// once it is settled.
type Silence struct {
	settled atomic.Bool
	seen    atomic.Int32
}

// Note counts an attempt. It returns true once: when all of the first silentAfter attempts
// lacked the value.
func (s *Silence) Note(lacks bool) bool {
	if s.settled.Load() {
		return false
	}
	if !lacks {
		s.settled.Store(true)
		return false
	}
	if s.seen.Add(1) != silentAfter {
		return false
	}
	return !s.settled.Swap(true)
}

package challenge

import (
	"hash/maphash"
	"math/bits"
	"sync"
)

const (
	spentWays = 15
	spentSets = 1 << 16
	// Remembered is how many solutions are remembered at a time, in 8 MiB.
	Remembered = spentWays * spentSets
)

// spent remembers solutions for as long as their tasks are accepted. Its memory is fixed
// when it is made. A solution belongs to one of many small sets; where a set is full,
// the new one replaces one of them, which could then be used again.
type spent struct {
	seed maphash.Seed // so that clients cannot choose which are forgotten
	sets []spentSet
}

// spentSet is as large as two cache lines.
type spentSet struct {
	mu sync.Mutex
	// each is a hash whose last byte is that of the task's minute; 0: empty.
	each [spentWays]uint64
}

func newSpent() *spent { return &spent{maphash.MakeSeed(), make([]spentSet, spentSets)} }

// take spends the proof of a task of that minute. false: it was spent before.
func (s *spent) take(proof []byte, minute, now int64) bool {
	set, mark := s.find(proof, minute)
	set.mu.Lock()
	defer set.mu.Unlock()
	if set.has(mark) {
		return false
	}
	set.each[set.room(mark, now)] = mark
	return true
}

// has says that take would return false.
func (s *spent) has(proof []byte, minute int64) bool {
	set, mark := s.find(proof, minute)
	set.mu.Lock()
	defer set.mu.Unlock()
	return set.has(mark)
}

func (s *spent) find(proof []byte, minute int64) (set *spentSet, mark uint64) {
	hash := maphash.Bytes(s.seed, proof)
	at, _ := bits.Mul64(hash, uint64(len(s.sets)))
	return &s.sets[at], hash<<16 | 0x100 | uint64(byte(minute)) // the upper bits are the set's
}

func (s *spentSet) has(mark uint64) bool {
	for _, m := range s.each {
		if m == mark {
			return true
		}
	}
	return false
}

// room finds a place for one more: an empty one, or one whose task is no longer accepted.
func (s *spentSet) room(mark uint64, now int64) int {
	for i, m := range s.each {
		if age := int8(byte(now) - byte(m)); m == 0 || age > 1 || age < -1 {
			return i
		}
	}
	return int(mark>>32) % spentWays
}

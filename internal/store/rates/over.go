package rates

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"time"
)

const (
	overWays = 8
	// overKeys is how many keys of shared rates an edge remembers as over. Beyond that, it
	// forgets those that may pass soonest, and asks Redis about them again.
	overKeys = 64 << 10
)

// overMemory remembers until when keys of shared rates are over: until then the edge need not
// ask Redis. Other edges can only delay that time. It takes about 1 MiB, from the first attempt
// with a shared rate on. The zero value is ready.
type overMemory struct {
	once sync.Once
	seed maphash.Seed
	sets []overSet
}

type overSet struct {
	mu    sync.Mutex
	keys  [overWays]uint64
	until [overWays]int64 // ns since overBegan
}

// overBegan is what times are counted from.
var overBegan = time.Now()

// wait is how long a key is certainly over; 0: it may pass.
func (m *overMemory) wait(t Try, now time.Time) time.Duration {
	set, key := m.find(t)
	set.mu.Lock()
	defer set.mu.Unlock()
	for i := range set.keys {
		if set.keys[i] == key {
			return max(0, time.Duration(set.until[i])-now.Sub(overBegan))
		}
	}
	return 0
}

// remember records that a key is over until then.
func (m *overMemory) remember(t Try, until time.Time) {
	set, key := m.find(t)
	end := int64(until.Sub(overBegan))
	set.mu.Lock()
	defer set.mu.Unlock()
	at := 0
	for i := range set.keys {
		if set.keys[i] == key {
			set.until[i] = max(set.until[i], end)
			return
		}
		if set.until[i] < set.until[at] {
			at = i
		}
	}
	set.keys[at], set.until[at] = key, end
}

// find returns the set in which a key is, and the key's hash.
func (m *overMemory) find(t Try) (*overSet, uint64) {
	m.once.Do(func() {
		m.seed = maphash.MakeSeed()
		m.sets = make([]overSet, overKeys/overWays)
	})
	var h maphash.Hash
	h.SetSeed(m.seed)
	h.WriteString(t.Rate.kind)
	h.WriteByte(0)
	h.WriteString(t.Key)
	hash := h.Sum64()
	at, _ := bits.Mul64(hash, uint64(len(m.sets)))
	return &m.sets[at], hash | 1 // 0 marks an empty entry
}

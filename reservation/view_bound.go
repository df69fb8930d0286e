package reservation

import (
	"encoding/binary"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/bits-and-blooms/bloom/v3"
)

const (
	// boundFalse is how many of those who have bound nothing cost a question: one in a
	// thousand. A million bindings then take 1.8 MiB.
	boundFalse = 1e-3
	// fewBound and mostBound bound the number of bindings for which a filter is made;
	// with more of them it only says maybe more often.
	fewBound, mostBound = 4096, 16 << 20
	boundParts          = 16
)

// boundFilter says for sure that a binding field was never added. Fields are added
// while others look: to one part, while all others are read.
type boundFilter struct {
	seed  maphash.Seed // nobody can choose a ref that meets another's bits
	room  int64
	added atomic.Int64
	parts [boundParts]boundPart
}

type boundPart struct {
	mu    sync.RWMutex
	bloom *bloom.BloomFilter
	_     [32]byte // a cache line each
}

// newBoundFilter makes a filter with room for twice as many bindings as there are.
func newBoundFilter(bindings int64) *boundFilter {
	f := &boundFilter{seed: maphash.MakeSeed(), room: min(max(2*bindings, fewBound), mostBound)}
	for i := range f.parts {
		f.parts[i].bloom = bloom.NewWithEstimates(uint(f.room/boundParts), boundFalse)
	}
	return f
}

// full says that a larger filter would be better.
func (f *boundFilter) full() bool { return f.added.Load() > f.room && f.room < mostBound }

func (f *boundFilter) add(field string) {
	if f == nil {
		return
	}
	part, hash := f.locate(field)
	part.mu.Lock()
	defer part.mu.Unlock()
	if !part.bloom.TestAndAdd(hash[:]) {
		f.added.Add(1)
	}
}

func (f *boundFilter) maybe(field string) bool {
	part, hash := f.locate(field)
	part.mu.RLock()
	defer part.mu.RUnlock()
	return part.bloom.Test(hash[:])
}

func (f *boundFilter) locate(field string) (*boundPart, [8]byte) {
	var b [8]byte
	hash := maphash.String(f.seed, field)
	binary.LittleEndian.PutUint64(b[:], hash)
	return &f.parts[hash%boundParts], b
}

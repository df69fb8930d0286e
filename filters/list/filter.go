package list

import (
	"encoding/binary"
	"sync"

	"github.com/bits-and-blooms/bloom/v3"
)

const (
	// falsePositives is the share of unlisted values that need an exact lookup: one in
	// ten thousand. A filter for ten million entries then takes 23 MiB.
	falsePositives = 1e-4

	partBits = 6
	parts    = 1 << partBits
)

// filter is a Bloom filter over hashes of entries, in parts: entries are added to
// one part while all the others are read. Hashes must be evenly distributed, and
// clients must not be able to predict them: they could make themselves false positives.
type filter struct {
	parts [parts]segment
	bytes int
}

type segment struct {
	mu    sync.RWMutex
	bloom *bloom.BloomFilter
	_     [32]byte // a cache line each
}

// newFilter makes a filter for this many entries. More entries only make false
// positives more frequent.
func newFilter(entries int) *filter {
	f := new(filter)
	for i := range f.parts {
		b := bloom.NewWithEstimates(uint(max(entries/parts, 16)), falsePositives)
		f.parts[i].bloom = b
		f.bytes += len(b.BitSet().Words()) * 8
	}
	return f
}

// add adds an entry while others may look.
func (f *filter) add(hash uint64) {
	p := &f.parts[hash>>(64-partBits)]
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bloom.Add(spread(hash)[:])
}

// maybe says false when the entry was never added.
func (f *filter) maybe(hash uint64) bool {
	p := &f.parts[hash>>(64-partBits)]
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.bloom.Test(spread(hash)[:])
}

// maybeFrozen is maybe for a filter that no longer changes.
func (f *filter) maybeFrozen(hash uint64) bool {
	return f.parts[hash>>(64-partBits)].bloom.Test(spread(hash)[:])
}

func spread(hash uint64) *[8]byte {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], hash)
	return &b
}

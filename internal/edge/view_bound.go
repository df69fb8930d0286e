package edge

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/bits-and-blooms/bloom/v3"
)

const (
	// boundFalse is the rate of false positives of each stage of a filter: of the attempts
	// that have bound nothing, one in four thousand asks Redis. A million bindings then
	// take 2.2 MB.
	boundFalse = 0.25e-3
	// fewBound and mostBound bound the number of bindings for which a filter is made. With
	// more of them it has more false positives.
	fewBound, mostBound = 4096, 16 << 20
	boundParts          = 16
	// boundGrowth is how much larger a stage is than those before it together.
	boundGrowth = 3
)

// boundFilter is a Bloom filter of binding fields: it knows for certain that a field was
// never added. It may be read while fields are added. It grows by stages, because to fill
// a larger filter again every edge would have to read all bindings from Redis.
type boundFilter struct {
	seed   maphash.Seed // random, so that no client can choose refs that collide with others
	stages atomic.Pointer[[]*boundStage]
}

// boundStage gets fields until it is full. Its parts have locks of their own: adding to
// one leaves the others readable.
type boundStage struct {
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
	f := &boundFilter{seed: maphash.MakeSeed()}
	f.stages.Store(&[]*boundStage{newBoundStage(max(2*bindings, fewBound))})
	return f
}

func newBoundStage(room int64) *boundStage {
	s := &boundStage{room: min(room, mostBound)}
	for i := range s.parts {
		s.parts[i].bloom = bloom.NewWithEstimates(uint(s.room/boundParts), boundFalse)
	}
	return s
}

// grow adds a stage. Only one goroutine may call it at a time.
func (f *boundFilter) grow() {
	stages := slices.Clone(*f.stages.Load())
	stages = append(stages, newBoundStage(min(boundGrowth*f.room(), mostBound-f.room())))
	f.stages.Store(&stages)
}

// room returns the number of bindings for which the filter was made.
func (f *boundFilter) room() (room int64) {
	for _, s := range *f.stages.Load() {
		room += s.room
	}
	return room
}

// added returns about how many bindings the filter has.
func (f *boundFilter) added() (added int64) {
	for _, s := range *f.stages.Load() {
		added += s.added.Load()
	}
	return added
}

// full reports whether the filter should grow.
func (f *boundFilter) full() bool {
	stages := *f.stages.Load()
	last := stages[len(stages)-1]
	return last.added.Load() > last.room && f.room() < mostBound
}

func (f *boundFilter) add(field string) {
	if f == nil {
		return
	}
	part, hash := place(maphash.String(f.seed, field))
	stages := *f.stages.Load()
	before, last := stages[:len(stages)-1], stages[len(stages)-1]
	for _, s := range before {
		if s.parts[part].maybe(hash) {
			return
		}
	}
	p := &last.parts[part]
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.bloom.TestAndAdd(hash[:]) {
		last.added.Add(1)
	}
}

func (f *boundFilter) maybe(field string) bool { return f.maybeHash(maphash.String(f.seed, field)) }

func (f *boundFilter) maybeHash(h uint64) bool {
	part, hash := place(h)
	for _, s := range *f.stages.Load() {
		if s.parts[part].maybe(hash) {
			return true
		}
	}
	return false
}

// excludes reports that neither field was ever added. A filter that is not loaded excludes
// nothing.
func (f *boundFilter) excludes(b *attemptBindings) bool {
	return f != nil && (b.ref == "" || !f.maybe(b.ref)) && (!b.keyed || !f.maybeHash(maphash.Bytes(f.seed, b.key[:])))
}

func (p *boundPart) maybe(hash [8]byte) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.bloom.Test(hash[:])
}

// place returns in which part of every stage a field with a hash is, and the hash.
func place(hash uint64) (part int, b [8]byte) {
	binary.LittleEndian.PutUint64(b[:], hash)
	return int(hash % boundParts), b
}

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
	// boundFalse is how many of those who have bound nothing cost a question, by each
	// stage of a filter: one in four thousand. A million bindings then take 2.2 MB.
	boundFalse = 0.25e-3
	// fewBound and mostBound bound the number of bindings for which a filter is made;
	// with more of them it only says maybe more often.
	fewBound, mostBound = 4096, 16 << 20
	boundParts          = 16
	// boundGrowth is how much larger a stage is than those before it together.
	boundGrowth = 3
)

// boundFilter says for sure that a binding field was never added. Fields are added
// while others look. It grows by stages, because to fill a larger one anew means to read
// all bindings from Redis, by every edge.
type boundFilter struct {
	seed   maphash.Seed // nobody can choose a ref that meets another's bits
	stages atomic.Pointer[[]*boundStage]
}

// boundStage is added to until it is full: to one part, while all others are read.
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

// grow adds a stage. Nobody else may do so at the same time.
func (f *boundFilter) grow() {
	stages := slices.Clone(*f.stages.Load())
	stages = append(stages, newBoundStage(min(boundGrowth*f.room(), mostBound-f.room())))
	f.stages.Store(&stages)
}

// room is for how many bindings the filter was made.
func (f *boundFilter) room() (room int64) {
	for _, s := range *f.stages.Load() {
		room += s.room
	}
	return room
}

// added is about how many bindings it has.
func (f *boundFilter) added() (added int64) {
	for _, s := range *f.stages.Load() {
		added += s.added.Load()
	}
	return added
}

// full says that more room would be better.
func (f *boundFilter) full() bool {
	stages := *f.stages.Load()
	last := stages[len(stages)-1]
	return last.added.Load() > last.room && f.room() < mostBound
}

func (f *boundFilter) add(field string) {
	if f == nil {
		return
	}
	part, hash := f.locate(field)
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

func (f *boundFilter) maybe(field string) bool {
	part, hash := f.locate(field)
	for _, s := range *f.stages.Load() {
		if s.parts[part].maybe(hash) {
			return true
		}
	}
	return false
}

func (p *boundPart) maybe(hash [8]byte) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.bloom.Test(hash[:])
}

// locate is in which part of every stage a field is, and its hash.
func (f *boundFilter) locate(field string) (part int, b [8]byte) {
	hash := maphash.String(f.seed, field)
	binary.LittleEndian.PutUint64(b[:], hash)
	return int(hash % boundParts), b
}

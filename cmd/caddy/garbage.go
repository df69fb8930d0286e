package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// seldom is the GOGC of an edge with a normal heap: a rush makes much garbage, and
	// little of it survives.
	seldom = 400
	// often is the GOGC for a large heap, as with very many open connections. So
	// garbage takes as much memory as live data, or mostGarbage if that is more.
	often       = 100
	mostGarbage = 128 << 20
	// quiet is how long after the last collection the memory of a flood is returned, if
	// the heap may be larger than small.
	quiet = 10 * time.Second
	small = 48 << 20
)

// percentFor is the GOGC for this many live bytes.
func percentFor(live uint64) int {
	return int(min(max(mostGarbage*100/max(live, 1), often), seldom))
}

// collector decides how often garbage is collected.
type collector struct {
	percent int
	cycles  uint64 // at the last check
	rested  bool   // no other collection since then
}

// tune sets the percentage after each collection.
func (c *collector) tune() {
	if p := percentFor(read("/gc/heap/live:bytes")); p != c.percent {
		c.percent = p
		debug.SetGCPercent(p)
	}
}

// rest reports whether it is time to collect what a flood has left. Go itself does so only
// after two minutes, keeps pools through one collection, and returns no memory while
// the heap may grow to the size that the flood needed.
func (c *collector) rest(cycles, goal uint64) bool {
	c.rested = c.rested && cycles == c.cycles
	wants := cycles == c.cycles && !c.rested && goal > small
	c.cycles = cycles
	return wants
}

// look collects if it is time.
func (c *collector) look() {
	if !c.rest(read("/gc/cycles/total:gc-cycles"), read("/gc/heap/goal:bytes")) {
		return
	}
	runtime.GC()
	runtime.GC() // what pools have kept
	c.rested, c.cycles = true, read("/gc/cycles/total:gc-cycles")
}

func read(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// mark becomes garbage at once, so that every collection is detected.
type mark struct{ _ *mark }

func afterCollections(f func()) {
	runtime.SetFinalizer(new(mark), func(*mark) {
		f()
		afterCollections(f)
	})
}

// collectSeldom makes garbage collection cheap while the heap is small, for the life of
// the process.
func collectSeldom() {
	c := &collector{percent: seldom}
	debug.SetGCPercent(seldom)
	afterCollections(c.tune)
	go func() {
		q := new(collector)
		for range time.Tick(quiet) {
			q.look()
		}
	}()
}

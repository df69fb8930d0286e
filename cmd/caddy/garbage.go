package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// seldom is the GOGC of an edge as it is: a rush makes much garbage, and little of it lives.
	seldom = 400
	// often is that of one whose heap is large, as with very many open connections. So
	// garbage takes as much memory as what lives, or mostGarbage where that is more.
	often       = 100
	mostGarbage = 128 << 20
	// quiet is for how long nothing was collected when what a flood has left is given back, if
	// the heap may be larger than small.
	quiet = 10 * time.Second
	small = 48 << 20
)

// percentFor is the GOGC while so many bytes live.
func percentFor(live uint64) int {
	return int(min(max(mostGarbage*100/max(live, 1), often), seldom))
}

// collector says how often garbage is collected.
type collector struct {
	percent int
	cycles  uint64 // when it looked last
	rested  bool   // since then nothing else was collected
}

// tune sets the percentage after each collection.
func (c *collector) tune() {
	if p := percentFor(read("/gc/heap/live:bytes")); p != c.percent {
		c.percent = p
		debug.SetGCPercent(p)
	}
}

// rest says that it is time to collect what a flood has left. Go itself does so only after two
// minutes, keeps pools through one collection, and gives no memory back while the heap may
// grow to what the flood has needed.
func (c *collector) rest(cycles, goal uint64) bool {
	c.rested = c.rested && cycles == c.cycles
	wants := cycles == c.cycles && !c.rested && goal > small
	c.cycles = cycles
	return wants
}

// look collects, if it is time.
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

// mark becomes garbage at once, so that each collection is noticed.
type mark struct{ _ *mark }

func afterCollections(f func()) {
	runtime.SetFinalizer(new(mark), func(*mark) {
		f()
		afterCollections(f)
	})
}

// collectSeldom makes collecting garbage cheap while the heap is small, for as long as the
// process runs.
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

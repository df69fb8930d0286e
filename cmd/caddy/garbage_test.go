package main

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// Garbage takes four times what lives at most, 128 MiB at most, or as much as what lives.
func TestPercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 400, 11 << 20: 400, 32 << 20: 400, 64 << 20: 200, 80 << 20: 160, 128 << 20: 100, 1 << 30: 100} {
		if got := percentFor(live); got != want {
			t.Errorf("%d MiB live: %d, want %d", live>>20, got, want)
		}
	}
}

// Each collection sets the percentage again, so that a heap that was large once does not
// stay so.
func TestTune(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(seldom))
	c := &collector{percent: seldom}
	tuned := make(chan struct{}, 1)
	afterCollections(func() {
		c.tune()
		select {
		case tuned <- struct{}{}:
		default: // the test is over
		}
	})
	after := func(want int) {
		t.Helper()
		got := 0
		for range 10 { // what is heard may be of an earlier collection
			runtime.GC()
			<-tuned
			if got = int(read("/gc/gogc:percent")); got == want {
				return
			}
		}
		t.Errorf("GOGC is %d, want %d", got, want)
	}
	after(seldom)
	large := make([]byte, 200<<20)
	after(often)
	runtime.KeepAlive(large)
	large = nil
	after(seldom)
}

// What a flood has left is collected once when nothing else collects, and not while the edge
// is at work or its heap is small.
func TestRest(t *testing.T) {
	c := new(collector)
	for i, step := range []struct {
		cycles, goal uint64
		want         bool
	}{
		{5, 400 << 20, false}, // at work
		{7, 400 << 20, false},
		{7, 400 << 20, true}, // quiet
		{7, 40 << 20, false}, // small
		{8, 400 << 20, false},
		{8, 400 << 20, true},
	} {
		if got := c.rest(step.cycles, step.goal); got != step.want {
			t.Errorf("step %d: %v", i, got)
		}
	}
	c.rested = true
	if c.rest(8, 400<<20) {
		t.Error("what did not help is done again")
	}
}

// look gives back what pools keep.
func TestLook(t *testing.T) {
	c := &collector{cycles: read("/gc/cycles/total:gc-cycles")}
	large := make([]byte, 200<<20)
	runtime.GC()
	runtime.KeepAlive(large)
	large = nil
	c.cycles = read("/gc/cycles/total:gc-cycles")
	goal := read("/gc/heap/goal:bytes")
	c.look()
	if now := read("/gc/heap/goal:bytes"); now*2 > goal || !c.rested {
		t.Errorf("the heap may grow to %d MiB, before to %d", now>>20, goal>>20)
	}
}

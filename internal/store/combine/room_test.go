package combine_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/store/combine"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// full has a call under way, and Crowded requests behind it.
func full(t *testing.T) *gated {
	g := newGated(t)
	g.first("s")
	for i := range combine.Crowded {
		g.answers.Go(func() { _, _ = g.Do(context.Background(), "s", fmt.Sprint(i), 1, false) })
	}
	stocktest.Eventually(t, "a full queue", func() bool { return g.Waiting() == combine.Crowded })
	return g
}

// Callers wait outside a crowded queue. A call lets as many in as it takes, the first ones first.
func TestRoom(t *testing.T) {
	g := full(t)
	const callers = 3 * combine.MaxTogether
	var in [callers]atomic.Bool
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			in[i].Store(g.AwaitRoom("s", time.Hour))
		})
		stocktest.Eventually(t, "that it waits outside", func() bool { return g.Load().Waiting == combine.Crowded+i+1 })
	}
	inside := func() (n int) {
		for i := range in {
			if in[i].Load() {
				n++
			}
		}
		return n
	}
	g.next()
	stocktest.Eventually(t, "room for others", func() bool { return inside() == combine.MaxTogether })
	for i := range combine.MaxTogether {
		if !in[i].Load() {
			t.Errorf("the caller with number %d waits, and a later one does not", i)
		}
	}
	g.next() // there is room for all now
	g.goOn <- struct{}{}
	all.Wait()
	stocktest.Eventually(t, "an empty queue", func() bool { return g.Load() == combine.Load{} })
	if g.IsCrowded("s") {
		t.Error("an empty queue is crowded")
	}
}

// Requests that are not worth a place any more leave the queue empty: the others are let in all
// the same.
func TestRoomOfAnEmptyQueue(t *testing.T) {
	g := full(t)
	const callers = 3 * combine.Crowded
	var all sync.WaitGroup
	for range callers {
		all.Go(func() { g.AwaitRoom("s", time.Hour) })
	}
	stocktest.Eventually(t, "that they wait outside", func() bool { return g.Load().Waiting == combine.Crowded+callers })
	for range 3 {
		g.goOn <- struct{}{}
	}
	all.Wait()
}

func TestNoRoomInTime(t *testing.T) {
	g := full(t)
	if g.AwaitRoom("s", time.Nanosecond) {
		t.Error("there is room")
	}
	if n := g.Load().Waiting; n != combine.Crowded {
		t.Errorf("%d wait", n)
	}
	if g.IsCrowded("other") {
		t.Error("another queue is crowded")
	}
	if !g.AwaitRoom("other", time.Hour) {
		t.Error("another queue has no room")
	}
}

func TestACloseLetsAllIn(t *testing.T) {
	g := full(t)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() { g.AwaitRoom("s", time.Hour) })
	}
	stocktest.Eventually(t, "that they wait outside", func() bool { return g.Load().Waiting == combine.Crowded+3 })
	g.answers.Go(g.Close) // which waits for the call
	all.Wait()
	g.AwaitRoom("s", time.Hour)
	g.goOn <- struct{}{}
}

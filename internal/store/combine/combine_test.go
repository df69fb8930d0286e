package combine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stockgate/stockgate/internal/store/combine"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// gated is a combiner whose calls wait until the test lets them go.
type gated struct {
	nameCombiner
	t       *testing.T
	begun   chan []string // the names of each call, when it begins
	goOn    chan struct{}
	answers sync.WaitGroup

	mu     sync.Mutex
	failed map[string]error
}

func newGated(t *testing.T) *gated {
	g := &gated{t: t, begun: make(chan []string, 1000), goOn: make(chan struct{}, 1_000_000), failed: map[string]error{}}
	g.nameCombiner = newNameCombiner(func(_ string, names []string) {
		g.begun <- names
		<-g.goOn
	})
	t.Cleanup(func() {
		close(g.goOn)
		g.Close()
		g.answers.Wait()
	})
	return g
}

// ask sends a request in the background, and returns when it is queued or begun.
func (g *gated) ask(ctx context.Context, queue, name string, weight int, settles bool) {
	g.t.Helper()
	before := g.Waiting()
	g.answers.Go(func() {
		got, err := g.Do(ctx, queue, name, weight, settles)
		if err == nil && got != name {
			err = fmt.Errorf("it got the answer of %s", got)
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.failed[name] = err
	})
	stocktest.Eventually(g.t, name+" in the queue", func() bool {
		_, answered := g.answer(name)
		return g.Waiting() > before || answered || len(g.begun) > 0
	})
}

func (g *gated) answer(name string) (error, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	err, ok := g.failed[name]
	return err, ok
}

// next lets the present call continue and returns the next one.
func (g *gated) next() []string {
	g.t.Helper()
	g.goOn <- struct{}{}
	select {
	case names := <-g.begun:
		return names
	case <-stocktest.Soon(g.t).Done():
		g.t.Fatal("no call begins")
		return nil
	}
}

// first starts a call, which stays under way.
func (g *gated) first(queue string) {
	g.t.Helper()
	g.ask(context.Background(), queue, "first "+queue, 1, false)
	<-g.begun
}

// Requests that queue while a call is under way go in the next one, in order and of any kind,
// as far as there is room.
func TestTogetherInOrder(t *testing.T) {
	g := newGated(t)
	g.first("s")
	var want []string
	for i := range combine.MaxTogether + 3 {
		want = append(want, fmt.Sprint(i))
		g.ask(context.Background(), "s", fmt.Sprint(i), 1, i%3 == 0)
	}
	if got := g.next(); !slices.Equal(got, want[:combine.MaxTogether]) {
		t.Errorf("together go %v", got)
	}
	if got := g.next(); !slices.Equal(got, want[combine.MaxTogether:]) {
		t.Errorf("then go %v", got)
	}
}

// The load says what waits and what is under way, in all queues, and nothing at the end.
func TestLoad(t *testing.T) {
	g := newGated(t)
	g.first("s")
	g.first("other")
	for i := range 3 {
		g.ask(context.Background(), "s", fmt.Sprint(i), 1, i == 0)
	}
	if got := g.Load(); got != (combine.Load{Waiting: 3, Batches: 2, Sending: 2}) {
		t.Errorf("at first %+v", got)
	}
	for range 2 { // whichever call ends first, the next one of s has all three
		g.goOn <- struct{}{}
	}
	<-g.begun
	stocktest.Eventually(t, "the call of three is under way", func() bool { return g.Load() == combine.Load{Batches: 1, Sending: 3} })
	g.goOn <- struct{}{}
	stocktest.Eventually(t, "nothing is left", func() bool { return g.Load() == combine.Load{} })
}

// A call is bounded by its work. A request that exceeds the bound goes alone.
func TestHeavyOnesApart(t *testing.T) {
	g := newGated(t)
	g.first("s")
	for i, weight := range []int{combine.MaxWeight - 1, 1, 1, 2 * combine.MaxWeight, 1} {
		g.ask(context.Background(), "s", fmt.Sprint(i), weight, false)
	}
	for _, want := range [][]string{{"0", "1"}, {"2"}, {"3"}, {"4"}} {
		if got := g.next(); !slices.Equal(got, want) {
			t.Errorf("together go %v, want %v", got, want)
		}
	}
}

// A caller that leaves the queue is never sent; the others are. A caller that leaves during its
// call cannot know whether it ran.
func TestWhoLeaves(t *testing.T) {
	g := newGated(t)
	sent, leaveSent := context.WithCancel(context.Background())
	g.ask(sent, "s", "sent", 1, false)
	<-g.begun
	queued, leave := context.WithCancel(context.Background())
	for _, name := range []string{"a", "leaves", "b", "leaves too"} {
		ctx := context.Background()
		if name != "a" && name != "b" {
			ctx = queued
		}
		g.ask(ctx, "s", name, 1, false)
	}
	leave()
	leaveSent()
	for _, name := range []string{"sent", "leaves", "leaves too"} {
		stocktest.Eventually(t, name+" has left", func() bool { _, ok := g.answer(name); return ok })
		err, _ := g.answer(name)
		if !errors.Is(err, shard.ErrUnavailable) || errors.Is(err, shard.ErrNotSent) != (name != "sent") {
			t.Errorf("%s gets %v", name, err)
		}
	}
	if got := g.next(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("together go %v", got)
	}
	if n := g.Waiting(); n != 0 {
		t.Errorf("%d wait", n)
	}
	if _, err := g.Do(queued, "s", "late", 1, false); !errors.Is(err, shard.ErrNotSent) {
		t.Errorf("a caller that had already left gets %v", err)
	}
}

// The queue has an end. A long queue does not keep other sales out: its last attempt is
// rejected instead. Attempts do not displace confirms.
func TestTheQueueIsShared(t *testing.T) {
	g := newGated(t)
	g.first("s")
	g.first("other")
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	defer wg.Wait()
	defer cancel()
	busy := make(chan string, combine.MaxWaiting)
	ask := func(queue, name string) {
		wg.Go(func() {
			if _, err := g.Do(ctx, queue, name, 1, false); errors.Is(err, combine.ErrBusy) {
				busy <- queue
			}
		})
	}
	for i := range combine.MaxWaiting {
		ask("s", fmt.Sprint(i))
	}
	stocktest.Eventually(t, "a full queue", func() bool { return g.Waiting() == combine.MaxWaiting })
	if _, err := g.Do(ctx, "s", "one more", 1, false); !errors.Is(err, combine.ErrBusy) || !errors.Is(err, shard.ErrNotSent) {
		t.Errorf("one more request gets %v", err)
	}
	for i := range 5 {
		ask("other", fmt.Sprint("o", i))
		select {
		case got := <-busy:
			if got != "s" {
				t.Errorf("a request of %s is rejected", got)
			}
		case <-stocktest.Soon(t).Done():
			t.Fatal("no request is rejected")
		}
	}
	g.ask(context.Background(), "s", "confirm", 1, true)
	if err, answered := g.answer("confirm"); answered {
		t.Errorf("a confirm gets %v", err)
	}
	if n := g.Waiting(); n > combine.MaxWaiting+1 || n < combine.MaxWaiting-4 {
		t.Errorf("%d wait", n)
	}
}

// A slow call delays no other queue.
func TestQueuesAreApart(t *testing.T) {
	g := newGated(t)
	g.first("slow")
	g.ask(context.Background(), "slow", "waits", 1, false)
	g.first("other")
	if n := g.Waiting(); n != 1 {
		t.Errorf("%d wait", n)
	}
}

// A request that waits when the combiner is closed is not sent, and nothing is left running.
func TestClosedCombiner(t *testing.T) {
	g := newGated(t)
	g.first("s")
	g.ask(context.Background(), "s", "waits", 1, false)
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.Close()
	}()
	stocktest.Eventually(t, "an empty queue", func() bool { _, ok := g.answer("waits"); return ok })
	if err, _ := g.answer("waits"); !errors.Is(err, shard.ErrNotSent) || !errors.Is(err, shard.ErrUnavailable) {
		t.Errorf("a waiting request gets %v", err)
	}
	if _, err := g.Do(context.Background(), "s", "late", 1, false); !errors.Is(err, shard.ErrNotSent) {
		t.Errorf("a later request gets %v", err)
	}
	g.goOn <- struct{}{}
	<-done
	stocktest.Eventually(t, "the answer", func() bool { _, ok := g.answer("first s"); return ok })
	if err, _ := g.answer("first s"); err != nil {
		t.Errorf("the call under way ends with %v", err)
	}
}

// A panic in a call is an ordinary error for the callers in it, and the next call continues.
func TestACallThatPanics(t *testing.T) {
	c := newNameCombiner(func(_ string, names []string) {
		if names[0] == "bad" {
			panic("nil map")
		}
	})
	defer c.Close()
	if _, err := c.Do(context.Background(), "s", "bad", 1, false); !errors.Is(err, shard.ErrUnavailable) || errors.Is(err, shard.ErrNotSent) {
		t.Errorf("it ends with %v", err)
	}
	if got, err := c.Do(context.Background(), "s", "good", 1, false); got != "good" || err != nil {
		t.Errorf("then %q, %v", got, err)
	}
}

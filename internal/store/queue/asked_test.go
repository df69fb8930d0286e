package queue_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// However many ask about one order, Redis is asked seldom; and each hears what is true after it
// has asked.
func TestManyAskAboutOneOrder(t *testing.T) {
	a := quiet(t, "A", stocktest.Selling(t, stocktest.Options(redistest.Start(t)), 10), one)
	const every = 100 * time.Millisecond
	a.queue.AskEvery(every)
	a.line("r1", "r2", "r3")
	ask := func(id string, want record.State) {
		if p, err := a.queue.Ask(stocktest.Soon(t), "s", id); err != nil || p.State != want {
			t.Errorf("%s is %+v, %v; want %s", id, p, err, want)
		}
	}
	began := time.Now()
	for range 5 {
		ask("r2", record.Waiting)
	}
	if took := time.Since(began); took < 4*every {
		t.Errorf("Redis was asked five times in %v, want once in %v", took, every)
	}
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() { ask("r2", record.Waiting) })
	}
	all.Go(func() { ask("r3", record.Waiting) })
	all.Wait()
	if err := a.queue.Cancel(stocktest.Soon(t), "s", "r2", "left"); err != nil {
		t.Fatal(err)
	}
	ask("r2", record.Released)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	left := make(chan struct{})
	all.Go(func() { // so that there is a question to join
		for {
			select {
			case <-left:
				return
			default:
				ask("r3", record.Waiting)
			}
		}
	})
	for !t.Failed() {
		stocktest.Eventually(t, "a question that has not begun", func() bool { return a.queue.Asks("s", "r3") })
		if _, err := a.queue.Ask(ctx, "s", "r3"); errors.Is(err, context.Canceled) {
			break // else it began before this caller came, who asks now
		}
	}
	close(left)
	all.Wait()
	stocktest.Eventually(t, "nothing that is remembered", func() bool { return a.queue.AskedAbout() == 0 })
}

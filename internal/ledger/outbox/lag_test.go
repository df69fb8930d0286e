package outbox_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// older are the journals of a store as they will be some time later.
type older struct {
	*journal.Journal
	by    atomic.Int64 // nanoseconds
	began atomic.Int64 // how much earlier the journal began, nanoseconds
}

func (o *older) Head(ctx context.Context, sale string) (journal.Head, error) {
	h, err := o.Journal.Head(ctx, sale)
	h.Now, h.Began = h.Now.Add(time.Duration(o.by.Load())), h.Began.Add(-time.Duration(o.began.Load()))
	return h, err
}

// The alarm comes once when the receiver falls behind, and goes once when it has
// caught up.
func TestBehind(t *testing.T) {
	s, r, c := ledgertest.NewSeller(t, redistest.Start(t), 1000), newReceiver(t), newCounts()
	var well atomic.Bool
	r.before = func(int, http.ResponseWriter, *http.Request) int {
		if !well.Load() {
			return 500
		}
		return 0
	}
	later := &older{Journal: s.Store.Journal()}
	run(t, later, nil, options(t, r), c)
	said := func(what string, n int) {
		t.Helper()
		ledgertest.Eventually(t, what, func() bool { have, _ := c.Logged(what); return have >= n })
		if have, _ := c.Logged(what); have != n {
			t.Errorf("%q is said %d times, want %d", what, have, n)
		}
	}
	ledgertest.Eventually(t, "it is tried", func() bool { return r.came() > 3 })
	later.by.Store(int64(time.Minute))
	said("the outbox is behind", 1)
	c.looks(t, 3) // and is behind still
	said("the outbox is behind", 1)
	well.Store(true)
	said("the outbox has caught up", 1)
	untilSent(t, s, r)
	said("the outbox is behind", 1)
}

// The lag is the age of the oldest movement that waits; of a receiver that has nothing yet,
// the age of the journal.
func TestOldestWaits(t *testing.T) {
	s, r, c := ledgertest.NewSeller(t, redistest.Start(t), 1000), newReceiver(t), newCounts()
	var well atomic.Bool
	r.before = func(int, http.ResponseWriter, *http.Request) int {
		if !well.Load() {
			return 500
		}
		return 0
	}
	old := &older{Journal: s.Store.Journal()}
	old.began.Store(int64(time.Hour))
	s.Sell(3)
	run(t, old, nil, options(t, r), c)
	if n, oldest := c.looks(t, 2); n == 0 || oldest < time.Hour {
		t.Errorf("%d movements wait, the oldest for %v: none was sent since the journal began an hour ago", n, oldest)
	}
	well.Store(true)
	untilSent(t, s, r)
	if n, oldest := c.looks(t, 1); n != 0 || oldest != 0 {
		t.Errorf("%d movements wait, the oldest for %v", n, oldest)
	}
	well.Store(false)
	s.Sell(3)
	ledgertest.Eventually(t, "some wait", func() bool { return c.lag("s") > 0 })
	if n, oldest := c.looks(t, 2); n == 0 || oldest == 0 || oldest >= time.Hour {
		t.Errorf("%d movements wait, the oldest for %v: they were made now", n, oldest)
	}
}

// Of a sale in which nothing happens it is noted now and then that the receiver has all.
func TestWellIsNoted(t *testing.T) {
	s, r := ledgertest.NewSeller(t, redistest.Start(t), 1000), newReceiver(t)
	s.Sell(3)
	later := &older{Journal: s.Store.Journal()}
	run(t, later, nil, options(t, r), newCounts())
	before := untilSent(t, s, r)
	later.by.Store(int64(2 * time.Minute))
	ledgertest.Eventually(t, "it is noted", func() bool {
		h, err := s.Store.Journal().Head(ledgertest.Soon(t), "s")
		return err == nil && h.SentAt.After(before.SentAt)
	})
}

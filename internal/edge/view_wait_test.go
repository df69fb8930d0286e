package edge_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// together are attempts of one connection that wait beside each other.
type together struct {
	edge.Waiting
	t     *testing.T
	edge  *edge.Edge
	wakes atomic.Int64
}

func newTogether(t *testing.T, e *edge.Edge) *together {
	c := &together{t: t, edge: e}
	c.Wake = func() { c.wakes.Add(1) }
	return c
}

// judge says "new", "ask" or "later" of an attempt that arrived at that time.
func (c *together) judge(a *sale.Attempt, arrived time.Time) string {
	c.t.Helper()
	l, _ := c.edge.Catalogue().Sale("s")
	isNew, _, err := c.edge.SurelyNewAt(l, a, &edge.Arrival{At: arrived, Waiting: &c.Waiting})
	switch {
	case errors.Is(err, edge.ErrLater):
		return "later"
	case errors.Is(err, shard.ErrUnavailable):
		return "unavailable"
	case err != nil:
		c.t.Errorf("error %v", err)
	}
	return map[bool]string{true: "new", false: "ask"}[isNew]
}

func (c *together) want(a *sale.Attempt, arrived time.Time, want string) {
	c.t.Helper()
	if got := c.judge(a, arrived); got != want {
		c.t.Errorf("attempt with key %q: %s, want %s", a.Key, got, want)
	}
}

// woken waits until the connection was woken so often.
func (c *together) woken(n int64) {
	c.t.Helper()
	stocktest.Eventually(c.t, fmt.Sprint("wake ", n), func() bool { return c.wakes.Load() >= n })
}

// All attempts of a connection share one check that was sent when they had arrived, and the
// connection has one place among those that wait.
func TestAttemptsOfAConnectionShareACheck(t *testing.T) {
	v := newViewed(t, 9)
	v.proxy.HoldReplies("HMGET seq")
	first := later(t, v.Edge, repeating("r2", "key 2", ""))
	stocktest.Eventually(t, "a check", func() bool { return v.Checking("s") })
	if err := v.proxy.WaitHeld(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	c, arrived := newTogether(t, v.Edge), time.Now()
	const streams = 64
	for i := range streams {
		c.want(repeating("r", fmt.Sprint("key ", i), ""), arrived, "later")
	}
	if n := v.WaitingForCheck("s"); n != 1 {
		t.Errorf("the connection has %d places", n)
	}
	v.proxy.Heal()
	<-first
	c.woken(1)
	for i := range streams {
		c.want(repeating("r", fmt.Sprint("key ", i), ""), arrived, "new")
	}
	if n := c.wakes.Load(); n != 1 {
		t.Errorf("%d checks for one batch", n)
	}
	// an attempt that is read before the next check needs none
	c.want(repeating("r", "late", ""), arrived, "new")
	v.proxy.HoldReplies("HMGET seq")
	c.want(repeating("r", "later", ""), time.Now(), "later")
	c.want(repeating("r", "unknown", ""), time.Time{}, "later")
	v.proxy.Heal()
}

// A check says nothing about attempts that arrived after it was sent.
func TestACheckIsNotForLaterArrivals(t *testing.T) {
	v := newViewed(t, 9)
	other := stocktest.Ready(t, stocktest.Options(v.server))
	c := newTogether(t, v.Edge)
	v.proxy.HoldReplies("HMGET seq")
	early, arrived := repeating("r2", "key 2", ""), time.Now()
	c.want(early, arrived, "later")
	if err := v.proxy.WaitHeld(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	holdBound(t, other, "r1", "key 1", "")
	winner, won := repeating("r1", "key 1", ""), time.Now()
	c.want(winner, won, "later")
	c.want(early, arrived, "later")
	if n := v.WaitingForCheck("s"); n != 1 {
		t.Errorf("%d wait for the next check, want 1", n)
	}
	v.proxy.Heal()
	c.woken(1)
	c.want(early, arrived, "new")
	for n := int64(2); ; n++ {
		if got := c.judge(winner, won); got == "ask" {
			break
		} else if got != "later" {
			t.Fatalf("an attempt whose key another edge has bound: %s", got)
		}
		c.woken(n)
	}
	// the view that the first check has found current has no part in what came later
	if c.wakes.Load() < 2 {
		t.Error("it did not wait for another check")
	}
}

// An attempt that waits for a check that fails is unavailable. The next one tries again.
func TestAFailedCheckOfAConnection(t *testing.T) {
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	e := stocktest.NewEdge(t, stocktest.At(p.Addr(), 200*time.Millisecond), edge.Options{})
	stocktest.Selling(t, stocktest.Options(s), 9)
	stocktest.Eventually(t, "a look", func() bool { return e.Refresh(stocktest.Soon(t)) == nil })
	e.SetViewClock(func() time.Duration { return 0 })
	e.Start()
	follows(t, e)
	p.HoldReplies("HMGET")
	c, arrived := newTogether(t, e), time.Now()
	if got := c.judge(repeating("r1", "key 1", ""), arrived); got == "later" {
		c.woken(1)
	}
	if got := c.judge(repeating("r1", "key 1", ""), arrived); got != "unavailable" && got != "ask" { // the view may be lost by now
		t.Errorf("%s, want unavailable", got)
	}
	p.Heal()
	stocktest.Eventually(t, "that it is known again", func() bool {
		arrived = time.Now()
		got := "later"
		stocktest.Eventually(t, "an answer", func() bool {
			got = c.judge(repeating("r1", "key 1", ""), arrived)
			return got != "later"
		})
		return got == "new"
	})
}

// One connection does not take the places of others.
func TestAConnectionHasOnePlace(t *testing.T) {
	v := newViewed(t, 9)
	v.proxy.HoldReplies("HMGET seq")
	first := later(t, v.Edge, repeating("r2", "key 2", ""))
	stocktest.Eventually(t, "a check", func() bool { return v.Checking("s") })
	if err := v.proxy.WaitHeld(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	c := newTogether(t, v.Edge)
	for range 20_000 {
		c.judge(repeating("r", "key", ""), time.Now())
	}
	c.want(repeating("r", "key", ""), time.Now(), "later")
	if n := v.WaitingForCheck("s"); n != 1 {
		t.Errorf("%d places", n)
	}
	v.proxy.Heal()
	<-first
	c.woken(1)
}

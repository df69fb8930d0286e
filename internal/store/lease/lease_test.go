package lease_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/store/lease"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

func TestMain(m *testing.M) { stocktest.Main(m) }

const name = "session"

// edge is one of several that want the same name.
type edge struct {
	*shard.Client
	open atomic.Int64 // leases that use it
}

func newEdge(t *testing.T, b redistest.Backend) *edge {
	e := &edge{Client: stocktest.OpenStore(t, stocktest.Options(b)).Shard()}
	t.Cleanup(func() {
		stocktest.Eventually(t, "the leases use the client no more", func() bool { return e.open.Load() == 0 })
	})
	return e
}

func (e *edge) acquire(ctx context.Context) (*lease.Lease, error) {
	e.open.Add(1)
	return lease.Acquire(ctx, e.Client, name, func() { e.open.Add(-1) })
}

func (e *edge) mustAcquire(t *testing.T) *lease.Lease {
	t.Helper()
	l, err := e.acquire(stocktest.Soon(t))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// One edge has the name at a time, and the next one gets it when it is given up.
func TestOneAtATime(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		a, other := newEdge(t, b), newEdge(t, b)
		first := a.mustAcquire(t)
		left, leave := context.WithCancel(t.Context())
		leave()
		if _, err := other.acquire(left); !errors.Is(err, lease.ErrTaken) {
			t.Fatalf("the second edge: %v", err)
		}
		if !first.StillHeld() {
			t.Error("the first edge has lost it")
		}
		second := make(chan *lease.Lease)
		go func() {
			l, err := other.acquire(stocktest.Soon(t))
			if err != nil {
				t.Error(err)
			}
			second <- l
		}()
		first.GiveUp()
		l := <-second
		if l == nil {
			t.FailNow()
		}
		if !l.StillHeld() || first.StillHeld() {
			t.Error("what was given up is held, or what was acquired is not")
		}
		l.GiveUp()
		stocktest.Eventually(t, "nothing is left in redis", func() bool { return b.Client().DBSize(stocktest.Soon(t)).Val() == 0 })
	})
}

// A holder that has lost the name to another edge, even for a moment, is told so, and takes
// nothing from it.
func TestLost(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		a, other := newEdge(t, b), newEdge(t, b)
		c := b.Client()
		first := a.mustAcquire(t)
		if n := c.Del(stocktest.Soon(t), a.LeaseKey(name)).Val(); n != 1 {
			t.Fatalf("%d keys", n)
		}
		second := other.mustAcquire(t)
		if first.StillHeld() || !second.StillHeld() {
			t.Error("the first still has what the second one has")
		}
		second.GiveUp()
		stocktest.Eventually(t, "the second has given it up", func() bool { return c.DBSize(stocktest.Soon(t)).Val() == 0 })
		if first.StillHeld() {
			t.Error("the first has it again, although another edge had it")
		}
		third := other.mustAcquire(t)
		first.GiveUp()
		stocktest.Eventually(t, "the first one ends", func() bool { return a.open.Load() == 0 })
		if !third.StillHeld() {
			t.Error("an edge that had lost the name has taken it from another one")
		}
		third.GiveUp()
	})
}

// The lease of an edge that dies ends by itself, that of one that lives goes on.
func TestRenewed(t *testing.T) {
	b := redistest.Start(t)
	a, c := newEdge(t, b), b.Client()
	l := a.mustAcquire(t)
	key := a.LeaseKey(name)
	if left := c.PTTL(stocktest.Soon(t), key).Val(); left <= 0 || left > 4*time.Second {
		t.Errorf("it would run for %v", left)
	}
	if !c.PExpire(stocktest.Soon(t), key, 3900*time.Millisecond).Val() {
		t.Fatal("there is no lease")
	}
	stocktest.Eventually(t, "it is renewed", func() bool { return c.PTTL(stocktest.Soon(t), key).Val() > 3900*time.Millisecond })
	l.GiveUp()
}

// Without Redis there is no lease, and it is said at once.
func TestWithoutRedis(t *testing.T) {
	b := redistest.Start(t)
	a := newEdge(t, b)
	l := a.mustAcquire(t)
	b.Kill()
	if _, err := a.acquire(stocktest.Soon(t)); err == nil || errors.Is(err, lease.ErrTaken) {
		t.Errorf("acquired: %v", err)
	}
	if l.StillHeld() {
		t.Error("it is held, as far as anything tells")
	}
	l.GiveUp()
}

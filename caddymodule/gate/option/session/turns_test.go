package session

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/timing"
)

func key(n byte) Key { return Key{n} }

// Of each credential, one request has the turn, whatever the others do.
func TestTurnsExclude(t *testing.T) {
	var inside [3]atomic.Int32
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			for range 2000 {
				keys := []Key{key(0), key(1), key(2)}[random.IntN(2):][:1+random.IntN(2)]
				ctx, leave := context.WithCancel(t.Context())
				if random.IntN(8) == 0 {
					leave()
				}
				turn, _, err := Take(ctx, keys, "", nil)
				if err != nil {
					leave()
					continue
				}
				for _, k := range keys {
					if inside[k[0]].Add(1) != 1 {
						t.Error("two requests have the same credential")
					}
				}
				for _, k := range keys {
					inside[k[0]].Add(-1)
				}
				turn.End()
				turn.End() // again
				leave()
			}
		})
	}
	all.Wait()
	if n := len(turns.byKey); n != 0 {
		t.Errorf("%d credentials are left", n)
	}
}

// Those that wait come in their order, at most eight of them, for at most five seconds.
func TestTurnsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, _, err := Take(t.Context(), []Key{key(7)}, "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		var order []int
		var all sync.WaitGroup
		for i := range maxWaiting {
			all.Go(func() {
				turn, _, err := Take(t.Context(), []Key{key(7)}, "a", nil)
				if err != nil {
					t.Errorf("%d: %v", i, err)
					return
				}
				order = append(order, i)
				turn.End()
			})
			synctest.Wait()
		}
		if _, shared, err := Take(t.Context(), []Key{key(7)}, "a", nil); !errors.Is(err, ErrPending) || shared {
			t.Errorf("the ninth: %v %v", err, shared)
		}
		first.End()
		all.Wait()
		for i, n := range order {
			if i != n {
				t.Fatalf("their order was %v", order)
			}
		}

		first, _, _ = Take(t.Context(), []Key{key(7)}, "a", nil)
		began := time.Now()
		if _, _, err := Take(t.Context(), []Key{key(3), key(7)}, "a", nil); !errors.Is(err, ErrPending) || time.Since(began) != timing.SessionWait.Now() {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		other, _, err := Take(t.Context(), []Key{key(3)}, "a", nil) // it was given back
		if err != nil {
			t.Fatal(err)
		}
		other.End()
		var shared atomic.Bool
		ctx, leave := context.WithCancel(t.Context())
		for _, client := range []string{"b", "c", "d", "e"} {
			all.Go(func() {
				_, many, _ := Take(ctx, []Key{key(7)}, client, nil)
				if many {
					shared.Store(true)
				}
			})
			synctest.Wait()
		}
		leave()
		all.Wait()
		if !shared.Load() {
			t.Error("clients of four addresses wait for one credential, and it is not said")
		}
		first.End()
		if n := len(turns.byKey); n != 0 {
			t.Errorf("%d credentials are left", n)
		}
	})
}

// A cart is remembered for two seconds, for its whole session, until the session changes it.
func TestCarts(t *testing.T) {
	var c Carts
	now := time.Now()
	keys := []Key{key(1), key(2)}
	c.Remember(keys, 7, []byte("cart"), now)
	for name, one := range map[string]struct {
		keys     []Key
		question uint64
		at       time.Time
		want     string
	}{
		"the session":         {keys, 7, now.Add(remembered), "cart"},
		"later":               {keys, 7, now.Add(remembered + 1), ""},
		"one credential only": {keys[:1], 7, now, ""},
		"another one too":     {[]Key{key(1), key(2), key(3)}, 7, now, ""},
		"no session":          {nil, 7, now, ""},
		"another question":    {keys, 8, now, ""},
	} {
		if got := string(c.Recall(one.keys, one.question, one.at)); got != one.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	c.Forget(keys[1:])
	if c.Recall(keys, 7, now) != nil {
		t.Error("a changed cart is remembered")
	}
	big := make([]byte, 64<<10)
	for i := range 2 * maxRemembered / len(big) {
		c.Remember([]Key{{byte(i), byte(i >> 8), 1}}, 7, big, now)
	}
	if c.bytes > maxRemembered || len(c.byKey) > maxRemembered/len(big) {
		t.Errorf("%d bytes of %d carts are remembered", c.bytes, len(c.byKey))
	}
	c.Remember(keys, 7, nil, now.Add(time.Minute))
	if len(c.order) != 1 || len(c.byKey) != 2 {
		t.Errorf("%d old carts are kept", len(c.order))
	}
}

// A request that is no attempt outlives its client, and keeps the turn for 30 seconds at most. One
// whose client still waits goes on without it.
func TestPass(t *testing.T) {
	for name, left := range map[string]bool{"its client waits": false, "its client has left": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, leave := context.WithCancel(t.Context())
				defer leave()
				turn, _, err := Take(client, []Key{key(7)}, "", nil)
				if err != nil {
					t.Fatal(err)
				}
				ctx, done := turn.Pass(client)
				defer done()
				if left {
					leave()
				}
				time.Sleep(passTimeout - time.Second)
				if ctx.Err() != nil {
					t.Error("the request ended before its time")
				}
				next, _, err := Take(t.Context(), []Key{key(7)}, "", nil)
				if err != nil {
					t.Fatalf("the turn did not end: %v", err)
				}
				next.End()
				synctest.Wait()
				if ended := ctx.Err() != nil; ended != left {
					t.Errorf("after the turn the request has ended: %v", ended)
				}
				leave()
				synctest.Wait()
				if ctx.Err() == nil {
					t.Error("the request goes on without turn and client")
				}
				turn.End()
			})
		})
	}
}

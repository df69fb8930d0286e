package reservation_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/redistest"
	"github.com/stockgate/stockgate/reservation"
)

// long is a timeout that never ends: a reserve that is still under way when the
// edge has given up is not too late by its own time.
const long = time.Minute

// The edge loses its connection while its reserve is under way, and releases what
// may have been reserved. Whichever of the two Redis sees first, nothing is held.
func TestAReserveThatOutlivesItsConnection(t *testing.T) {
	t.Run("released before it runs", func(t *testing.T) {
		f := newFaulty(t, long)
		f.proxy.HoldRequests("EVALSHA")
		f.unanswered("r1", f.proxy.WaitHeld)
		f.net.lead(f.server.Addr()) // past what is held
		f.told()
		if got := f.audit(); len(got.tombstones) != 1 {
			t.Errorf("the tombstones are %v, want one", got.tombstones)
		}
		f.proxy.ReleaseRequests()
		if err := f.proxy.WaitIdle(soon(t)); err != nil {
			t.Fatal(err)
		}
		f.nothingHeld()
		if got := state(t, f.direct, "r1"); got != "" {
			t.Errorf("the reservation is %s, want none", got)
		}
	})
	t.Run("released after it ran", func(t *testing.T) {
		f := newFaulty(t, long)
		f.proxy.HoldRequests("EVALSHA")
		f.unanswered("r1", f.proxy.WaitHeld)
		f.proxy.ReleaseRequests()
		if err := f.proxy.WaitIdle(soon(t)); err != nil {
			t.Fatal(err)
		}
		if got := state(t, f.direct, "r1"); got != reservation.Held {
			t.Fatalf("the reservation is %q, want held: the test proves nothing", got)
		}
		f.net.lead(f.proxy.Addr())
		f.told()
		f.nothingHeld()
		if got := state(t, f.direct, "r1"); got != reservation.Released {
			t.Errorf("the reservation is %s, want released", got)
		}
	})
	t.Run("redis stalls", func(t *testing.T) { // SIGSTOP: it executes what is in its socket
		f := newFaulty(t, long)
		before := f.proxy.Requests("EVALSHA")
		f.server.Pause()
		f.unanswered("r1", func(ctx context.Context) error { return f.proxy.WaitRequests(ctx, before+1, "EVALSHA") })
		f.server.Resume()
		if err := f.proxy.WaitIdle(soon(t)); err != nil {
			t.Fatal(err)
		}
		f.net.lead(f.proxy.Addr())
		f.told()
		f.nothingHeld()
	})
}

// A reserve that arrives after the edge's time was up is refused by itself.
func TestAReserveThatComesTooLate(t *testing.T) {
	tests := map[string]struct{ delay, deliver func(*faulty) }{
		"delayed by the network": {
			func(f *faulty) { f.proxy.HoldRequests("EVALSHA") },
			func(f *faulty) { f.proxy.ReleaseRequests() },
		},
		"delayed by a stalled redis": {
			func(f *faulty) { f.server.Pause() },
			func(f *faulty) { f.server.Resume() },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFaulty(t, long)
			before := f.audit()
			test.delay(f)
			// what was sent is taken back; a machine that is slower than its time sends nothing
			for within := 100 * time.Millisecond; f.edge.Backlog() == 0; within *= 2 {
				ctx, cancel := context.WithTimeout(soon(t), within)
				_, refusal, err := hold(ctx, f.edge, "r1", "Ann", 1)
				cancel()
				if refusal != nil || !errors.Is(err, reservation.ErrUnavailable) {
					t.Fatalf("got %v, %v, want %v", refusal, err, reservation.ErrUnavailable)
				}
			}
			test.deliver(f)
			if err := f.proxy.WaitIdle(soon(t)); err != nil {
				t.Fatal(err)
			}
			if err := f.audit().differs(before); err != nil {
				t.Errorf("it changed something: %v", err)
			}
			f.told()
			f.nothingHeld()
			mustHold(t, f.edge, "r2", "Ann", 1)
		})
	}
}

// A crowd that waits for connections sends nothing; only what was sent is released.
func TestWhatWasNotSentIsNotReleased(t *testing.T) {
	f := newFaulty(t, long)
	const buyers = 400 // more than go in one call
	rush := func(name string, within time.Duration) (failed int) {
		// one time for all: who comes later finds no connection to ask for either
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		answers := make(chan error)
		for i := range buyers {
			go func() {
				_, _, err := hold(ctx, f.edge, fmt.Sprint(name, i), fmt.Sprint(i), 1)
				answers <- err
			}()
		}
		for range buyers {
			if err := <-answers; errors.Is(err, reservation.ErrUnavailable) || errors.Is(err, reservation.ErrLate) {
				failed++
			} else if err != nil {
				t.Error(err)
			}
		}
		return failed
	}
	rush("opens the connections", time.Second)
	told := f.edge.Backlog()
	before, sent := f.proxy.Requests("EVALSHA"), 0
	// a machine that is slower than their time sends nothing
	for within := time.Second; sent == 0; within *= 2 {
		f.proxy.HoldRequests("EVALSHA")
		if failed := rush("r", within); failed != buyers {
			t.Fatalf("%d of %d holds failed", failed, buyers)
		}
		f.proxy.ReleaseRequests()
		if err := f.proxy.WaitIdle(soon(t)); err != nil {
			t.Fatal(err)
		}
		sent = f.proxy.Requests("EVALSHA") - before
	}
	if got := f.edge.Backlog() - told; got < sent || got > sent*reservation.MostTogether {
		t.Errorf("%d outcomes wait, %d calls were sent for %d reserves", got, sent, buyers)
	}
	f.told()
	f.audit()
}

// Without a connection nothing is sent, and nothing is left to do.
func TestNothingToDoWithoutRedis(t *testing.T) {
	s := redistest.Start(t)
	e := selling(t, options(s), 3)
	s.Stop()
	_, refusal, err := hold(soon(t), e, "r1", "Ann", 1)
	if refusal != nil || !errors.Is(err, reservation.ErrUnavailable) {
		t.Errorf("got %v, %v, want %v", refusal, err, reservation.ErrUnavailable)
	}
	if n := e.Backlog(); n != 0 {
		t.Errorf("%d outcomes wait, want none: nothing was sent", n)
	}
}

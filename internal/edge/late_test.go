package edge_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/store/combine"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// The edge loses its connection while its reserve is under way, and releases what
// may have been reserved. Whichever of the two Redis sees first, nothing is held.
func TestAReserveThatOutlivesItsConnection(t *testing.T) {
	t.Run("released before it runs", func(t *testing.T) {
		f := stocktest.NewFaulty(t, stocktest.Long)
		f.Proxy.HoldRequests("EVALSHA")
		f.Unanswered("r1", f.Proxy.WaitHeld)
		f.Net.Lead(f.Server.Addr()) // past what is held
		f.Told()
		if got := f.Audit(); len(got.Tombstones) != 1 {
			t.Errorf("the tombstones are %v, want one", got.Tombstones)
		}
		f.Proxy.ReleaseRequests()
		if err := f.Proxy.WaitIdle(stocktest.Soon(t)); err != nil {
			t.Fatal(err)
		}
		f.NothingHeld()
		if got := stocktest.State(t, f.Direct, "r1"); got != "" {
			t.Errorf("the reservation is %s, want none", got)
		}
	})
	t.Run("released after it ran", func(t *testing.T) {
		f := stocktest.NewFaulty(t, stocktest.Long)
		f.Proxy.HoldRequests("EVALSHA")
		f.Unanswered("r1", f.Proxy.WaitHeld)
		f.Proxy.ReleaseRequests()
		if err := f.Proxy.WaitIdle(stocktest.Soon(t)); err != nil {
			t.Fatal(err)
		}
		if got := stocktest.State(t, f.Direct, "r1"); got != record.Held {
			t.Fatalf("the reservation is %q, want held: the test proves nothing", got)
		}
		if !f.Edge.Abandoned("s", "r1") || f.Edge.Abandoned("s", "r2") || f.Edge.Abandoned("other", "r1") {
			t.Error("the edge does not know which reservation it has abandoned")
		}
		f.Net.Lead(f.Proxy.Addr())
		f.Told()
		if f.Edge.Abandoned("s", "r1") {
			t.Error("Redis knows of the release, and the edge still waits")
		}
		f.NothingHeld()
		if got := stocktest.State(t, f.Direct, "r1"); got != record.Released {
			t.Errorf("the reservation is %s, want released", got)
		}
	})
	t.Run("redis stalls", func(t *testing.T) { // SIGSTOP: it executes what is in its socket
		f := stocktest.NewFaulty(t, stocktest.Long)
		before := f.Proxy.Requests("EVALSHA")
		f.Server.Pause()
		f.Unanswered("r1", func(ctx context.Context) error { return f.Proxy.WaitRequests(ctx, before+1, "EVALSHA") })
		f.Server.Resume()
		if err := f.Proxy.WaitIdle(stocktest.Soon(t)); err != nil {
			t.Fatal(err)
		}
		f.Net.Lead(f.Proxy.Addr())
		f.Told()
		f.NothingHeld()
	})
}

// A reserve that arrives after the edge's time was up is refused by itself.
func TestAReserveThatComesTooLate(t *testing.T) {
	tests := map[string]struct{ delay, deliver func(*stocktest.Faulty) }{
		"delayed by the network": {
			func(f *stocktest.Faulty) { f.Proxy.HoldRequests("EVALSHA") },
			func(f *stocktest.Faulty) { f.Proxy.ReleaseRequests() },
		},
		"delayed by a stalled redis": {
			func(f *stocktest.Faulty) { f.Server.Pause() },
			func(f *stocktest.Faulty) { f.Server.Resume() },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := stocktest.NewFaulty(t, stocktest.Long)
			before := f.Audit()
			test.delay(f)
			// what was sent is taken back; a machine that is slower than its time sends nothing
			for within := 100 * time.Millisecond; f.Edge.Backlog() == 0; within *= 2 {
				ctx, cancel := context.WithTimeout(stocktest.Soon(t), within)
				_, refusal, err := stocktest.Hold(ctx, f.Edge, "r1", "Ann", 1)
				cancel()
				if refusal != nil || !errors.Is(err, shard.ErrUnavailable) {
					t.Fatalf("got %v, %v, want %v", refusal, err, shard.ErrUnavailable)
				}
			}
			test.deliver(f)
			if err := f.Proxy.WaitIdle(stocktest.Soon(t)); err != nil {
				t.Fatal(err)
			}
			if err := f.Audit().Differs(before); err != nil {
				t.Errorf("it changed something: %v", err)
			}
			f.Told()
			f.NothingHeld()
			stocktest.MustHold(t, f.Edge, "r2", "Ann", 1)
		})
	}
}

// A crowd that waits for connections sends nothing; only what was sent is released.
func TestWhatWasNotSentIsNotReleased(t *testing.T) {
	f := stocktest.NewFaulty(t, stocktest.Long)
	const buyers = 400 // more than go in one call
	rush := func(name string, within time.Duration) (failed int) {
		// one time for all: who comes later finds no connection to ask for either
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		answers := make(chan error)
		for i := range buyers {
			go func() {
				_, _, err := stocktest.Hold(ctx, f.Edge, fmt.Sprint(name, i), fmt.Sprint(i), 1)
				answers <- err
			}()
		}
		for range buyers {
			if err := <-answers; errors.Is(err, shard.ErrUnavailable) || errors.Is(err, reservation.ErrLate) {
				failed++
			} else if err != nil {
				t.Error(err)
			}
		}
		return failed
	}
	rush("opens the connections", time.Second)
	if err := f.Proxy.WaitIdle(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	told := f.Edge.Backlog()
	before, sent := f.Proxy.Requests("EVALSHA"), 0
	// a machine that is slower than their time sends nothing
	for within := time.Second; sent == 0; within *= 2 {
		f.Proxy.HoldRequests("EVALSHA")
		if failed := rush("r", within); failed != buyers {
			t.Fatalf("%d of %d holds failed", failed, buyers)
		}
		f.Proxy.ReleaseRequests()
		if err := f.Proxy.WaitIdle(stocktest.Soon(t)); err != nil {
			t.Fatal(err)
		}
		sent = f.Proxy.Requests("EVALSHA") - before
	}
	if got := f.Edge.Backlog() - told; got < sent || got > sent*combine.MaxTogether {
		t.Errorf("%d outcomes wait, %d calls were sent for %d reserves", got, sent, buyers)
	}
	f.Told()
	f.Audit()
}

// Without a connection nothing is sent, and nothing is left to do.
func TestNothingToDoWithoutRedis(t *testing.T) {
	s := redistest.Start(t)
	e := stocktest.Selling(t, stocktest.Options(s), 3)
	s.Stop()
	_, refusal, err := stocktest.Hold(stocktest.Soon(t), e, "r1", "Ann", 1)
	if refusal != nil || !errors.Is(err, shard.ErrUnavailable) {
		t.Errorf("got %v, %v, want %v", refusal, err, shard.ErrUnavailable)
	}
	if n := e.Backlog(); n != 0 {
		t.Errorf("%d outcomes wait, want none: nothing was sent", n)
	}
}

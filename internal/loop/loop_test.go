package loop_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stockgate/stockgate/internal/loop"
)

func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
		defer cancel()
		wake, began := make(chan struct{}, 1), time.Now()
		time.AfterFunc(7*time.Second, func() { wake <- struct{}{} })
		var at []time.Duration
		loop.Every(ctx, 5*time.Second, wake, func() { at = append(at, time.Since(began)/time.Second) })
		if want := []time.Duration{0, 5, 7, 10}; !slices.Equal(at, want) {
			t.Errorf("called after %v seconds, want %v", at, want)
		}
		loop.Every(ctx, time.Second, nil, func() { t.Error("called after ctx has ended") })
	})
}

func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		woken := make(chan struct{}, 1)
		woken <- struct{}{}
		for name, c := range map[string]struct {
			wait time.Duration
			wake <-chan struct{}
			took time.Duration
		}{"all of it": {5 * time.Second, nil, 5 * time.Second}, "woken": {5 * time.Second, woken, 0}, "nothing": {0, nil, 0}} {
			began := time.Now()
			if !loop.Rest(ctx, c.wait, c.wake) || time.Since(began) != c.took {
				t.Errorf("%s: %v, want %v", name, time.Since(began), c.took)
			}
		}
		cancel()
		for _, d := range []time.Duration{0, time.Hour} {
			if loop.Rest(ctx, d, nil) {
				t.Errorf("%v after ctx has ended", d)
			}
		}
	})
}

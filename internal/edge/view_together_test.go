package edge_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// Attempts that share a check have the time of its end in common, which lies between their
// coming and their answer. An attempt that did not wait gets no time.
func TestWhenACheckEnded(t *testing.T) {
	v := newViewed(t, 9)
	l, _ := v.Catalogue().Sale("s")
	v.proxy.HoldReplies("HMGET seq")
	answer := later(t, v.Edge, repeating("r1", "key 1", ""))
	stocktest.Eventually(t, "a check", func() bool { return v.Checking("s") })
	if err := v.proxy.WaitHeld(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	const waiting = 10
	begun, ends := time.Now(), make([]time.Time, waiting)
	var all sync.WaitGroup
	for i := range ends {
		all.Go(func() {
			var err error
			if _, ends[i], err = v.SurelyNewAt(l, repeating("r2", "key 2", ""), new(edge.Arrival)); err != nil {
				t.Error(err)
			}
		})
	}
	stocktest.Eventually(t, "that they share the next check", func() bool { return v.WaitingForCheck("s") == waiting })
	v.proxy.Heal()
	<-answer
	all.Wait()
	for i, at := range ends {
		if at != ends[0] || at.Before(begun) || at.After(time.Now()) {
			t.Errorf("attempt %d waited until %v, the first until %v", i, at, ends[0])
		}
	}
	e := stocktest.Selling(t, stocktest.Options(redistest.Embedded(t)), 9) // it follows nothing
	u, _ := e.Catalogue().Sale("s")
	if isNew, at, err := e.SurelyNewAt(u, repeating("r1", "key 1", ""), new(edge.Arrival)); isNew || err != nil || !at.IsZero() {
		t.Errorf("without a view: new %v at %v, error %v", isNew, at, err)
	}
}

package reservation_test

import (
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// An edge's estimate of Redis's time may lie before what has just happened: who does not
// ask for an age gets it all the same.
func TestHoldsOfThisMoment(t *testing.T) {
	noon := time.UnixMilli(1_795_000_000_000)
	r := &reservation.Record{ID: "r", State: record.Held, Changed: noon}
	for _, c := range []struct {
		older time.Duration
		now   time.Time
		want  bool
	}{
		{0, noon.Add(-time.Second), true},
		{time.Second, noon.Add(999 * time.Millisecond), false},
		{time.Second, noon.Add(time.Second), true},
	} {
		f := reservation.HoldFilter{State: record.Held, Older: c.older}
		if got := f.Takes(r, c.now); got != c.want {
			t.Errorf("older than %v, %v after: %t", c.older, c.now.Sub(noon), got)
		}
	}
}

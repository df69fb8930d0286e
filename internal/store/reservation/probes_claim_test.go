package reservation_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// Who can ask about few at once claims few, and goes on behind them: each is claimed
// once, whatever else is in doubt.
func TestProbesAreClaimedAFewAtATime(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e := stocktest.Selling(t, stocktest.Options(b), 30)
		var want []string
		for i := range 20 {
			id := fmt.Sprintf("r%02d", i)
			mine := stocktest.HoldOptions
			if i%2 == 0 {
				mine.Gate = "other"
			} else {
				want = append(want, id)
			}
			if h, refusal, err := stocktest.HoldOn(stocktest.Soon(t), e, id, fmt.Sprintf("buyer %d", i), 1, mine); err != nil || refusal != nil {
				t.Fatal(h, refusal, err)
			}
			if _, err := e.DoubtEventually(stocktest.Soon(t), "s", id, "status_500"); err != nil {
				t.Fatal(err)
			}
		}
		plan := reservation.ProbePlan{Wait: time.Hour, LongestWait: time.Hour, Tries: 5, AtOnce: 3}
		var claimed []string
		for calls, at := 1, 0; ; calls++ {
			due, next, err := e.Store.TakeDueProbes(stocktest.Soon(t), "s", "", plan, at)
			if err != nil || len(due) > 3 || calls > 20 {
				t.Fatal(due, next, err)
			}
			for _, d := range due {
				claimed = append(claimed, d.ID)
			}
			if at = next; at == 0 {
				break
			}
		}
		slices.Sort(claimed)
		if !slices.Equal(claimed, want) {
			t.Errorf("claimed %v, want %v", claimed, want)
		}
		if due, next, err := e.Store.TakeDueProbes(stocktest.Soon(t), "s", "", plan, 0); len(due) > 0 || next != 0 || err != nil {
			t.Errorf("again: %v %d %v", due, next, err)
		}
	})
}

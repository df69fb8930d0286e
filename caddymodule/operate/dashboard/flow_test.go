package dashboard

import (
	"math"
	"slices"
	"testing"
	"time"
)

// A pace tells how fast units are taken, soon after the first ones; it is over soon after the last.
func TestPaceOfAnItem(t *testing.T) {
	began := time.Now()
	for _, perSecond := range []int64{1, 5, 200} {
		var f flow
		for second := range 120 {
			now := began.Add(time.Duration(second) * time.Second)
			f.add(now, perSecond)
			if got := f.pace(now.Add(time.Second)); second > 5 && math.Abs(got-float64(perSecond)) > 0.2*float64(perSecond) {
				t.Fatalf("after %d s: %v a second, want %d", second, got, perSecond)
			}
		}
		if got := f.pace(began.Add(time.Hour)); got != 0 {
			t.Errorf("an hour later: %v", got)
		}
	}
	var f flow
	if f.add(began, 3); f.pace(began.Add(time.Second)) <= 0 {
		t.Error("3 units make no pace")
	}
	if f.add(began.Add(time.Second), -3); f.pace(began.Add(2*time.Second)) != 0 {
		t.Error("units that came back make a pace")
	}
}

// A failure lasts until it is over; the next one is another. Their number is bounded.
func TestFailures(t *testing.T) {
	var f failures
	at := time.UnixMilli(1000)
	down, silent := failure{What: "not_selling", At: 1000}, failure{What: "silent", Edge: "shop-2", At: 500}
	f.note(at, []failure{down})
	f.note(at.Add(time.Second), []failure{down, silent})
	f.note(at.Add(2*time.Second), []failure{silent})
	f.note(at.Add(3*time.Second), []failure{{What: "not_selling", At: 4000}})
	want := []failure{{"not_selling", "", 1000, 3000}, {"silent", "shop-2", 500, 4000}, {"not_selling", "", 4000, 0}}
	if !slices.Equal(f.list, want) {
		t.Errorf("%+v, want %+v", f.list, want)
	}
	for i := range 3 * maxFailures {
		f.note(at.Add(time.Duration(i)*time.Minute), nil)
		f.note(at.Add(time.Duration(i)*time.Minute+time.Second), []failure{down})
	}
	if len(f.list) != maxFailures {
		t.Errorf("%d failures", len(f.list))
	}
}

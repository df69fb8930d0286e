package dashboard

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// A quantile is estimated within its bucket, of what was counted since.
func TestQuantile(t *testing.T) {
	bounds := []float64{.001, .002, .005, math.Inf(1)}
	past := histogram{Bounds: bounds, Counts: []uint64{100, 100, 100, 100}}
	for _, c := range []struct {
		counts []uint64
		share  float64
		want   float64
	}{
		{[]uint64{100, 100, 100, 100}, 0.5, math.NaN()},
		{[]uint64{110, 110, 110, 110}, 0.5, 0.5},
		{[]uint64{100, 110, 110, 110}, 0.5, 1.5},
		{[]uint64{100, 150, 200, 200}, 0.99, 4.94},
		{[]uint64{100, 100, 100, 101}, 0.99, 5},
	} {
		now := histogram{Bounds: bounds, Counts: c.counts}
		if got := now.Quantile(past, c.share); math.Abs(got-c.want) > 1e-9 || math.IsNaN(got) != math.IsNaN(c.want) {
			t.Errorf("%v, %v: %v, want %v", c.counts, c.share, got, c.want)
		}
	}
}

// An hour of history is thinned, not dropped; ten minutes are there by the second. Rates are
// means, stock is what it was.
func TestHistory(t *testing.T) {
	var h points
	const hours = 3 * 3600
	for second := range hours {
		p := point{at: int64(second) * 1000}
		p.values[0], p.values[4] = float64(second), float64(second%2)*10
		if !h.due(p.at) {
			t.Fatalf("no point is due at %d s", second)
		}
		h.add(p)
		if h.due(p.at + 500) {
			t.Fatalf("another point is due half a second later")
		}
	}
	all := h.all()
	if len(all) < 600+600 || len(all) > 600+720+1440 {
		t.Errorf("%d points", len(all))
	}
	if all[0].at > 60_000 || all[len(all)-1].at != (hours-1)*1000 {
		t.Errorf("from %d to %d", all[0].at, all[len(all)-1].at)
	}
	for i := 1; i < len(all); i++ {
		age, step := all[len(all)-1].at-all[i].at, all[i].at-all[i-1].at
		if step <= 0 || step > 60_000 || age < 590_000 && step != 1000 || age < 7_000_000 && step > 10_000 {
			t.Fatalf("%d ms ago: a step of %d ms", age, step)
		}
		if all[i].values[0] != float64(all[i].at/1000) {
			t.Fatalf("the stock at %d was %v", all[i].at, all[i].values[0])
		}
		if mean := all[i].values[4]; age > 700_000 && i > 1 && math.Abs(mean-5) > 1 {
			t.Fatalf("%d ms ago: a rate of %v, which was 5", age, mean)
		}
	}
	if was, ok := h.before((hours - 10) * 1000); !ok || was.at != (hours-10)*1000 {
		t.Errorf("ten seconds ago: %v %v", was.at, ok)
	}
}

// What moves comes first, and stops to count after a while.
func TestMoving(t *testing.T) {
	now := time.Now()
	i := item{score: 8, at: now}
	if got := i.moving(now.Add(2 * moverHalf)); math.Abs(got-2) > 1e-9 {
		t.Errorf("after two half-lives: %v, want 2", got)
	}
}

// A frame has no number that JSON cannot say.
func TestUnknownNumbers(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if known(v) != nil {
			t.Errorf("%v is known", v)
		}
	}
	if v := known(0.12345); v == nil || *v != 0.123 {
		t.Errorf("known: %v", v)
	}
}

// In the largest sale a search sorts no more items than it shows, and finds the right ones.
func TestSearchInALargeSale(t *testing.T) {
	s := newSaleReader("big")
	for n := range 100_000 {
		i := newItem(fmt.Sprintf("SKU%06d", n), "", n)
		i.Confirmed, i.Available = int64(n*7919%100_003), int64(n)
		s.inOrder = append(s.inOrder, i)
	}
	for _, c := range []struct {
		text, order, first, last string
		matches                  int
	}{
		{"", "", "SKU000000", "SKU000049", 100_000},
		{"", "available", "SKU000000", "SKU000049", 100_000},
		{"sku00", "held", "SKU000000", "SKU000049", 10_000},
		{"99", "sku", "SKU000099", "SKU002992", 3_691},
		{"zz", "sold", "", "", 0},
	} {
		list := s.search(c.text, c.order, 50)
		first, last := "", ""
		if n := len(list.Items); n > 0 {
			first, last = list.Items[0].SKU, list.Items[n-1].SKU
		}
		if list.Matches != c.matches || first != c.first || last != c.last {
			t.Errorf("%q by %q: %d matches, %s to %s", c.text, c.order, list.Matches, first, last)
		}
	}
	sold := s.search("", "sold", 200).Items
	for i := 1; i < len(sold); i++ {
		if sold[i].Stock[4] > sold[i-1].Stock[4] || sold[0].Stock[4] < 99_900 {
			t.Fatalf("number %d sold %d, the one before %d", i, sold[i].Stock[4], sold[i-1].Stock[4])
		}
	}
}

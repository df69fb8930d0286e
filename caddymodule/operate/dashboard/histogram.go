package dashboard

import (
	"math"

	dto "github.com/prometheus/client_model/go"
)

// histogram has counts of times.
type histogram struct {
	bounds []float64 // in seconds; the last is +Inf
	counts []uint64  // up to each bound
}

func histogramOf(m *dto.Histogram) (h histogram) {
	for _, b := range m.GetBucket() {
		h.bounds, h.counts = append(h.bounds, b.GetUpperBound()), append(h.counts, b.GetCumulativeCount())
	}
	h.bounds, h.counts = append(h.bounds, math.Inf(1)), append(h.counts, m.GetSampleCount())
	return h
}

// total is how many times are counted.
func (h histogram) total() uint64 {
	if len(h.counts) == 0 {
		return 0
	}
	return h.counts[len(h.counts)-1]
}

// quantile returns the time in ms that a share of those since past did not exceed, estimated
// as Prometheus does; NaN: there were none.
func (h histogram) quantile(past histogram, share float64) float64 {
	if len(h.counts) == 0 {
		return math.NaN()
	}
	in := func(i int) float64 {
		if len(past.counts) != len(h.counts) {
			return float64(h.counts[i])
		}
		return float64(h.counts[i] - past.counts[i])
	}
	last := len(h.bounds) - 1
	wanted := share * in(last)
	if in(last) == 0 {
		return math.NaN()
	}
	for i, bound := range h.bounds {
		if in(i) < wanted {
			continue
		}
		low, below := 0.0, 0.0
		if i > 0 {
			low, below = h.bounds[i-1], in(i-1)
		}
		if i == last || in(i) == below {
			return low * 1000
		}
		return (low + (bound-low)*(wanted-below)/(in(i)-below)) * 1000
	}
	return math.NaN()
}

// reserves returns a quantile of the reserves between two moments, in ms.
func (n *counts) reserves(past *counts, share float64) float64 {
	if n == nil {
		return math.NaN()
	}
	if past == nil {
		past = new(counts)
	}
	return n.reserve.quantile(past.reserve, share)
}

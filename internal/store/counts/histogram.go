package counts

import "math"

// Histogram has counts of times.
type Histogram struct {
	Bounds []float64 // in seconds; the last is +Inf
	Counts []uint64  // up to each bound
}

// Total is how many times are counted.
func (h Histogram) Total() uint64 {
	if len(h.Counts) == 0 {
		return 0
	}
	return h.Counts[len(h.Counts)-1]
}

// Quantile returns the time in ms that a share of those since past did not exceed, estimated
// as Prometheus does; NaN: there were none.
func (h Histogram) Quantile(past Histogram, share float64) float64 {
	if len(h.Counts) == 0 {
		return math.NaN()
	}
	in := func(i int) float64 {
		if len(past.Counts) != len(h.Counts) {
			return float64(h.Counts[i])
		}
		return float64(h.Counts[i] - past.Counts[i])
	}
	last := len(h.Bounds) - 1
	wanted := share * in(last)
	if in(last) == 0 {
		return math.NaN()
	}
	for i, bound := range h.Bounds {
		if in(i) < wanted {
			continue
		}
		low, below := 0.0, 0.0
		if i > 0 {
			low, below = h.Bounds[i-1], in(i-1)
		}
		if i == last || in(i) == below {
			return low * 1000
		}
		return (low + (bound-low)*(wanted-below)/(in(i)-below)) * 1000
	}
	return math.NaN()
}

package dashboard

import (
	"math"

	dto "github.com/prometheus/client_model/go"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
)

// histogram has counts of times.
type histogram = edgeruntime.Histogram

func histogramOf(m *dto.Histogram) (h histogram) {
	for _, b := range m.GetBucket() {
		h.Bounds, h.Counts = append(h.Bounds, b.GetUpperBound()), append(h.Counts, b.GetCumulativeCount())
	}
	h.Bounds, h.Counts = append(h.Bounds, math.Inf(1)), append(h.Counts, m.GetSampleCount())
	return h
}

// reserves returns a quantile of the reserves between two moments, in ms.
func (n *counts) reserves(past *counts, share float64) float64 {
	if n == nil {
		return math.NaN()
	}
	if past == nil {
		past = new(counts)
	}
	return n.reserve.Quantile(past.reserve, share)
}

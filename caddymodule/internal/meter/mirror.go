package meter

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// mirrorMetrics are the series of the mirror.
type mirrorMetrics struct {
	lag   *prometheus.GaugeVec
	drift *prometheus.CounterVec
}

func newMirrorMetrics() mirrorMetrics {
	return mirrorMetrics{
		lag: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "stockgate_mirror_lag_seconds", Help: "For how long the shop's own Redis lacks changes.",
		}, []string{"sale"}),
		drift: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stockgate_mirror_drift_total", Help: "Keys of the mirror that something else has written.",
		}, []string{"sale"}),
	}
}

func (m *mirrorMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.lag, m.drift}
}

// MirrorLag says how far the mirror of a sale is behind.
func (JournalService) MirrorLag(sale string, lag time.Duration) {
	m := &All().mirror
	m.lag.WithLabelValues(sale).Set(lag.Seconds())
	m.drift.WithLabelValues(sale) // a series that exists from the start can be monitored
}

// NoMirror ends the series of a sale that is mirrored no more.
func (JournalService) NoMirror(sale string) { All().mirror.lag.DeleteLabelValues(sale) }

// MirrorDrift counts keys that were not as the mirror had written them.
func (JournalService) MirrorDrift(sale string, keys int) {
	All().mirror.drift.WithLabelValues(sale).Add(float64(keys))
}

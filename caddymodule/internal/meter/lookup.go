package meter

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stockgate/stockgate/internal/sale"
)

// lookupMetrics are those of questions to the shop about carts.
type lookupMetrics struct {
	total   *prometheus.CounterVec
	seconds prometheus.Histogram
	asks    *prometheus.CounterVec
}

func newLookupMetrics() lookupMetrics {
	m := lookupMetrics{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stockgate_lookups_total",
			Help: "Lookups: answered, or why the attempt was refused (no_cart, no_buyer, busy, unavailable).",
		}, []string{"answer"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "stockgate_lookup_seconds",
			Help:    "Time of a lookup, with the wait for its turn.",
			Buckets: []float64{.005, .01, .02, .05, .1, .2, .5, 1, 2, 5},
		}),
	}
	for _, answer := range []sale.Reason{"answered", sale.NoCart, sale.NoBuyer, sale.Busy, sale.Unavailable} {
		m.total.WithLabelValues(string(answer)) // a series that exists from the start can be monitored
	}
	m.asks = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "stockgate_asks_total",
		Help: "Questions how an order ended: sold, not_sold, unclear, failed or unnamed; fewer or more units sold than reserved.",
	}, []string{"answer"})
	for _, answer := range []string{"sold", "not_sold", "unclear", "failed", "fewer", "more"} {
		m.asks.WithLabelValues(answer)
	}
	return m
}

// CountLookup counts a question to the shop about a cart.
func CountLookup(answer string, took time.Duration) {
	m := All().lookup
	m.total.WithLabelValues(answer).Inc()
	m.seconds.Observe(took.Seconds())
}

// CountAsk counts a question to the shop how an order ended, and what came of it.
func CountAsk(answer string) { All().lookup.asks.WithLabelValues(answer).Inc() }

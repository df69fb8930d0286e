package meter

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/stockgate/stockgate/internal/sale"
)

// The outcomes of attempts in shadow.
const (
	// WouldRefuse: it would have been refused, and as far as the answer says the shop did not
	// sell it.
	WouldRefuse = "would_refuse"
	// SoldPast: it would have been refused, and the shop sold it.
	SoldPast = "sold_past"
)

// The reasons why a request in shadow is not judged.
const (
	SkippedBusy   = "busy"   // too many are watched
	SkippedRedis  = "redis"  // Redis gave no answer
	SkippedBody   = "body"   // the shop answered before it had read the body
	SkippedFailed = "failed" // a fault of the edge
)

func newShadowMetrics() (attempts, skipped *prometheus.CounterVec) {
	attempts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "stockgate_shadow_total",
		Help: "Attempts in shadow: would_refuse, sold_past (the shop sold it), or let through: confirmed, released, in_doubt, repeated, passed.",
	}, []string{"sale", "outcome", "reason"})
	skipped = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "stockgate_shadow_skipped_total",
		Help: "Requests in shadow that were not judged: busy, redis (no answer), body (the shop did not read it all) or failed.",
	}, []string{"why"})
	for _, why := range []string{SkippedBusy, SkippedRedis, SkippedBody, SkippedFailed} {
		skipped.WithLabelValues(why) // a series that exists from the start can be monitored
	}
	return attempts, skipped
}

// CountShadow counts one attempt in shadow. saleID is as in CountAttempt.
func CountShadow(saleID, outcome string, reason sale.Reason) {
	All().shadowCounters.find(attemptLabels{saleID, outcome, reason}).Inc()
}

// SkipShadow counts one request in shadow that was not judged.
func SkipShadow(why string) { All().shadowSkipped.WithLabelValues(why).Inc() }

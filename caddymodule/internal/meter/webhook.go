package meter

import "github.com/prometheus/client_golang/prometheus"

// WebhookResult is what became of a payment's webhook, or of one of its events.
type WebhookResult int

// The results.
const (
	WebhookConfirmed WebhookResult = iota
	WebhookReleased
	WebhookSettled        // the hold was settled before
	WebhookOther          // no rule matches the event
	WebhookNoRef          // a rule matches, and the event has no ref
	WebhookUnknownRef     // no sale knows the ref
	WebhookAmbiguous      // several reservations have the ref
	WebhookRefundNeeded   // the units are sold to others
	WebhookShopFailed     // the shop did not take it
	WebhookRedisFailed    // Redis did not answer
	WebhookProviderFailed // the provider was asked and did not answer, or its certificate was not to be had
	WebhookBusy           // too many at a time
	WebhookUnreadable     // it is not of the scheme
	WebhookUnauthorized   // the signature or its time is wrong
	WebhookLimited        // too many of this client were not accepted, or come at a time
	webhookResults
)

var webhookNames = [webhookResults]string{
	"confirmed", "released", "settled", "other", "no_ref", "unknown_ref", "ambiguous", "refund_needed", "shop_failed", "redis_failed", "provider_failed", "busy", "unreadable", "unauthorized", "limited",
}

// webhookMetrics has each counter, found once.
type webhookMetrics struct {
	total *prometheus.CounterVec
	by    [webhookResults]prometheus.Counter
}

func newWebhookMetrics() (m webhookMetrics) {
	m.total = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "stockgate_webhooks_total",
		Help: "Events of payment webhooks: confirmed, released, settled (before), other (no rule matches), no_ref, unknown_ref, ambiguous, refund_needed, shop_failed, redis_failed, provider_failed, busy, unreadable, unauthorized or limited.",
	}, []string{"result"})
	for i, name := range webhookNames {
		m.by[i] = m.total.WithLabelValues(name)
	}
	return m
}

// CountWebhook counts one event.
func CountWebhook(r WebhookResult) { All().webhooks.by[r].Inc() }

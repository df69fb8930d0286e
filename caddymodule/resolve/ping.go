package resolve

import (
	"net/http"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/filters/webhook"
)

// maxPing bounds the body of a request that may be a ping, in bytes.
const maxPing = 64

// mayBePing reports whether a request that is not signed may be the provider's ping, by its head.
func (h *Resolve) mayBePing(r *http.Request) bool {
	return h.preset.Ping != nil && r.ContentLength > 0 && r.ContentLength <= maxPing
}

// isPing reports whether a webhook is the provider's ping. It settles nothing, and goes to the shop.
func (h *Resolve) isPing(m *webhook.Delivery) bool {
	return h.preset.Ping != nil && len(m.Body) <= maxPing && h.preset.Ping(m)
}

// admitPing bounds the pings of one client apart from all else: a client that sends many is refused those,
// and none of its webhooks that are signed.
func (h *Resolve) admitPing(now time.Time, client string) *refusal {
	wait := h.pings.Take(now, client)
	if wait == 0 {
		return nil
	}
	return &refusal{
		status: http.StatusTooManyRequests, counts: meter.WebhookLimited, retryAfter: int(wait/time.Second) + 1,
		text: "too many pings of this address",
	}
}

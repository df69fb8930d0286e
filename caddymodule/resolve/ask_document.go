package resolve

import (
	"fmt"
	"net/http"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/filters/webhook"
)

// readAsker compiles how the provider is asked.
func (h *Resolve) readAsker() (err error) {
	if h.Ask == nil {
		return nil
	}
	if h.preset.Events != nil {
		return fmt.Errorf("ask: with %s the webhook itself tells what is paid: leave out ask", h.Verify[0].Scheme)
	}
	if h.asker, err = h.Ask.compile(h.log); err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	return nil
}

// document returns what tells of the payment: the webhook, or the provider's answer about it. A client
// that names payments which the provider does not know counts as one whose webhooks are not accepted.
func (h *Resolve) document(r *http.Request, m *webhook.Delivery, client string) ([]byte, *refusal) {
	if h.asker == nil {
		return m.Body, nil
	}
	answer, no := h.asker.about(r, m.Body, client)
	if no != nil && (no.counts == meter.WebhookUnauthorized || no.counts == meter.WebhookUnreadable) {
		_ = h.bad.Take(time.Now(), client)
	}
	return answer, no
}

package resolve

import (
	"net/http"
	"strconv"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
)

// retryAfter is in seconds. Providers have a schedule of their own.
const retryAfter = 30

// refusal is an answer of this handler's own, in plain text.
type refusal struct {
	status     int
	counts     meter.WebhookResult
	text       string
	retryAfter int // seconds; 0: none
}

// blamesClient reports whether the client sent what is not accepted.
func (no *refusal) blamesClient() bool {
	return no.counts != meter.WebhookLimited && no.status < http.StatusInternalServerError
}

// Error makes a refusal pass through a verifier.
func (no *refusal) Error() string { return no.text }

func unavailable(counts meter.WebhookResult, text string) *refusal {
	return &refusal{status: http.StatusServiceUnavailable, counts: counts, text: text, retryAfter: retryAfter}
}

// answer counts the refusal and writes it.
func (no *refusal) answer(w http.ResponseWriter) error {
	meter.CountWebhook(no.counts)
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(no.text)+1))
	if no.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(no.retryAfter))
	}
	w.WriteHeader(no.status)
	_, _ = w.Write([]byte(no.text + "\n"))
	return nil
}

package resolve

import (
	"bytes"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/filters/webhook"
)

// clientOf is the client that rates and bounds tell apart.
func clientOf(r *http.Request) string {
	ip, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	return attempt.Network(ip, attempt.DefaultIPv6Prefix)
}

// accept reads and verifies a webhook. What costs comes last: a client that was not accepted
// too often, a request whose headers tell enough, and one that would be one body too many, are
// refused before a byte of the body is read.
func (h *Resolve) accept(w http.ResponseWriter, r *http.Request, client string) (*webhook.Delivery, *refusal) {
	now := time.Now()
	if wait := h.bad.Peek(now, client); wait > 0 {
		endConnection(w, r)
		return nil, &refusal{
			status: http.StatusTooManyRequests, counts: meter.WebhookLimited, retryAfter: int(wait/time.Second) + 1,
			text: "too many webhooks of this address were not accepted: see that the secret is that of this endpoint",
		}
	}
	m := &webhook.Delivery{Header: r.Header, URI: sentURI(r)}
	if h.certificates != nil {
		m.Certificate = func(url string) (*rsa.PublicKey, error) { return h.certificates.of(r.Context(), url, client) }
	}
	no := h.look(w, r, m, now)
	if no == nil {
		if full := h.reading.begin(client); full != nil {
			endConnection(w, r)
			return nil, full // it says nothing of the client's secret
		}
		no = h.readBody(w, r, m, now, client)
	}
	if no != nil && no.blamesClient() {
		_ = h.bad.Take(now, client)
	}
	return m, no
}

// sentURI returns path and query as the client sent them, whatever was rewritten since.
func sentURI(r *http.Request) string {
	if sent, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		return sent.RequestURI
	}
	return r.RequestURI
}

// endConnection ends a connection with the answer: else net/http waits before it for the rest of a body
// that may never come.
func endConnection(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
}

// look refuses a request by its head.
func (h *Resolve) look(w http.ResponseWriter, r *http.Request, m *webhook.Delivery, now time.Time) *refusal {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return &refusal{status: http.StatusMethodNotAllowed, counts: meter.WebhookUnreadable, text: "a webhook is a POST"}
	}
	if err := h.verified(webhook.Look, m, now); err != nil && !h.mayBePing(r) {
		return notAccepted(err)
	}
	if r.ContentLength > maxBody {
		return tooLarge
	}
	return nil
}

var tooLarge = &refusal{status: http.StatusRequestEntityTooLarge, counts: meter.WebhookUnreadable, text: fmt.Sprintf("the body is larger than %d bytes", maxBody)}

// readBody reads and verifies the body of a webhook of that client, for which there is room until it
// is verified.
func (h *Resolve) readBody(w http.ResponseWriter, r *http.Request, m *webhook.Delivery, now time.Time, client string) *refusal {
	defer h.reading.end(client)
	server := http.NewResponseController(w)
	bounded := server.SetReadDeadline(now.Add(bodyTimeout)) == nil
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if bounded {
		_ = server.SetReadDeadline(time.Time{})
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge
	} else if err != nil {
		return &refusal{status: http.StatusBadRequest, counts: meter.WebhookUnreadable, text: "the body ended early or came too slowly"}
	}
	m.Body = body
	if h.isPing(m) {
		return h.admitPing(now, client)
	}
	if err := h.verified(webhook.Verify, m, now); err != nil {
		return notAccepted(err)
	}
	return nil
}

// verified checks a webhook by its signature; one that names a payment, about which the provider is asked,
// may have none.
func (h *Resolve) verified(by func([]webhook.Verifier, *webhook.Delivery, time.Time) error, m *webhook.Delivery, now time.Time) error {
	if len(h.verifiers) == 0 && h.asker != nil {
		return nil
	}
	return by(h.verifiers, m, now)
}

// put gives the request the body that was read.
func put(r *http.Request, body []byte) {
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.GetBody = nil
	r.ContentLength = int64(len(body))
	r.TransferEncoding, r.Trailer = nil, nil
}

func notAccepted(err error) *refusal {
	if no, ok := errors.AsType[*refusal](err); ok {
		return no // there is no certificate
	}
	no := &refusal{status: http.StatusUnauthorized, counts: meter.WebhookUnauthorized, text: err.Error()}
	if f, ok := errors.AsType[*webhook.Fault](err); ok && f.Status == http.StatusBadRequest {
		no.status, no.counts = f.Status, meter.WebhookUnreadable
	}
	return no
}

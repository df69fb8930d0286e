package resolve

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/filters/webhook"
)

// Signature is how a provider signs its webhooks, and with which secret.
type Signature struct {
	// Scheme is stripe, adyen, standard (Standard Webhooks) or hmac.
	Scheme string `json:"scheme"`
	// Key is the secret, as a placeholder such as {env.STRIPE_WEBHOOK_SECRET} or
	// {file./etc/stockgate/secret}.
	Key string `json:"key"`
	// Tolerance is how far the signed time may be from now, with stripe and standard: 1s to
	// 1h. Default: 5m.
	Tolerance caddy.Duration `json:"tolerance,omitempty"`
	// Header has the signature, and Algorithm is sha256 or sha512, with hmac.
	Header    string `json:"header,omitempty"`
	Algorithm string `json:"algorithm,omitempty"`
}

func (h *Resolve) readSignatures() ([]webhook.Verifier, error) {
	if len(h.Verify) == 0 {
		return nil, errors.New("verify is missing: anyone could settle holds; write `verify stripe {env.STRIPE_WEBHOOK_SECRET}`")
	}
	verifiers := make([]webhook.Verifier, len(h.Verify))
	for i := range h.Verify {
		v := &h.Verify[i]
		if v.Scheme != h.Verify[0].Scheme {
			return nil, fmt.Errorf("verify has %s and %s: give each provider a stockgate_resolve and a path of its own", h.Verify[0].Scheme, v.Scheme)
		}
		var err error
		if verifiers[i], err = v.verifier(); err != nil {
			return nil, fmt.Errorf("verify %s, number %d: %w", v.Scheme, i+1, err)
		}
	}
	return verifiers, nil
}

// verifier fills in the placeholder. No error repeats a secret.
func (v *Signature) verifier() (webhook.Verifier, error) {
	key, err := directive.FillSecret(v.Key)
	key = strings.TrimSpace(key) // a file ends with a newline
	tolerance := time.Duration(v.Tolerance)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the secret %w", err)
	case tolerance != 0 && v.Scheme != "stripe" && v.Scheme != "standard":
		return nil, errors.New("no time is signed: it takes no tolerance")
	case (v.Header != "" || v.Algorithm != "") && v.Scheme != "hmac":
		return nil, errors.New("a header and an algorithm are for hmac")
	}
	switch v.Scheme {
	case "stripe":
		return webhook.Stripe(key, tolerance)
	case "standard":
		return webhook.Standard(key, tolerance)
	case "adyen":
		return webhook.Adyen(key)
	case "hmac":
		return webhook.HMAC(v.Header, v.Algorithm, key)
	}
	return nil, fmt.Errorf("there is no scheme %q: there are stripe, adyen, standard and hmac", v.Scheme)
}

// accept reads and verifies a webhook. What costs comes last: a client that was not accepted
// too often, a request whose headers tell enough, and one that would be one body too many, are
// refused before a byte of the body is read.
func (h *Resolve) accept(w http.ResponseWriter, r *http.Request) ([]byte, *refusal) {
	ip, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	client, now := attempt.Network(ip, attempt.DefaultIPv6Prefix), time.Now()
	if wait := h.bad.Peek(now, client); wait > 0 {
		endConnection(w, r)
		return nil, &refusal{
			status: http.StatusTooManyRequests, counts: meter.WebhookLimited, retryAfter: int(wait/time.Second) + 1,
			text: "too many webhooks of this address were not accepted: see that the secret is that of this endpoint",
		}
	}
	no := h.look(w, r, now)
	var body []byte
	if no == nil {
		if full := h.reading.begin(client); full != nil {
			endConnection(w, r)
			return nil, full // it says nothing of the client's secret
		}
		body, no = h.readBody(w, r, now, client)
	}
	if no != nil {
		_ = h.bad.Take(now, client)
	}
	return body, no
}

// endConnection ends a connection with the answer: else net/http waits before it for the rest of a body
// that may never come.
func endConnection(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
}

// look refuses a request by its head.
func (h *Resolve) look(w http.ResponseWriter, r *http.Request, now time.Time) *refusal {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return &refusal{status: http.StatusMethodNotAllowed, counts: meter.WebhookUnreadable, text: "a webhook is a POST"}
	}
	if err := webhook.Look(h.verifiers, r.Header, now); err != nil {
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
func (h *Resolve) readBody(w http.ResponseWriter, r *http.Request, now time.Time, client string) ([]byte, *refusal) {
	defer h.reading.end(client)
	server := http.NewResponseController(w)
	bounded := server.SetReadDeadline(now.Add(bodyTimeout)) == nil
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if bounded {
		_ = server.SetReadDeadline(time.Time{})
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, tooLarge
	} else if err != nil {
		return nil, &refusal{status: http.StatusBadRequest, counts: meter.WebhookUnreadable, text: "the body ended early or came too slowly"}
	}
	if err := webhook.Verify(h.verifiers, r.Header, body, now); err != nil {
		return nil, notAccepted(err)
	}
	return body, nil
}

// put gives the request the body that was read.
func put(r *http.Request, body []byte) {
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.GetBody = nil
	r.ContentLength = int64(len(body))
	r.TransferEncoding, r.Trailer = nil, nil
}

func notAccepted(err error) *refusal {
	no := &refusal{status: http.StatusUnauthorized, counts: meter.WebhookUnauthorized, text: err.Error()}
	if f, ok := errors.AsType[*webhook.Fault](err); ok && f.Status == http.StatusBadRequest {
		no.status, no.counts = f.Status, meter.WebhookUnreadable
	}
	return no
}

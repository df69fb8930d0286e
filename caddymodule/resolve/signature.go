package resolve

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/filters/webhook"
)

// Signature is how a provider signs its webhooks, and with which secret.
type Signature struct {
	// Scheme is a provider: stripe, adyen, square, paddle, paypal, paypal_sandbox, razorpay,
	// gocardless, woocommerce, xendit or standard (Standard Webhooks); or hmac, token or signed. Required.
	Scheme string `json:"scheme"`
	// Key is the secret, as a placeholder such as {env.STRIPE_WEBHOOK_SECRET} or
	// {file./etc/stockgate/secret}; with signed it may be the provider's public key in PEM, and with paypal it is the
	// id of the webhook. Required.
	Key string `json:"key"`
	// Tolerance is how far the signed time may be from now, with stripe, standard, paddle and
	// signed: 1s to 1h; with paypal: 1s to 96h. Default: 5m; with paypal 73h.
	Tolerance caddy.Duration `json:"tolerance,omitempty"`
	// URL is the URL of the endpoint as it is written at the provider, with square.
	URL string `json:"url,omitempty"`
	// CA is a PEM file with the certificates that are trusted, for PayPal's connection and certificate. Default: the
	// system's.
	CA string `json:"ca,omitempty"`
	// Header has the signature with hmac, and the secret itself with token.
	Header string `json:"header,omitempty"`
	// Algorithm is sha256 or sha512, with hmac.
	Algorithm string `json:"algorithm,omitempty"`
	// Signed says what is signed, and how, with signed.
	Signed *webhook.Description `json:"signed,omitempty"`
}

func (h *Resolve) readSignatures() ([]webhook.Verifier, error) {
	if h.preset = new(webhook.Preset); len(h.Verify) == 0 && h.Ask != nil {
		return nil, nil
	}
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
	if preset := webhook.Presets[h.Verify[0].Scheme]; preset != nil {
		h.preset = preset
	}
	return verifiers, nil
}

// readIssuer compiles how the certificates are fetched with whose keys the provider signs.
func (h *Resolve) readIssuer() error {
	if h.preset.Issuer == nil {
		return nil
	}
	ca := h.Verify[0].CA
	for _, v := range h.Verify {
		if v.CA != ca {
			return fmt.Errorf("verify %s has two ca: write the same in each", v.Scheme)
		}
	}
	f, err := newFetcher(*h.preset.Issuer, ca, h.log)
	if err != nil {
		return fmt.Errorf("verify %s: %w", h.Verify[0].Scheme, err)
	}
	h.certificates = newCertificates(f.fetch)
	return nil
}

// verifier fills in the placeholders. No error repeats a secret.
func (v *Signature) verifier() (webhook.Verifier, error) {
	key, err := directive.FillSecret(v.Key)
	if err != nil {
		return nil, fmt.Errorf("the secret %w", err)
	}
	key = strings.TrimSpace(key) // a file ends with a newline
	url, err := directive.FillAll(v.URL)
	if err != nil {
		return nil, fmt.Errorf("the URL %w", err)
	}
	preset, tolerance := webhook.Presets[v.Scheme], time.Duration(v.Tolerance)
	switch {
	case v.CA != "" && (preset == nil || preset.Issuer == nil):
		return nil, errors.New("a ca is for providers whose certificates are fetched, such as paypal")
	case (v.Algorithm != "") != (v.Scheme == "hmac") || v.Header != "" && v.Scheme != "hmac" && v.Scheme != "token":
		return nil, errors.New("an algorithm is for hmac, and a header for hmac and token")
	case (v.Signed != nil) != (v.Scheme == "signed"):
		return nil, errors.New("a description of what is signed is for signed, and signed needs one")
	case preset != nil:
		return preset.Verifier(key, url, tolerance)
	case url != "" || tolerance != 0 && v.Scheme != "signed":
		return nil, errors.New("it takes no URL, and no tolerance where no time is signed")
	}
	switch v.Scheme {
	case "hmac":
		return webhook.HMAC(v.Header, v.Algorithm, key)
	case "token":
		return webhook.Token(v.Header, key)
	case "signed":
		d := *v.Signed
		d.Key, d.Tolerance = key, tolerance
		return webhook.Compile(d)
	}
	return nil, fmt.Errorf("there is no scheme %q: there are %s, hmac, token and signed", v.Scheme, strings.Join(slices.Sorted(maps.Keys(webhook.Presets)), ", "))
}

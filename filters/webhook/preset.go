package webhook

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Preset is how one provider signs its webhooks.
type Preset struct {
	// Timed: a time is signed, and a tolerance may be given.
	Timed bool
	// URL: the provider signs the URL of the endpoint, which must be given.
	URL bool
	// Events is where a webhook of the provider has several events; nil: it has one.
	Events *EventList
	// Fields are the only paths of an event that are signed; nil: the whole body is.
	Fields []string
	// Ping reports whether an unsigned message is the one by which the provider tries whether the
	// endpoint is there, which settles nothing; nil: there is none.
	Ping func(m *Delivery) bool
	// Issuer has the certificates with whose keys the provider signs, so that the key of the preset is the
	// webhook's id and no secret; nil: both sides know a secret.
	Issuer *Issuer

	verifier func(key, url string, tolerance time.Duration) (Verifier, error)
}

// Verifier returns the verifier of one secret. A tolerance of 0 is the default.
func (p *Preset) Verifier(key, url string, tolerance time.Duration) (Verifier, error) {
	switch {
	case tolerance != 0 && !p.Timed:
		return nil, errors.New("no time is signed: it takes no tolerance")
	case (url != "") != p.URL:
		return nil, errors.New("the URL of the endpoint is needed where the provider signs it, and only there")
	}
	return p.verifier(key, url, tolerance)
}

// Presets are the providers, by their names.
var Presets = map[string]*Preset{
	"stripe":   {Timed: true, verifier: func(key, _ string, t time.Duration) (Verifier, error) { return Stripe(key, t) }},
	"standard": {Timed: true, verifier: func(key, _ string, t time.Duration) (Verifier, error) { return Standard(key, t) }},
	"paddle": {Timed: true, verifier: func(key, _ string, t time.Duration) (Verifier, error) {
		return Compile(Description{
			Algorithm: "hmac-sha256", Key: key, Fields: &HeaderFields{Header: "Paddle-Signature", Between: ";"},
			Over: "{field.ts}:{body}", Signature: "{field.h1}", Encoding: "hex", Time: "{field.ts}", Tolerance: t,
		})
	}},
	"square":         {URL: true, verifier: square},
	"razorpay":       {verifier: ofBodyIn("X-Razorpay-Signature", "hex")},
	"gocardless":     {verifier: ofBodyIn("Webhook-Signature", "hex"), Events: &EventList{Path: "events"}},
	"woocommerce":    {verifier: ofBodyIn("X-Wc-Webhook-Signature", "base64"), Ping: isWooCommercePing},
	"xendit":         {verifier: func(key, _ string, _ time.Duration) (Verifier, error) { return Token("X-Callback-Token", key) }},
	"paypal":         ofPayPal(&PayPalLive),
	"paypal_sandbox": ofPayPal(&PayPalSandbox),
	"adyen":          {verifier: func(key, _ string, _ time.Duration) (Verifier, error) { return Adyen(key) }, Events: &AdyenEvents, Fields: AdyenSigned},
}

func ofPayPal(issuer *Issuer) *Preset {
	return &Preset{Timed: true, Issuer: issuer, verifier: func(id, _ string, t time.Duration) (Verifier, error) { return PayPal(*issuer, id, t) }}
}

// ofBodyIn is the preset of a provider whose header has the HMAC-SHA256 of the body.
func ofBodyIn(name, encoding string) func(key, url string, t time.Duration) (Verifier, error) {
	return func(key, _ string, _ time.Duration) (Verifier, error) {
		return Compile(Description{Algorithm: "hmac-sha256", Key: key, Over: "{body}", Signature: "{header." + name + "}", Encoding: encoding})
	}
}

// square verifies webhooks of Square: the URL is as it stands at Square, so that a client does not
// choose it.
func square(key, at string, _ time.Duration) (Verifier, error) {
	u, err := url.Parse(at)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || strings.ContainsAny(at, "{}") {
		return nil, errors.New("the URL must be the whole URL of the endpoint, as it is written at Square")
	}
	return Compile(Description{Algorithm: "hmac-sha256", Key: key, Over: at + "{body}", Signature: "{header.X-Square-Hmacsha256-Signature}", Encoding: "base64"})
}

// Stripe verifies webhooks of Stripe. 0 is the default tolerance.
func Stripe(secret string, tolerance time.Duration) (Verifier, error) {
	if secret == "" {
		return nil, errors.New("the secret is empty")
	}
	return Compile(Description{
		Algorithm: "hmac-sha256", Key: secret, Fields: &HeaderFields{Header: "Stripe-Signature", Between: ","},
		Over: "{field.t}.{body}", Signature: "{field.v1}", Encoding: "hex", Time: "{field.t}", Tolerance: tolerance, leastKey: 1,
	})
}

// Standard verifies Standard Webhooks. The secret is base64, perhaps behind whsec_. 0 is the
// default tolerance. An id may have a dot: no part of a JSON body behind a dot is JSON.
func Standard(secret string, tolerance time.Duration) (Verifier, error) {
	d := Description{
		Algorithm: "hmac-sha256", Key: strings.TrimPrefix(secret, "whsec_"), KeyEncoding: "base64",
		Fields: &HeaderFields{Header: "Webhook-Signature", Between: " ", After: ","},
		Over:   "{header.Webhook-Id}.{header.Webhook-Timestamp}.{body}", Signature: "{field.v1}", Encoding: "base64",
		Time: "{header.Webhook-Timestamp}", Tolerance: tolerance, leastKey: 16, unclear: true,
	}
	key, err := d.decodedKey()
	if err != nil {
		return nil, errors.New("the secret is no base64 behind whsec_")
	}
	if len(key) < d.leastKey {
		return nil, fmt.Errorf("the secret has %d bytes behind whsec_, at least 16 are needed", len(key))
	}
	return Compile(d)
}

// HMAC verifies a header that has the HMAC of the body, in hex or base64, perhaps behind
// "sha256=". The algorithm is sha256 or sha512.
func HMAC(name, algorithm, key string) (Verifier, error) {
	if !slices.Contains([]string{"sha256", "sha512"}, algorithm) {
		return nil, fmt.Errorf("there is no algorithm %q: there are sha256 and sha512", algorithm)
	}
	return Compile(Description{
		Algorithm: "hmac-" + algorithm, Key: key, Over: "{body}", Signature: "{header." + name + "}", either: true, prefix: algorithm + "=",
	})
}

// Token compares a header with a secret: the provider signs nothing, so that a client that has seen
// one webhook can write others.
func Token(name, secret string) (Verifier, error) {
	return Compile(Description{Algorithm: token, Key: secret, Signature: "{header." + name + "}"})
}

var wooCommercePing = regexp.MustCompile(`^webhook_id=[0-9]{1,20}$`)

// isWooCommercePing: WooCommerce sends a form with the webhook's id, unsigned, when it is saved.
func isWooCommercePing(m *Delivery) bool {
	return len(m.Header.Values("X-Wc-Webhook-Signature")) == 0 && wooCommercePing.Match(m.Body)
}

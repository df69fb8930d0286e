// Package resolve is the handler stockgate_resolve: the webhook of a payment provider settles
// the hold of the order that it names, on its way to the shop.
package resolve

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/filters"
	"github.com/stockgate/stockgate/filters/outcome"
	"github.com/stockgate/stockgate/filters/webhook"
)

func init() { caddy.RegisterModule(new(Resolve)) }

const (
	// defaultHoldFor is how long a paid order's units are kept while the shop does not take it:
	// long enough for several redeliveries.
	defaultHoldFor                = time.Hour
	leastHoldFor, mostHoldFor     = time.Minute, 24 * time.Hour
	defaultForwardTimeout         = 10 * time.Second // providers wait 10 s to 30 s
	mostInFlight                  = 256
	maxBody                       = 1 << 20
	bodyTimeout                   = 10 * time.Second
	callTimeout                   = 5 * time.Second // of what Redis is asked about one event
	badBurst, badEvery, badClient = 20, time.Second, 10_000
)

// Resolve settles holds by the webhooks of a payment provider. It verifies the signature,
// reads the shop's own name of the order (ref), and then:
//
// The event is | What happens
// -------------|-------------
// `confirm`ed by a rule | the hold is put off, or its units are taken again if it has ended; the webhook goes to the shop; where the shop answers 2xx the hold is confirmed
// `release`d by a rule | the webhook goes to the shop; where the shop answers 2xx the hold is released
// anything else, or about a ref that no sale knows | it goes to the shop untouched
//
// Where Redis or the shop does not answer, or the units of a paid order are gone, the answer is
// 503, so that the provider delivers it again. A webhook whose signature is wrong goes nowhere. One
// that tells of several payments goes to the shop for those that can be settled.
type Resolve struct {
	// Verify are the signatures that are accepted, all of one scheme; this or `ask` is required. A tolerance is 1s to 1h
	// (default 5m); PayPal's up to 96h (73h). Adyen's secret is in hex; Square needs the URL as written there; `hmac` covers
	// the body; with `token` a header must have the secret.
	Verify []Signature `json:"verify,omitempty"`
	// Ask asks the provider about the payment, at an https URL with `{id}`. Default: none.
	//
	// Ref and Events then read its answer, and not the webhook.
	Ask *AskProvider `json:"ask,omitempty"`
	// Ref is where the event has the gate's `ref`; of several, the first that is not empty. Required.
	Ref []string `json:"ref,omitempty"`
	// EventsIn is the array with the events, at most 256; `{json}`: the body is the array. Paths then begin in an element.
	// Default: the body is one event.
	//
	// With adyen the default is its notificationItems; with gocardless, its events.
	EventsIn string `json:"events_in,omitempty"`
	// Events are named tests of an event.
	Events map[string]outcome.AnswerMatcher `json:"events,omitempty"`
	// Rules say what an event means, confirm or release; the first that matches counts.
	Rules []outcome.Rule `json:"rules,omitempty"`
	// HoldFor is how long a paid order's units are kept until the shop takes the webhook, 1m to 24h. Default: 1h.
	//
	// It counts from then on, also beyond the sale's max_hold.
	HoldFor caddy.Duration `json:"hold_for,omitempty"`
	// ForwardTimeout is how long the shop may take, at most half of `hold_for`. Default: 10s.
	ForwardTimeout caddy.Duration `json:"forward_timeout,omitempty"`

	app       *app.App
	log       *zap.Logger
	verifiers []webhook.Verifier
	preset    *webhook.Preset // of the provider; the zero value where it has none
	asker     *asker          // nil: the webhook itself is read
	// certificates are those with whose keys the provider signs; nil: both sides know a secret.
	certificates *certificates
	batch        *webhook.EventList // where the body has several events; nil: it is one
	refs         outcome.Paths
	rules        *outcome.Rules
	bad          *filters.RateTable // clients whose webhooks were not accepted
	pings        *filters.RateTable // clients that send pings; nil: the provider sends none
	inFlight     *filters.Slots
	reading      bodyCounter
}

// CaddyModule returns the Caddy module information.
func (*Resolve) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.stockgate_resolve", New: func() caddy.Module { return new(Resolve) }}
}

// Provision compiles the handler.
func (h *Resolve) Provision(ctx caddy.Context) error {
	if err := h.provision(ctx); err != nil {
		return fmt.Errorf("stockgate_resolve: %w", err)
	}
	return nil
}

func (h *Resolve) provision(ctx caddy.Context) (err error) {
	h.log = ctx.Logger()
	if h.HoldFor == 0 {
		h.HoldFor = caddy.Duration(defaultHoldFor)
	}
	if h.ForwardTimeout == 0 {
		h.ForwardTimeout = caddy.Duration(defaultForwardTimeout)
	}
	if held := time.Duration(h.HoldFor); held < leastHoldFor || held > mostHoldFor {
		return fmt.Errorf("hold_for is %v: it must be %v to %v", held, leastHoldFor, mostHoldFor)
	}
	if wait := time.Duration(h.ForwardTimeout); wait <= 0 || wait > time.Duration(h.HoldFor)/2 {
		return fmt.Errorf("forward_timeout is %v: it must be at most half of hold_for", wait)
	}
	if h.verifiers, err = h.readSignatures(); err != nil {
		return err
	}
	if err = h.readIssuer(); err != nil {
		return err
	}
	if err = h.readAsker(); err != nil {
		return err
	}
	if err = h.readBatch(); err != nil {
		return err
	}
	if err = h.readEvents(); err != nil {
		return err
	}
	h.bad = filters.NewRateTable(filters.Rate{Events: 1, Window: badEvery, Burst: badBurst, Keys: badClient})
	if h.preset.Ping != nil {
		h.pings = filters.NewRateTable(filters.Rate{Events: 1, Window: badEvery, Burst: badBurst, Keys: badClient})
	}
	h.inFlight = filters.NewSlots(mostInFlight)
	loaded, err := ctx.App("stockgate")
	if err != nil {
		return err
	}
	h.app = loaded.(*app.App)
	h.app.UsesAddress(ctx, h.log, "stockgate_resolve", "webhooks that were not accepted")
	h.app.Settles()
	return nil
}

// ServeHTTP takes one webhook through the handler: it verifies the signature, holds the units
// of what was paid, forwards, and settles by the shop's answer.
func (h *Resolve) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	client := clientOf(r)
	m, no := h.accept(w, r, client)
	if no != nil {
		return no.answer(w)
	}
	put(r, m.Body)
	if h.isPing(m) {
		meter.CountWebhook(meter.WebhookOther)
		return next.ServeHTTP(w, r)
	}
	document, no := h.document(r, m, client)
	if no != nil {
		return no.answer(w)
	}
	events, several, no := h.events(document)
	if no != nil {
		return no.answer(w)
	}
	if len(events) == 0 {
		return next.ServeHTTP(w, r)
	}
	if !h.inFlight.Take() {
		return unavailable(meter.WebhookBusy, "too many webhooks are under way: deliver it again").answer(w)
	}
	defer h.inFlight.Give()
	d := h.app.Runtime()
	if d == nil || !d.Begin() { // a request of an old configuration
		return unavailable(meter.WebhookRedisFailed, "this server is starting or stopping: deliver it again").answer(w)
	}
	defer d.End()
	// what was begun ends, whether or not the provider waits for it
	s := &settling{of: h, runtime: d, ctx: context.WithoutCancel(r.Context()), several: several}
	for _, e := range events {
		if no := s.prepare(e); no != nil {
			return no.answer(w)
		}
	}
	if len(s.holds) == 0 {
		return next.ServeHTTP(w, r)
	}
	return s.forward(w, r, next)
}

// Cleanup closes the connections to a provider that is asked.
func (h *Resolve) Cleanup() error {
	if h.asker != nil {
		h.asker.client.CloseIdleConnections()
	}
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Resolve)(nil)
	_ caddy.CleanerUpper          = (*Resolve)(nil)
	_ caddyhttp.MiddlewareHandler = (*Resolve)(nil)
)

package resolve

import (
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/filters/outcome"
)

// ReadDirective reads the handler.
func ReadDirective(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	h.Next() // the directive's name
	warn := directive.NewWarner(&h, "stockgate_resolve")
	h.Reset()
	r := new(Resolve)
	if err := r.UnmarshalCaddyfile(h.Dispenser); err != nil {
		return nil, err
	}
	for _, v := range r.Verify {
		if v.isSecret() && !strings.Contains(v.Key, "{") {
			warn.Warn("verify has the secret itself, which Caddy's configuration shows: write {env.NAME} or {file./path}")
		}
	}
	if r.Ask != nil && !strings.Contains(r.Ask.Bearer, "{") {
		warn.Warn("ask has the key itself, which Caddy's configuration shows: write bearer {env.NAME} or {file./path}")
	}
	return r, nil
}

// UnmarshalCaddyfile reads the handler. Syntax:
//
//	stockgate_resolve [<matcher>] {
//		verify stripe|standard|paddle <secret> [<tolerance>]
//		verify paypal|paypal_sandbox <webhook_id> [<tolerance>] {
//			ca <file>
//		}
//		verify adyen|gocardless|razorpay|woocommerce|xendit <secret>
//		verify square <secret> <url>
//		verify hmac   <header> sha256|sha512 <secret>
//		verify token  <header> <secret>
//		verify signed {
//			algorithm <name>
//			key       <key> [text|hex|base64|base64url]
//			fields    <header> <between> [<after>]
//			over      <part...>
//			signature <place> [hex|base64|base64url]
//			time      <place> [s|ms] [<tolerance>]
//		}
//		ask <url> {
//			id      {form.<name>}|{json.<path>}|{query.<name>}
//			bearer  <key>
//			timeout <duration>
//			ca      <file>
//		}
//		events  {json.<path>}
//		ref     {json.<path>} ...
//		@<name> {
//			json <path> [<value...>]
//			json !<path>
//		}
//		confirm @<name> ...
//		release @<name> ...
//		hold_for        <duration>
//		forward_timeout <duration>
//	}
func (h *Resolve) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the directive's name
	if d.NextArg() {
		return d.Errf("stockgate_resolve takes no arguments besides a matcher, found %q", d.Val())
	}
	at := *d
	err := directive.ReadBlock(d, map[string]directive.Option{
		"verify": {Usage: verifyUsage, Read: h.readVerify, List: true},
		"ref":    {Usage: "ref {json.<path>} ...", Read: directive.Texts(&h.Ref)},
		"ask":    {Usage: "ask <url> { id {form.<name>}; bearer <key> }", Read: h.readAsk},
		"events": {Usage: "events {json.<path>}", Read: directive.Text(&h.EventsIn)},
		"@":      {Usage: "@<name> { json <path> [<value...>] }", Read: h.readEvent, List: true},
		// these events are a payment. Required.
		"confirm": {Usage: "confirm @<name> ...", Read: h.readRule("confirm"), List: true},
		// after these events no payment will come. Default: none.
		"release":         {Usage: "release @<name> ...", Read: h.readRule("release"), List: true},
		"hold_for":        {Usage: "hold_for <duration>", Read: directive.Duration(&h.HoldFor)},
		"forward_timeout": {Usage: "forward_timeout <duration>", Read: directive.Duration(&h.ForwardTimeout)},
	})
	switch {
	case err != nil:
		return err
	case len(h.Verify) == 0 && h.Ask == nil:
		return at.Errf("stockgate_resolve needs verify: write `verify stripe {env.STRIPE_WEBHOOK_SECRET}`; or ask, where the webhook has only the id of a payment")
	case len(h.Ref) == 0:
		return at.Errf("stockgate_resolve needs ref: write `ref {json.data.object.client_reference_id}`")
	}
	for _, rule := range h.Rules {
		for _, word := range rule.When {
			if _, ok := h.Events[strings.TrimPrefix(word, "@")]; !ok {
				return at.Errf("%s: there is no event %s: write it as `@name { json … }` in this block", rule.Outcome, word)
			}
		}
	}
	return nil
}

func (h *Resolve) readEvent(d *caddyfile.Dispenser, usage string) error {
	word := d.Val()
	name := strings.TrimPrefix(word, "@")
	if _, twice := h.Events[name]; twice || name == "" {
		return d.Errf("event %s is defined twice or has no name", word)
	}
	if _, err := directive.Arguments(d, usage, 0, 0); err != nil {
		return err
	}
	at := *d
	var a outcome.AnswerMatcher
	err := directive.ReadBlock(d, map[string]directive.Option{
		// a value of the body is one of these; without values it is there and not null, with `!` it is not. All tests must
		// pass. An array with more elements than they read makes the webhook 400.
		"json": {Usage: "json [!]<path> [<value...>]", Read: directive.JSONTest(&a.JSON), List: true},
	})
	if err != nil {
		return err
	}
	if len(a.JSON) == 0 {
		return at.Errf("event %s tests nothing: give it json", word)
	}
	if h.Events == nil {
		h.Events = make(map[string]outcome.AnswerMatcher)
	}
	h.Events[name] = a
	return nil
}

func (h *Resolve) readRule(then string) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) error {
		args, err := directive.Arguments(d, usage, 1, -1)
		h.Rules = append(h.Rules, outcome.Rule{Outcome: then, When: args})
		return err
	}
}

// Interface guard
var _ caddyfile.Unmarshaler = (*Resolve)(nil)

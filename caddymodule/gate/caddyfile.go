package gate

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
)

// ReadDirective reads a gate, and warns of what is allowed and yet rarely meant.
func ReadDirective(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
	h.Next() // the directive's name
	at := *h.Dispenser
	warn := directive.NewWarner(&h, "stockgate")
	matchers, err := h.ExtractMatcherSet()
	if err != nil {
		return nil, h.WrapErr(err)
	}
	gate := new(Gate)
	if err := gate.UnmarshalCaddyfile(h.Dispenser); err != nil {
		return nil, err
	}
	if err := checkLists(h, gate); err != nil {
		return nil, err
	}
	if err := checkFast(h, &at, gate, matchers); err != nil {
		return nil, err
	}
	warnMethod(warn, matchers)
	warnBuyer(warn, gate.Buyer)
	warnIdentities(warn, gate)
	warnShared(warn, gate)
	warnJWKS(warn, gate.JWT)
	warnGuard(warn)
	return h.NewRoute(matchers, gate), nil
}

// Interface guard
var _ caddyfile.Unmarshaler = (*Gate)(nil)

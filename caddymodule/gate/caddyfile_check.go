package gate

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
)

// ReadCheckDirective reads a stockgate_check, with the warnings of a gate.
func ReadCheckDirective(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
	h.Next() // the directive's name
	at := *h.Dispenser
	warn := directive.NewWarner(&h, "stockgate_check")
	matchers, err := h.ExtractMatcherSet()
	if err != nil {
		return nil, h.WrapErr(err)
	}
	check := new(Check)
	if err := check.UnmarshalCaddyfile(h.Dispenser); err != nil {
		return nil, err
	}
	if err := check.OneAtATime.Resolve(h); err != nil {
		return nil, err
	}
	gate := check.asGate()
	if err := checkLists(h, gate); err != nil {
		return nil, err
	}
	if err := checkFast(h, &at, gate, matchers); err != nil {
		return nil, err
	}
	if err := checkEarly(h, gate); err != nil {
		return nil, at.WrapErr(err)
	}
	warnMethod(warn, gate, matchers)
	warnExact(warn, gate, matchers)
	warnBuyer(warn, gate.Buyer)
	warnValues(warn, gate)
	warnShared(warn, gate)
	warnJWKS(warn, gate.JWT)
	warnGuard(warn)
	return h.NewRoute(matchers, check), nil
}

// UnmarshalCaddyfile reads a stockgate_check. Syntax:
//
//	stockgate_check [<matcher>] [<name>] {
//		graphql   <field> [<argument> <value...>]
//		json_body <path> [<value...>]
//		persisted <file>
//		line     <sku> [<quantity>]
//		lines    <array> <sku-field> [<quantity-field>]
//		buyer    <value...>
//		identity phone|address|device|ip <value...>
//		jwt      …
//		sale     <value...>
//		region   <value...>
//		deny     <list...>
//		allow    <list...>
//		rate     …
//		challenge pow { … }
//		other_items refuse|pass
//		one_at_a_time [shared] <credential...> [except <path|@matcher...>]
//		max_in_flight <number>
//		max_body <size>
//		body     checked|ignored
//		also_query <parameter...>
//		fast_refusals [force]
//		refuse   …
//	}
//
// The options are those of the gate.
func (c *Check) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the directive's name
	if d.NextArg() {
		c.Name = d.Val()
	}
	if d.NextArg() {
		return d.Errf("stockgate_check takes a matcher and a name, found %q after them", d.Val())
	}
	at := *d
	if err := directive.ReadBlock(d, c.directives()); err != nil {
		return err
	}
	if err := c.asGate().turnsConflict(); err != nil {
		return at.WrapErr(err)
	}
	return nil
}

// Interface guard
var _ caddyfile.Unmarshaler = (*Check)(nil)

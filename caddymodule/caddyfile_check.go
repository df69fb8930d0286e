package caddymodule

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
)

// readCheck reads a check, and warns as of a gate.
func readCheck(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
	h.Next() // the directive's name
	at := *h.Dispenser
	warn := newWarner(&h)
	warn.at.Directive = "stockgate_check"
	matchers, err := h.ExtractMatcherSet()
	if err != nil {
		return nil, h.WrapErr(err)
	}
	check := new(Check)
	if err := check.UnmarshalCaddyfile(h.Dispenser); err != nil {
		return nil, err
	}
	gate := check.asGate()
	if err := checkLists(h, gate); err != nil {
		return nil, err
	}
	if err := checkFast(h, &at, gate, matchers); err != nil {
		return nil, err
	}
	warn.method(matchers)
	warn.buyer(gate.Buyer)
	warn.shared(gate)
	warn.jwks(gate.JWT)
	warn.guard()
	return h.NewRoute(matchers, check), nil
}

// UnmarshalCaddyfile reads a check. Syntax:
//
//	stockgate_check [<matcher>] [<name>] {
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
//		max_body <size>
//		body     checked|ignored
//		also_query <parameter...>
//		fast_refusals [force]
//		refuse   …
//	}
//
// They are those of the gate.
func (c *Check) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the directive's name
	g := new(Gate)
	if d.NextArg() {
		g.Name = d.Val()
	}
	if d.NextArg() {
		return d.Errf("stockgate_check takes a matcher and a name, found %q after them", d.Val())
	}
	err := readBlock(d, g.attemptOptions())
	c.take(g)
	return err
}

// attemptOptions are the options that read and judge an attempt: those of a check.
func (g *Gate) attemptOptions() map[string]option {
	return map[string]option{
		"jwt":           {usage: jwtUsage, read: g.readJWT},
		"sale":          {usage: "sale <value...>", read: texts(&g.Sale)},
		"buyer":         {usage: "buyer <value...>", read: texts(&g.Buyer)},
		"identity":      {usage: "identity phone|address|device|ip <value...>", read: g.readIdentity, list: true},
		"region":        {usage: "region <value...>", read: texts(&g.Region)},
		"line":          {usage: "line <sku> [<quantity>]", read: g.readLine, list: true},
		"lines":         {usage: "lines <array> <sku-field> [<quantity-field>]", read: g.readLines},
		"rate":          {usage: "rate <value...> <events> <window> [burst <number>] [keys <number>] [ipv6 <bits>] [shared]", read: g.readRate, list: true},
		"challenge":     {usage: "challenge pow { … }", read: g.readChallenge},
		"other_items":   {usage: "other_items refuse|pass", read: g.readOtherItems},
		"deny":          {usage: "deny <list...>", read: listNames(&g.Deny), list: true},
		"allow":         {usage: "allow <list...>", read: listNames(&g.Allow), list: true},
		"max_body":      {usage: "max_body <size>", read: g.readMaxBody},
		"body":          {usage: "body checked|ignored", read: g.readBody},
		"also_query":    {usage: "also_query <parameter...>", read: texts(&g.AlsoQuery)},
		"fast_refusals": {usage: "fast_refusals [force]", read: g.readFast},
		"refuse":        {usage: "refuse [<reason...>|*] problem|error|<status> [<body>]", read: g.readRefuse, list: true},
	}
}

// Interface guard
var _ caddyfile.Unmarshaler = (*Check)(nil)

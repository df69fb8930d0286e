package gate

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/caddymodule/jwt"
	"github.com/stockgate/stockgate/caddymodule/lists"
	"github.com/stockgate/stockgate/caddymodule/pow"
	"github.com/stockgate/stockgate/caddymodule/rates"
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
	gate := check.asGate()
	if err := checkLists(h, gate); err != nil {
		return nil, err
	}
	if err := checkFast(h, &at, gate, matchers); err != nil {
		return nil, err
	}
	warnMethod(warn, matchers)
	warnBuyer(warn, gate.Buyer)
	warnShared(warn, gate)
	warnJWKS(warn, gate.JWT)
	warnGuard(warn)
	return h.NewRoute(matchers, check), nil
}

// UnmarshalCaddyfile reads a stockgate_check. Syntax:
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
// The options are those of the gate.
func (c *Check) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the directive's name
	g := new(Gate)
	if d.NextArg() {
		g.Name = d.Val()
	}
	if d.NextArg() {
		return d.Errf("stockgate_check takes a matcher and a name, found %q after them", d.Val())
	}
	err := directive.ReadBlock(d, g.attemptOptions())
	c.take(g)
	return err
}

// attemptOptions returns the options that read and judge an attempt: those of
// stockgate_check.
func (g *Gate) attemptOptions() map[string]directive.Option {
	return map[string]directive.Option{
		"jwt":           {Usage: jwt.Usage, Read: jwt.ReadOption(&g.JWT)},
		"sale":          {Usage: "sale <value...>", Read: directive.Texts(&g.Sale)},
		"buyer":         {Usage: "buyer <value...>", Read: directive.Texts(&g.Buyer)},
		"identity":      {Usage: "identity phone|address|device|ip <value...>", Read: g.readIdentity, List: true},
		"region":        {Usage: "region <value...>", Read: directive.Texts(&g.Region)},
		"line":          {Usage: "line <sku> [<quantity>]", Read: g.readLine, List: true},
		"lines":         {Usage: "lines <array> <sku-field> [<quantity-field>]", Read: g.readLines},
		"rate":          {Usage: "rate <value...> <events> <window> [burst <number>] [keys <number>] [ipv6 <bits>] [shared]", Read: rates.ReadRate(&g.Rates), List: true},
		"challenge":     {Usage: "challenge pow { … }", Read: pow.ReadOption(&g.Challenge)},
		"other_items":   {Usage: "other_items refuse|pass", Read: g.readOtherItems},
		"deny":          {Usage: "deny <list...>", Read: lists.ReadNames(&g.Deny), List: true},
		"allow":         {Usage: "allow <list...>", Read: lists.ReadNames(&g.Allow), List: true},
		"max_body":      {Usage: "max_body <size>", Read: g.readMaxBody},
		"body":          {Usage: "body checked|ignored", Read: g.readBody},
		"also_query":    {Usage: "also_query <parameter...>", Read: directive.Texts(&g.AlsoQuery)},
		"fast_refusals": {Usage: "fast_refusals [force]", Read: g.readFast},
		"refuse":        {Usage: "refuse [<reason...>|*] problem|error|<status> [<body>]", Read: directive.Refusals(&g.Refusals), List: true},
	}
}

// Interface guard
var _ caddyfile.Unmarshaler = (*Check)(nil)

package gate

import (
	"errors"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/caddymodule/internal/reply"
	"github.com/stockgate/stockgate/refuse"
	"github.com/stockgate/stockgate/scope"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
)

func init() { caddy.RegisterModule(new(Check)) }

// Check refuses, from memory, what a gate's filters refuse, and hands on every other
// request unchanged: it reserves nothing and adds no token. Put it before expensive
// handlers, such as an authentication server or the route that fills a cart; a gate stands
// before the order route.
//
// Its options are the options of the gate that read and judge an attempt; only the lines
// are required. After it `{http.stockgate.verdict}` is refused or passed, as after a gate.
type Check struct {
	AttemptOptions

	gate *Gate // with these options, which only checks
}

// CaddyModule returns the Caddy module information.
func (*Check) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.stockgate_check", New: func() caddy.Module { return new(Check) }}
}

// Provision compiles the options.
func (c *Check) Provision(ctx caddy.Context) error {
	c.gate = c.asGate()
	return c.gate.Provision(ctx)
}

// ServeHTTP refuses a request or hands it on.
func (c *Check) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	return c.gate.ServeHTTP(w, r, next)
}

// Cleanup releases what Provision has acquired.
func (c *Check) Cleanup() error {
	if c.gate == nil {
		return nil
	}
	return c.gate.Cleanup()
}

// asGate returns a gate that does what the check does.
func (c *Check) asGate() *Gate { return &Gate{AttemptOptions: c.AttemptOptions, Check: true} }

// Guarded returns what guards need to know of the check.
func (c *Check) Guarded() *guard.Gate { return c.gate.Guarded() }

// Gate returns the gate with the options of the check, which only checks.
func (c *Check) Gate() *Gate { return c.gate }

// pass hands on a request without a reservation, because the gate only checks, an item is
// unlisted, or the request is no attempt. The request is unchanged, has no token, and still
// ends with its client.
func (g *Gate) pass(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, p *purchase) error {
	if g.passing != nil && p.scope == scope.Attempt && !p.unlisted {
		if !g.passing.Take() {
			return g.refuse(w, r, p.saleID(), p.began, refuse.Busy)
		}
		defer g.passing.Give()
	}
	if p.scope == scope.Attempt {
		meter.CountAttempt(p.saleID(), "passed", "")
		reply.Publish(r, p.repl, reply.Placeholders{Verdict: "passed", Sale: p.saleID()})
	}
	if len(p.keys) > 0 {
		g.carts.Forget(p.keys)
	}
	if p.turn != nil {
		ctx, done := p.turn.Pass(r.Context())
		defer done()
		r = r.WithContext(ctx)
	}
	return next.ServeHTTP(w, r)
}

// checkConflict reports options that a gate that only checks cannot use.
func (g *Gate) checkConflict() error {
	for _, one := range []struct {
		there bool
		name  string
	}{
		{g.Lookup != nil, "lookup"},
		{len(g.Ref) > 0, "ref"},
		{g.Continue, "continue"},
		{g.Repeats != nil, "repeats"},
		{len(g.Idempotency) > 0, "idempotency"},
		{g.IdempotencyTTL != 0, "idempotency_ttl"},
		{g.Outcome != "", "outcome"},
		{len(g.Answers) > 0, "@name"},
		{len(g.Rules) > 0, "confirm or release"},
		{g.InDoubt != nil, "in_doubt"},
		{g.HoldFor != 0, "hold_for"},
		{g.ForwardTimeout != 0, "forward_timeout"},
		{g.Shadow, "shadow"},
	} {
		if one.there {
			return errors.New("check reserves nothing, so it takes no " + one.name + ": put that into the gate of the order route")
		}
	}
	return nil
}

// onlyTurns says that a check lets requests of a session wait, and reads nothing in them.
func (g *Gate) onlyTurns() bool { return g.Check && g.OneAtATime != nil }

// turnsConflict reports options that a check with one_at_a_time cannot use.
func (g *Gate) turnsConflict() error {
	if !g.onlyTurns() {
		return nil
	}
	for _, one := range []struct {
		there bool
		name  string
	}{
		{len(g.Lines) > 0, "line"},
		{g.LinesFrom != nil, "lines"},
		{g.Options.Any(), "graphql or json_body"},
		{len(g.Rates) > 0, "rate"},
		{len(g.Deny) > 0, "deny"},
		{len(g.Allow) > 0, "allow"},
		{g.Challenge != nil, "challenge"},
		{g.FastRefusals != nil, "fast_refusals"},
		{g.MaxInFlight != 0, "max_in_flight"},
	} {
		if one.there {
			return errors.New("a stockgate_check with one_at_a_time only lets requests of a session wait, so it takes no " + one.name + ": put that into another stockgate_check")
		}
	}
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Check)(nil)
	_ caddy.CleanerUpper          = (*Check)(nil)
	_ caddyhttp.MiddlewareHandler = (*Check)(nil)
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
	warnAvoidable(warn, matchers)
	warnExact(warn, gate, matchers)
	warnBuyer(warn, gate.Buyer)
	warnValues(warn, gate)
	warnLines(warn, gate)
	warnShared(warn, gate)
	gate.JWT.Warn(warn)
	warnGuard(warn)
	return h.NewRoute(matchers, check), nil
}

// UnmarshalCaddyfile reads a stockgate_check. Syntax:
//
//	stockgate_check [<matcher>] [<name>] {
//		graphql   [query.]<field> [<argument> <value...>]
//		json_body <path> [<value...>]
//		persisted <file>
//		line     <sku> [<quantity> [absent 0|1]]
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
//		also_query <parameter[=prefix]...>
//		fast_refusals [force] {
//			log <percentage>
//		}
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

package caddymodule

import (
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

func init() {
	httpcaddyfile.RegisterGlobalOption("stockgate", readGlobal)
	httpcaddyfile.RegisterDirective("stockgate_guard", readGuard)
	httpcaddyfile.RegisterHandlerDirective("stockgate_status", readStatus)
	httpcaddyfile.RegisterDirective("stockgate_check", readCheck)
	httpcaddyfile.RegisterDirective("stockgate", readGate)

	// The guard stands before everything that reads the headers it removes (map,
	// vars, request_header) or answers by path (redir, handle). Only tracing is
	// outside, so that what the guard refuses can be traced.
	httpcaddyfile.RegisterDirectiveOrder("stockgate_guard", httpcaddyfile.After, "tracing")
	// Gate, check and status come after authentication, whose user is the buyer, and inside
	// intercept; but before invoke, handle and route, which would otherwise answer
	// first. Each of these lines inserts right before invoke: the status, which only
	// reads, is before the check, and that is before the gate.
	httpcaddyfile.RegisterDirectiveOrder("stockgate_status", httpcaddyfile.Before, "invoke")
	httpcaddyfile.RegisterDirectiveOrder("stockgate_check", httpcaddyfile.Before, "invoke")
	httpcaddyfile.RegisterDirectiveOrder("stockgate", httpcaddyfile.Before, "invoke")
}

// readGlobal reads the global option into the app.
func readGlobal(d *caddyfile.Dispenser, earlier any) (any, error) {
	app := new(App)
	if err := app.UnmarshalCaddyfile(d); err != nil {
		return nil, err
	}
	if earlier != nil {
		return nil, d.Errf("the global option stockgate is given twice: write all of it in one block")
	}
	return httpcaddyfile.App{Name: "stockgate", Value: caddyconfig.JSON(app, nil)}, nil
}

// readGate reads a gate, and warns of what is allowed and yet rarely meant.
func readGate(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
	h.Next() // the directive's name
	at := *h.Dispenser
	warn := newWarner(&h)
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
	warn.check(gate)
	warn.method(matchers)
	warn.buyer(gate.Buyer)
	warn.identities(gate)
	warn.shared(gate)
	warn.jwks(gate.JWT)
	warn.guard()
	return h.NewRoute(matchers, gate), nil
}

// readGuard reads a guard. A matcher would leave a way around it, so it has none.
func readGuard(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
	guard := new(Guard)
	if err := guard.UnmarshalCaddyfile(h.Dispenser); err != nil {
		return nil, err
	}
	return h.NewRoute(nil, guard), nil
}

// readStatus reads a status handler.
func readStatus(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	status := new(Status)
	return status, status.UnmarshalCaddyfile(h.Dispenser)
}

// UnmarshalCaddyfile reads the guard. Syntax:
//
//	stockgate_guard {
//		allow_headers <name...>
//	}
func (g *Guard) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the directive's name
	if d.NextArg() {
		return d.Errf("stockgate_guard protects the whole site: it takes no matcher and no arguments, found %q", d.Val())
	}
	return readBlock(d, map[string]option{
		"allow_headers": {usage: "allow_headers <name...>", read: texts(&g.AllowHeaders)},
	})
}

// UnmarshalCaddyfile reads the status handler. Syntax:
//
//	stockgate_status [<matcher>]
func (*Status) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the directive's name
	if d.NextArg() {
		return d.Errf("stockgate_status takes no arguments besides a matcher, found %q", d.Val())
	}
	if d.NextBlock(0) {
		return d.Errf("stockgate_status takes no block")
	}
	return nil
}

// Interface guards
var (
	_ caddyfile.Unmarshaler = (*App)(nil)
	_ caddyfile.Unmarshaler = (*Gate)(nil)
	_ caddyfile.Unmarshaler = (*Guard)(nil)
	_ caddyfile.Unmarshaler = (*Status)(nil)
)

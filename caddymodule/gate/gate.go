// Package gate is the handler stockgate, which decides before an order route which attempts
// may buy.
package gate

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/caddymodule/gate/option"
	"github.com/stockgate/stockgate/caddymodule/gate/order"
	"github.com/stockgate/stockgate/caddymodule/gate/selling"
	"github.com/stockgate/stockgate/caddymodule/gate/shadow"
	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/filters/scope"
)

func init() { caddy.RegisterModule(new(Gate)) }

// Gate decides, before an order route, which attempts may buy: it reads the attempt,
// reserves its stock in Redis, and forwards only reserved attempts, with a signed token.
// The shop's answer then confirms or releases the reservation.
//
// Values are placeholders or constants; of several, the first that is not empty
// counts. `{json.PATH} {form.NAME} {param.NAME} {query.NAME} {header.NAME}
// {cookie.NAME} {path.N} {jwt.CLAIM} {client_ip}` are read strictly: what two
// servers could read differently is refused.
//
// The handler stockgate_check refuses what the filters of a gate refuse, and reserves
// nothing.
//
// After the gate these placeholders are set:
//
// Placeholder | Description
// ------------|------------
// `{http.stockgate.verdict}` | reserved, waiting (the client was told its place), repeated (forwarded again), replayed (the stored answer), refused, bypassed (`caddy stockgate bypass`), or passed (by stockgate_check, or without a listed item)
// `{http.stockgate.reason}` | why the attempt was refused
// `{http.stockgate.title}` | the same as a sentence for the buyer
// `{http.stockgate.sale}` | the sale
// `{http.stockgate.reservation}` | the reservation's id
// `{http.stockgate.ref}` | the shop's own name of the order or cart
type Gate struct {
	option.AttemptOptions
	// Check is no option, and an error: the handler stockgate_check refuses early and reserves nothing.
	Check json.RawMessage `json:"check,omitempty"`
	selling.SellingOptions

	judge.Judge `json:"-"`
	terms       selling.Terms
	taker       order.Taker
	shadow      shadow.Shadow
	sharesQueue bool // orders of the gate wait in the line of another one
}

// CaddyModule returns the Caddy module information.
func (*Gate) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.stockgate", New: func() caddy.Module { return new(Gate) }}
}

// Provision compiles the gate.
func (g *Gate) Provision(ctx caddy.Context) error {
	return g.InSite(ctx, g.provision(ctx))
}

func (g *Gate) provision(ctx caddy.Context) error {
	g.Bind()
	if g.Check != nil {
		return errCheck
	}
	if err := g.Judge.Open(ctx); err != nil {
		return err
	}
	if err := g.taker.Print(g); err != nil {
		return err
	}
	if err := g.terms.Open(g.KnowsNames(), g.Log()); err != nil {
		return err
	}
	g.taker.Open()
	if g.Shadow {
		if err := g.shadow.Open(&g.Judge, &g.terms); err != nil {
			return err
		}
	}
	return g.provisionServer(ctx)
}

// provisionServer tells the gate's server and its guards about the gate.
func (g *Gate) provisionServer(ctx caddy.Context) error {
	var exitsAs *caddyhttp.MatchPath
	if len(g.ExitsAs) > 0 {
		var err error
		if exitsAs, err = guard.ExitPaths(g.ExitsAs); err != nil {
			return err
		}
	}
	if err := g.Serve(ctx, exitsAs); err != nil {
		return err
	}
	g.taker.PrintOrder()
	if !g.Shadow {
		g.taker.KeepConns()
	}
	return Of(g.App).Add(g)
}

var errCheck = errors.New("check is no option of a gate, which reserves stock: write `stockgate_check` in place of `stockgate`, without check, to refuse early and reserve nothing")

// Bind gives the judge, the terms and the taker the gate's options.
func (g *Gate) Bind() *option.Setup {
	g.Setup = option.Setup{
		AttemptOptions: &g.AttemptOptions,
		Names:          option.Names{Ref: g.Ref, RefShared: g.RefShared, Continue: g.Continue, Idempotency: g.Idempotency, Lookup: g.Lookup},
		Own:            g, InShadow: g.Shadow,
	}
	g.terms.Bind(&g.SellingOptions, &g.Setup)
	g.taker.Bind(&g.Judge, &g.terms)
	return &g.Setup
}

// Cleanup releases what Provision has acquired, even if it failed halfway.
func (g *Gate) Cleanup() error {
	if g.App != nil {
		Of(g.App).remove(g)
	}
	return errors.Join(g.Close(), g.terms.Close())
}

// ServeHTTP takes one request through the gate: it reads the attempt, judges it by the rules, reserves, signs
// and forwards; the shop's answer settles the reservation.
func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if isTurn, err := g.taker.ServeTurn(w, r, next); isTurn { // all gates have judged it
		return err
	}
	if g.Shadow {
		return g.shadow.ServeHTTP(w, r, next)
	}
	bypass := g.Bypass().State()
	if bypass == app.BypassOn {
		return g.taker.ServeBypassed(w, r, next)
	}
	p := g.taker.Begin(g.Visit(w, r))
	defer p.EndTurn(r)
	switch over, err := g.Meet(w, r, next, &p.Case); {
	case over:
		return err
	case p.HasAnswer():
		return g.taker.Answer(w, r, p)
	case bypass == app.BypassEnding && p.Scope == scope.Attempt && !p.Unlisted: // Redis lacks what the bypass has sold
		return g.Refuse(w, r, p.SaleID(), p.Began, refuse.Unavailable)
	}
	takeBack := guard.Decide(r)
	var err error
	if p.Unlisted || p.Scope == scope.Other {
		err = g.HandOn(w, r, next, &p.Case)
	} else {
		err = g.taker.Sell(w, r, next, p)
	}
	if err != nil {
		takeBack()
	}
	return err
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Gate)(nil)
	_ caddy.CleanerUpper          = (*Gate)(nil)
	_ caddyhttp.MiddlewareHandler = (*Gate)(nil)
	_ guard.Handler               = (*Gate)(nil)
)

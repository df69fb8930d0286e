// Package gate is the handler stockgate, which decides before an order route which attempts
// may buy.
package gate

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/forward"
	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/caddymodule/gate/option/inquiry"
	"github.com/stockgate/stockgate/caddymodule/gate/option/probe"
	"github.com/stockgate/stockgate/caddymodule/gate/option/ratelimit"
	"github.com/stockgate/stockgate/caddymodule/gate/option/waiting"
	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/filters"
	"github.com/stockgate/stockgate/filters/outcome"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/filters/scope"
	"github.com/stockgate/stockgate/internal/edge"
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
	judge.AttemptOptions
	// Check is no option, and an error: the handler stockgate_check refuses early and reserves nothing.
	Check json.RawMessage `json:"check,omitempty"`
	// Ref is the shop's name of the order or cart, 1 to 128 characters: sold once to its buyer, then forwarded again.
	// `shared`: one order for all buyers; only for refs that cannot be guessed. Default: none.
	//
	// It has the form of a SKU. In a sale a buyer has at most one reservation for it that is not released or
	// expired: while that one is decided, another attempt is refused; when it is sold, the same order is forwarded
	// again with its token, and nothing is reserved. Another buyer with the same ref is another order.
	Ref []string `json:"ref,omitempty"`
	// RefShared: a ref names one order of the sale for all buyers, so that another buyer
	// with the same ref is refused. Use it only for refs that the shop's server makes and
	// that cannot be guessed: the first buyer with a ref has it. Default: false.
	RefShared bool `json:"ref_shared,omitempty"`
	// Continue: an attempt takes the place of another gate's hold under its ref. Default: off.
	//
	// The hold is one of the same buyer, made by a gate with outcome backend, as when the buyer comes to pay.
	// Without it only another cart takes that place, in a gate with outcome backend.
	Continue bool `json:"continue,omitempty"`
	// Repeats bounds how often a sold order is forwarded again, for each reservation. Default, with `ref`: `5 10s
	// keys 10000`.
	//
	// It counts on this edge alone.
	Repeats *ratelimit.Repeats `json:"repeats,omitempty"`
	// Lookup asks the shop what is in the cart, for `{lookup.PATH}`. Default: none.
	//
	// It asks in the buyer's name, after the lists and rates.
	Lookup *inquiry.Spec `json:"lookup,omitempty"`
	// Idempotency is the buyer's key, 1 to 255 characters: the same key gets the first answer again. Default:
	// none.
	//
	// The same request with the same key is reserved and sold once. Keys are per sale: the same key for an item of
	// another sale is a new purchase.
	Idempotency []string `json:"idempotency,omitempty"`
	// IdempotencyTTL is how long the key of a sold order is remembered, up to 720h, at least until the sale ends.
	// Default: 24h.
	IdempotencyTTL caddy.Duration `json:"idempotency_ttl,omitempty"`
	// Outcome is decided by the shop's answer, a later call of the shop to its API, or a question to it. Default:
	// `response`.
	//
	// With backend the shop confirms, extends or releases the hold, or lets it expire.
	Outcome string `json:"outcome,omitempty"`
	// Ask is what the shop is asked, in the buyer's name, after an order, with outcome ask.
	// The Rules judge what it answers.
	Ask *inquiry.Ask `json:"ask,omitempty"`
	// Answers are named tests of the shop's answer.
	Answers map[string]outcome.AnswerMatcher `json:"answers,omitempty"`
	// Rules decide the outcome; the first that matches counts. Without a confirm rule
	// 2xx confirms; without a release rule 4xx except 408, 409 and 499 releases.
	// What no rule matches is in doubt. With outcome backend there are only release
	// rules, none by default, and what no rule matches stays held.
	Rules []outcome.Rule `json:"rules,omitempty"`
	// InDoubt: holds in doubt wait for the shop or an operator, or the gate asks the shop. Default: `keep`.
	InDoubt *probe.InDoubt `json:"in_doubt,omitempty"`
	// HoldFor is how long stock is held for an attempt, 3s to 24h; the sale's `max_hold` bounds only what the shop extends.
	// Default: 30s; with `outcome backend` 15m.
	HoldFor caddy.Duration `json:"hold_for,omitempty"`
	// ForwardTimeout is how long the shop may take, at most until the token expires. Default: until then; with `outcome
	// backend` at most 20s.
	ForwardTimeout caddy.Duration `json:"forward_timeout,omitempty"`
	// MaxAnswer is how much of the shop's answer rules may read, 1KiB to 16MiB; an order may take several times as much
	// memory. Where a rule needs more, the reservation is in doubt. Default: 64KiB.
	//
	// A lookup reads 64 KiB.
	MaxAnswer int64 `json:"max_answer,omitempty"`
	// Queue lets orders with stock wait for the shop, in place of `busy`. Default: off.
	Queue *waiting.Options `json:"queue,omitempty"`
	// ExitsAs are the paths under which Caddy's rewrites send orders to the shop. Default: the matcher's.
	//
	// Each is as in a path matcher. Other requests that leave so are refused.
	ExitsAs []string `json:"exits_as,omitempty"`
	// Shadow: the gate refuses and holds nothing, and counts what it would have done. Default: off.
	//
	// It forwards every request as it is. When the shop has answered, a dry run decides what the gate would have
	// done, and metrics and reports say it.
	Shadow bool `json:"shadow,omitempty"`

	judge.Judge    `json:"-"`
	ask            *inquiry.Inquiry // nil: the outcome is not asked
	asksLater      *filters.Slots   // bounds the orders that are asked about again
	after          func(time.Duration, func()) *time.Timer
	outcomes       *outcome.Rules
	holdOptions    edge.HoldOptions
	probe          *probe.Probe // nil: holds in doubt are kept
	repeats        ratelimit.RepeatRate
	forwardTimeout time.Duration // how long the shop may take; 0: until the token expires
	slots          forward.Slots
	// prints are those under which orders of the gate wait; otherRules judge orders that were made with
	// the other outcome mode; later is the answer that puts an order off, nil: there is none.
	prints     prints
	verifying  *inquiry.Inquiry // the lookup of orders that have waited; nil: there is none
	otherRules *outcome.Rules
	later      func(*outcome.ShopAnswer) (yes, known bool)
	asking     *filters.Slots // bounds the attempts that ask Redis about earlier orders
	bypassing  *filters.Slots // bounds the orders that are at the shop during a bypass
	// refIsLookedUp: the gate has a queue, and the cart that is looked up has the ref.
	refIsLookedUp bool
	sharesQueue   string // a warning, see sharedQueue; empty: there is none
	shadow        shadowed
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
	if err := g.provisionOutcome(); err != nil {
		return err
	}
	if err := g.provisionHolds(); err != nil {
		return err
	}
	if len(g.Ref) > 0 {
		if err := g.repeats.Open(g.Name, g.Repeats); err != nil {
			return err
		}
	}
	if err := g.provisionShadow(); err != nil {
		return err
	}
	return g.provisionServer(ctx)
}

var errCheck = errors.New("check is no option of a gate, which reserves stock: write `stockgate_check` in place of `stockgate`, without check, to refuse early and reserve nothing")

// Bind gives the judge its gate's options.
func (g *Gate) Bind() *judge.Judge {
	g.Setup = judge.Setup{
		AttemptOptions: &g.AttemptOptions,
		Names:          judge.Names{Ref: g.Ref, RefShared: g.RefShared, Continue: g.Continue, Idempotency: g.Idempotency, Lookup: g.Lookup},
		Seller:         g, InShadow: g.Shadow,
	}
	return &g.Judge
}

// Cleanup releases what Provision has acquired, even if it failed halfway.
func (g *Gate) Cleanup() error {
	if g.App() != nil {
		Of(g.App()).remove(g)
	}
	g.ask.Close()
	g.verifying.Close()
	return errors.Join(g.Close(), g.repeats.Close())
}

// ServeHTTP takes one request through the gate: it reads the attempt, judges it by the rules, reserves, signs
// and forwards; the shop's answer settles the reservation.
func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if dispatch := waiting.DispatchOf(r); dispatch != nil { // all gates have judged it
		return g.serveTurn(w, r, next, dispatch)
	}
	if g.Shadow {
		return g.serveShadow(w, r, next)
	}
	bypass := g.Bypass().State()
	if bypass == app.BypassOn {
		return g.ServeBypassed(w, r, bypassed{g, next})
	}
	p := &judge.Case{Visit: g.Visit(w, r)}
	defer p.EndTurn(r)
	switch over, err := g.Meet(w, r, next, p); {
	case over:
		return err
	case p.Ticket != "":
		return g.accept(w, r, p)
	case p.Stored != nil:
		return g.replay(w, r, p)
	case bypass == app.BypassEnding && p.Scope == scope.Attempt && !p.Unlisted: // Redis lacks what the bypass has sold
		return g.Refuse(w, r, p.SaleID(), p.Began, refuse.Unavailable)
	}
	takeBack := guard.Decide(r)
	var err error
	if p.Unlisted || p.Scope == scope.Other {
		err = g.HandOn(w, r, next, p)
	} else {
		err = g.sell(w, r, next, p)
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

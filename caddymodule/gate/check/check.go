package check

import (
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/caddymodule/gate/option"
	"github.com/stockgate/stockgate/caddymodule/gate/option/inquiry"
	"github.com/stockgate/stockgate/caddymodule/gate/option/waiting"
	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/filters"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/filters/scope"
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
	option.AttemptOptions
	// Lookup asks the shop, in the buyer's name, which cart a request is about, for a credential
	// of OneAtATime such as {lookup.cart.id}. Default: none.
	Lookup *inquiry.Spec `json:"lookup,omitempty"`

	judge.Judge `json:"-"`
	passing     *filters.Slots // bounds the attempts that pass at a time; nil: there is no bound
}

// CaddyModule returns the Caddy module information.
func (*Check) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.stockgate_check", New: func() caddy.Module { return new(Check) }}
}

// Provision compiles the options.
func (c *Check) Provision(ctx caddy.Context) error {
	return c.InSite(ctx, c.provision(ctx))
}

func (c *Check) provision(ctx caddy.Context) error {
	c.Bind()
	if err := c.Open(ctx); err != nil {
		return err
	}
	if c.MaxInFlight > 0 {
		c.passing = filters.NewSlots(c.MaxInFlight)
	}
	return c.Serve(ctx, nil)
}

// Bind gives the judge the options of the check.
func (c *Check) Bind() *option.Setup {
	c.Setup = option.Setup{AttemptOptions: &c.AttemptOptions, Names: option.Names{Lookup: c.Lookup}}
	return &c.Setup
}

// ServeHTTP refuses a request or hands it on.
func (c *Check) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if waiting.DispatchOf(r) != nil { // all gates have judged it
		return next.ServeHTTP(w, r)
	}
	if c.Bypass().State() == app.BypassOn {
		return c.ServeBypassed(w, r, next)
	}
	p := &judge.Case{Visit: c.Visit(w, r)}
	defer p.EndTurn(r)
	if over, err := c.Meet(w, r, next, p); over {
		return err
	}
	if c.passing != nil && p.Scope == scope.Attempt && !p.Unlisted {
		if !c.passing.Take() {
			return c.Refuse(w, r, p.SaleID(), p.Began, refuse.Busy)
		}
		defer c.passing.Give()
	}
	return c.HandOn(w, r, next, p)
}

// Cleanup releases what Provision has acquired.
func (c *Check) Cleanup() error { return c.Close() }

// Interface guards
var (
	_ caddy.Provisioner           = (*Check)(nil)
	_ caddy.CleanerUpper          = (*Check)(nil)
	_ caddyhttp.MiddlewareHandler = (*Check)(nil)
)

// ReadDirective reads a stockgate_check, with the warnings of a gate.
func ReadDirective(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
	return option.ReadDirective(h, func() *Check { return new(Check) }, nil)
}

// UnmarshalCaddyfile reads a stockgate_check. Syntax:
//
//	stockgate_check [<matcher>] [<name>] {
//		graphql   [query.]<field> [<argument> <value...>]
//		json_body <path> [<value...>]
//		persisted <file>
//		websockets pass
//		line     <sku> [<quantity> [absent 0|1]]
//		lines    <array> <sku-field> [<quantity-field>]
//		buyer    <value...>
//		identity phone|email|address|device|ip <value...>
//		jwt      …
//		sale     <value...>
//		region   <value...>
//		deny     <list...>
//		allow    <list...>
//		rate     …
//		challenge pow { … }
//		other_items refuse|pass
//		one_at_a_time [shared] <credential...> [except <path|@matcher...>]
//		lookup   [GET|POST] <url> [<body>] {
//			at_once <number>
//			queue   <number>
//			wait    <duration>
//			timeout <duration>
//		}
//		max_in_flight <number>
//		max_body <size>
//		body     checked|ignored
//		also_query <parameter[=prefix]...>
//		fast_refusals [force] {
//			log <percentage>
//		}
//		refuse   …
//		messages …
//	}
//
// The options are those of the gate. A lookup is for the credentials of one_at_a_time only.
func (c *Check) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	if err := c.ReadName(d); err != nil {
		return err
	}
	at := *d
	options := c.Directives()
	options["lookup"] = directive.Option{Usage: inquiry.LookupUsage, Read: inquiry.ReadLookup(&c.Lookup)}
	if err := directive.ReadBlock(d, options); err != nil {
		return err
	}
	return directive.WrapOption(at, c.Bind().Conflict())
}

// Interface guard
var _ caddyfile.Unmarshaler = (*Check)(nil)

package gate

import (
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/caddymodule/jwt"
	"github.com/stockgate/stockgate/caddymodule/pow"
	"github.com/stockgate/stockgate/caddymodule/rates"
	"github.com/stockgate/stockgate/refuse"
)

func init() { caddy.RegisterModule(new(Check)) }

// Check refuses, from memory, what a gate's filters refuse, and hands on every other
// request unchanged: it reserves nothing and adds no token. Put it before expensive
// handlers, such as an authentication server or the route that fills a cart; a gate stands
// before the order route.
//
// Its options are the options of the gate that read and judge an attempt, with the same
// defaults; only the lines are required. After it `{http.stockgate.verdict}` is refused or
// passed, as after a gate.
type Check struct {
	// Name names the check in logs and for `caddy stockgate try`. Default: none.
	Name string `json:"name,omitempty"`
	// Sale gives the sale's id. Default: the open sale that lists the item.
	Sale []string `json:"sale,omitempty"`
	// JWT verifies the shop's own bearer token, whose claims are then available as values.
	JWT *jwt.Config `json:"jwt,omitempty"`
	// Buyer gives the buyer. Default: unknown, and not required.
	Buyer []string `json:"buyer,omitempty"`
	// Identities give further ways to recognize a buyer, by kind: phone, address, device,
	// ip.
	Identities map[string][]string `json:"identities,omitempty"`
	// Region gives the region whose stock the attempt uses.
	Region []string `json:"region,omitempty"`
	// Lines are the items to buy, one line each. Required, unless LinesFrom is given.
	Lines []Line `json:"lines,omitempty"`
	// LinesFrom reads the lines from an array in a JSON body.
	LinesFrom *LinesFrom `json:"lines_from,omitempty"`
	// Deny names lists: an attempt that is in one of them is refused as denied.
	Deny []string `json:"deny,omitempty"`
	// Allow names lists: an attempt that is in none of them is refused as not_eligible.
	Allow []string `json:"allow,omitempty"`
	// OtherItems says what happens to an attempt whose items no sale lists: refuse
	// (unknown_item) or pass. Default: refuse.
	OtherItems string `json:"other_items,omitempty"`
	// Rates limit how often attempts may come, at most 16 rates. Default: none.
	Rates []rates.Rate `json:"rates,omitempty"`
	// Challenge asks for a proof of work while more attempts come than usual; its solutions
	// are not valid at the order route. Default: none.
	Challenge *pow.Challenge `json:"challenge,omitempty"`
	// MaxBody limits an attempt's body in bytes. Default: 64 KiB.
	MaxBody int64 `json:"max_body,omitempty"`
	// Body says what happens to a body from which no value is read: checked or ignored.
	// Default: checked.
	Body string `json:"body,omitempty"`
	// Refusals change how refusals look. Default: problems (RFC 9457).
	Refusals []refuse.Style `json:"refusals,omitempty"`
	// AlsoQuery names query parameters that the shop takes for the path of a route.
	// Default: none.
	AlsoQuery []string `json:"also_query,omitempty"`
	// FastRefusals lets the listener wrapper stockgate answer what is refused from memory.
	// Default: none.
	FastRefusals *FastRefusals `json:"fast_refusals,omitempty"`

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
func (c *Check) asGate() *Gate {
	return &Gate{
		Check: true, Name: c.Name,
		Sale: c.Sale, JWT: c.JWT, Buyer: c.Buyer, Identities: c.Identities, Region: c.Region, Lines: c.Lines, LinesFrom: c.LinesFrom,
		Deny: c.Deny, Allow: c.Allow, OtherItems: c.OtherItems, Rates: c.Rates, Challenge: c.Challenge,
		MaxBody: c.MaxBody, Body: c.Body, Refusals: c.Refusals, AlsoQuery: c.AlsoQuery, FastRefusals: c.FastRefusals,
	}
}

// take copies the options of a gate that was read with the options of a check.
func (c *Check) take(g *Gate) {
	*c = Check{
		Name: g.Name,
		Sale: g.Sale, JWT: g.JWT, Buyer: g.Buyer, Identities: g.Identities, Region: g.Region, Lines: g.Lines, LinesFrom: g.LinesFrom,
		Deny: g.Deny, Allow: g.Allow, OtherItems: g.OtherItems, Rates: g.Rates, Challenge: g.Challenge,
		MaxBody: g.MaxBody, Body: g.Body, Refusals: g.Refusals, AlsoQuery: g.AlsoQuery, FastRefusals: g.FastRefusals,
	}
}

// Guarded returns what guards need to know of the check.
func (c *Check) Guarded() *guard.Gate { return c.gate.Guarded() }

// Gate returns the gate with the options of the check, which only checks.
func (c *Check) Gate() *Gate { return c.gate }

// Interface guards
var (
	_ caddy.Provisioner           = (*Check)(nil)
	_ caddy.CleanerUpper          = (*Check)(nil)
	_ caddyhttp.MiddlewareHandler = (*Check)(nil)
)

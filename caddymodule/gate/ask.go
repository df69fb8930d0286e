package gate

import (
	"slices"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/attempt"
	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/caddymodule/operation"
	"github.com/stockgate/stockgate/caddymodule/probe"
	"github.com/stockgate/stockgate/refuse"
	"github.com/stockgate/stockgate/sale"
)

// AsksIP says whether the gate uses the client's address.
func (g *Gate) AsksIP() bool {
	return g.lists.Any() || g.Challenge != nil || g.reader.Needs().Has(attempt.NeedIP|attempt.NeedJWT)
}

// Heeds says whether the gate reads a header of a request.
func (g *Gate) Heeds(name string) bool { return g.reader.ReadsHeader(name) }

// Server is the server that the gate belongs to; nil: none.
func (g *Gate) Server() *caddyhttp.Server { return g.server }

// Routes returns the routes of the gate's server that lead to gates.
func (g *Gate) Routes() *guard.Routes { return &g.routes }

// Refuser returns the gate's answers to refusals.
func (g *Gate) Refuser() *refuse.Refuser { return g.refuser }

// Probe returns the probe that asks the shop about holds in doubt; nil: they are kept.
func (g *Gate) Probe() *probe.Probe { return g.probe }

// Guarded returns what guards need to know of the gate.
func (g *Gate) Guarded() *guard.Gate { return &g.guarded }

// AnyoneCounts says whether a client may choose by whom a limit counts it: the gate reads
// at least one of the limit's identities, and has verified none of them.
func (g *Gate) AnyoneCounts(per sale.Identities) bool {
	reads := false
	for kind := range per.All {
		values := g.Identities[kind]
		if kind == "buyer" {
			values = g.Buyer
		}
		if verified(values) {
			return false
		}
		reads = reads || len(values) > 0
	}
	return reads
}

// byClient says whether a client can set a value to anything.
func byClient(expr string) bool {
	v, err := attempt.Compile(expr)
	return operation.ByClient(expr) || err == nil && v.ByClient()
}

// verified says whether an identity has a value that the client cannot choose: from an
// authentication, from a bearer token, or the client's address.
func verified(values []string) bool {
	return len(values) > 0 && !slices.ContainsFunc(values, byClient)
}

package gate

import (
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/attempt"
	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/caddymodule/probe"
	"github.com/stockgate/stockgate/refuse"
)

// AsksIP says whether the gate uses the client's address.
func (g *Gate) AsksIP() bool {
	return g.persons.Any() || g.Challenge != nil || g.reader.Needs().Has(attempt.NeedIP|attempt.NeedJWT)
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

package gate

import (
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/attempt"
	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/caddymodule/probe"
	"github.com/stockgate/stockgate/refuse"
)

// AsksIP says whether the client's address matters.
func (g *Gate) AsksIP() bool {
	return g.persons.Any() || g.Challenge != nil || g.reader.Needs().Has(attempt.NeedIP|attempt.NeedJWT)
}

// Heeds says whether the gate looks at a header of a request.
func (g *Gate) Heeds(name string) bool { return g.reader.HeadersRead(name) }

// Server is what the gate is part of; nil: none.
func (g *Gate) Server() *caddyhttp.Server { return g.server }

// Routes are the routes of the gate's server, as far as they lead to gates.
func (g *Gate) Routes() *guard.Routes { return &g.routes }

// Refuser has the gate's answers to refusals.
func (g *Gate) Refuser() *refuse.Refuser { return g.refuser }

// Probe asks the shop about holds in doubt; nil: they are kept.
func (g *Gate) Probe() *probe.Probe { return g.probe }

// Guarded is what guards know of the gate.
func (g *Gate) Guarded() *guard.Gate { return &g.guarded }

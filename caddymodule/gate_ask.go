package caddymodule

import (
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/attempt"
)

// asksIP says whether the client's address matters.
func (g *Gate) asksIP() bool {
	return g.persons.any() || g.Challenge != nil || g.reader.Needs().Has(attempt.NeedIP|attempt.NeedJWT)
}

// Heeds says whether the gate looks at a header of a request.
func (g *Gate) Heeds(name string) bool { return g.reader.Heeds(name) }

// Server is what the gate is part of; nil: none.
func (g *Gate) Server() *caddyhttp.Server { return g.server }

// Routes are the routes of the gate's server, as far as they lead to gates.
func (g *Gate) Routes() *gateRoutes { return &g.routes }

// Refuser has the gate's answers to refusals.
func (g *Gate) Refuser() *refuser { return g.refuser }

// Probe asks the shop about holds in doubt; nil: they are kept.
func (g *Gate) Probe() *probe { return g.probe }

package caddymodule

import (
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// guardedGate is what guards, and the second look, know of a gate. What a gate is at is
// compared by the pointer.
type guardedGate struct {
	name string
	// check: the gate only checks, so its route is not one that must not be avoided.
	check bool
	// alsoQuery are query parameters that the shop takes for the path of a route.
	alsoQuery []string
	// exitsAs are the paths under which its orders leave; nil: those of its matcher.
	exitsAs *caddyhttp.MatchPath
	refuser *refuser
}

// gateHandler is a handler that is a gate.
type gateHandler interface {
	caddyhttp.MiddlewareHandler
	// Guarded is the same for each call.
	Guarded() *guardedGate
}

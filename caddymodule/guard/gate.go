package guard

import (
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/refuse"
)

// Gate is what guards, and the second check, know about a gate. Gates are compared by
// pointer.
type Gate struct {
	Name string
	// Check: the gate only checks, so that its route needs no protection.
	Check bool
	// Shadow: the gate refuses nothing, so that its route needs no protection yet.
	Shadow bool
	// AlsoQuery are query parameters that the shop takes for the path of a route.
	AlsoQuery []string
	// ExitsAs are the paths under which the gate's orders leave; nil: those of its matcher.
	ExitsAs *caddyhttp.MatchPath
	Refuser *refuse.Refuser
}

// Handler is a handler that is a gate.
type Handler interface {
	caddyhttp.MiddlewareHandler
	// Guarded returns the same pointer for each call.
	Guarded() *Gate
}

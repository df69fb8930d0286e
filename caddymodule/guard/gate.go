package guard

import (
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/refuse"
)

// Gate is what guards, and the second look, know of a gate. Two gates are told apart by the
// pointers.
type Gate struct {
	Name string
	// Check: the gate only checks, so its route is not one that must not be avoided.
	Check bool
	// AlsoQuery are query parameters that the shop takes for the path of a route.
	AlsoQuery []string
	// ExitsAs are the paths under which its orders leave; nil: those of its matcher.
	ExitsAs *caddyhttp.MatchPath
	Refuser *refuse.Refuser
}

// Handler is a handler that is a gate.
type Handler interface {
	caddyhttp.MiddlewareHandler
	// Guarded is the same for each call.
	Guarded() *Gate
}

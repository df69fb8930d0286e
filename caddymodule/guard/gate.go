package guard

import (
	"fmt"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/filters/route"
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
	AlsoQuery []route.QueryPath
	// ExitsAs are the paths under which the gate's orders leave; nil: those of its matcher.
	ExitsAs *caddyhttp.MatchPath
	Refuser *refuse.Refuser
	// door: it stands for a closed door, to which no request comes.
	door bool
	// Avoidable are warnings about matchers around the gate by which a client can avoid it.
	Avoidable []string
}

// QueryPaths reads the parameters of also_query: NAME, or NAME=PREFIX.
func QueryPaths(texts []string) ([]route.QueryPath, error) {
	var all []route.QueryPath
	for _, text := range texts {
		p, ok := route.ParseQueryPath(text)
		if !ok {
			return nil, fmt.Errorf("also_query: %q: write the parameter's name, such as s, or with the path below which the shop reads its value, such as rest_route=/wp-json", text)
		}
		all = append(all, p)
	}
	return all, nil
}

// Handler is a handler that is a gate.
type Handler interface {
	caddyhttp.MiddlewareHandler
	// Guarded returns the same pointer for each call.
	Guarded() *Gate
}

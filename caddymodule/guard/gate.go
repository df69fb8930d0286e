package guard

import (
	"fmt"
	"net/http"

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
	// ReadsQuery: an attempt may be a GET, because servers may read its item or operation in the query.
	ReadsQuery bool
	// NeedsPayload: an attempt has a query or a body.
	NeedsPayload bool
	Refuser      *refuse.Refuser
	// Bypassed reports whether an order passes now without having met the gate, and counts it; nil: none does.
	Bypassed func() bool
	// door: it stands for a closed door, to which no request comes.
	door bool
	// Warnings are those about the matchers around the gate.
	Warnings []string
}

// passesPrefix reports whether a request for /x passes beside a gate for /x/*, although servers may read
// /x/ in it: a check decides nothing for the order itself, and a GET or HEAD without a body has no item. named: the gate's
// matchers name these methods.
func (g *Gate) passesPrefix(r *reading, named bool) bool {
	return !g.door && (g.Check || g.NeedsPayload && !named && r.bare && isRead(r.asked) && !g.findsIn(r.URL.RawQuery))
}

// findsIn reports whether a query may make an attempt of a request without a body.
func (g *Gate) findsIn(query string) bool { return g.ReadsQuery && query != "" }

// passesOptions reports whether an OPTIONS request that has met no gate may leave for the upstream: nothing
// in it can be an order.
func (g *Gate) passesOptions(r *reading) bool {
	return r.asked == http.MethodOptions && r.Method == http.MethodOptions && r.bare && !g.door && g.NeedsPayload && !g.findsIn(r.URL.RawQuery)
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

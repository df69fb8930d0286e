package judge

import (
	"slices"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"
)

// LacksAuthentication returns the value that the gate reads from an authentication although none comes
// before it on some way to it, so that it is always empty there; "" if there is no such value. Call it when
// all handlers of the configuration are provisioned.
func (j *Judge) LacksAuthentication() string {
	server := CaddyServer(j)
	if server == nil {
		return ""
	}
	reads := j.ReadsUser()
	if reads == "" {
		return ""
	}
	w := authWalk{judge: j}
	if w.routes(server.Routes, false, nil); w.bare {
		return reads
	}
	return ""
}

// authWalk looks for ways to a judge on which no authentication comes before it. What matchers let pass it
// does not ask: an authentication for some requests counts for all.
type authWalk struct {
	judge *Judge
	bare  bool
}

// routes walks routes in the order in which they run. known: an authentication comes before them. It reports whether one
// comes before what follows them.
func (w *authWalk) routes(routes caddyhttp.RouteList, known bool, invoked []string) bool {
	alternatives := make(map[string]bool) // groups in which there is an authentication: a request takes one route of each
	after := known
	for i := range routes {
		r := &routes[i]
		before := known
		for group, has := range alternatives {
			before = before || has && group != r.Group
		}
		for _, h := range r.Handlers {
			before = w.handler(h, before, invoked)
		}
		switch {
		case r.Terminal: // what follows is for other requests
		case r.Group == "":
			known = known || before
		default:
			alternatives[r.Group] = alternatives[r.Group] || before
		}
		after = after || before
	}
	return after
}

// handler walks a handler, and reports whether an authentication comes before what follows it.
func (w *authWalk) handler(h caddyhttp.MiddlewareHandler, known bool, invoked []string) bool {
	switch h := h.(type) {
	case caddyauth.Authentication, *caddyauth.Authentication:
		return true
	case interface{ itself() *Judge }: // a handler that has a judge
		w.bare = w.bare || h.itself() == w.judge && !known
	case *caddyhttp.Subroute:
		return w.routes(h.Routes, known, invoked)
	case *caddyhttp.Invoke:
		if named := CaddyServer(w.judge).NamedRoutes[h.Name]; named != nil && !slices.Contains(invoked, h.Name) {
			return w.routes(caddyhttp.RouteList{*named}, known, append(slices.Clone(invoked), h.Name))
		}
	}
	return known
}

// itself is the judge of the handler that embeds it.
func (j *Judge) itself() *Judge { return j }

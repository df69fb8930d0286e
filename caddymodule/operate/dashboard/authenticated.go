package dashboard

import (
	"encoding/json"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"
)

// rawHandler is what counts of a handler that is not provisioned yet.
type rawHandler struct {
	Handler     string          `json:"handler"`
	Unprotected bool            `json:"unprotected"`
	Roles       json.RawMessage `json:"roles"`
	Look        json.RawMessage `json:"look"`
	Providers   json.RawMessage `json:"providers"` // of an authentication handler
	Routes      []rawRoute      `json:"routes"`
}

// exempt reports whether a dashboard needs no authentication. One with roles needs it for its users.
func (h *rawHandler) exempt(roles bool) bool {
	return h.Unprotected && !(roles && (len(h.Roles) > 0 || len(h.Look) > 0))
}

type rawRoute struct {
	Handle []json.RawMessage `json:"handle"`
}

// authenticated reports whether an authentication handler stands before each dashboard of a
// server that is not provisioned yet, unless that says unprotected. The caller is one of
// them: Caddy keeps the configuration of a route until all its handlers are provisioned.
// Whether the matchers of that handler take a request is checked when it comes.
func authenticated(server *caddyhttp.Server) bool { return allBehind(server, false) }

// authenticatedAll is authenticated, where unprotected does not count for dashboards with roles.
func authenticatedAll(server *caddyhttp.Server) bool { return allBehind(server, true) }

func allBehind(server *caddyhttp.Server, roles bool) bool {
	found := 0
	for _, list := range routesOf(server) {
		before := false
		for i := range list {
			for _, h := range list[i].Handlers {
				if _, ok := h.(*caddyauth.Authentication); ok {
					before = true
				}
			}
			n, ok := dashboardsBehind(list[i].HandlersRaw, &before, roles)
			if !ok {
				return false
			}
			found += n
		}
	}
	return found > 0
}

func routesOf(server *caddyhttp.Server) []caddyhttp.RouteList {
	lists := []caddyhttp.RouteList{server.Routes}
	if server.Errors != nil {
		lists = append(lists, server.Errors.Routes)
	}
	for _, named := range server.NamedRoutes {
		lists = append(lists, caddyhttp.RouteList{*named})
	}
	return lists
}

// dashboardsBehind counts the dashboards among handlers. It returns false if one of them has
// no authentication before it; before says, and learns, whether there was one.
func dashboardsBehind(handlers []json.RawMessage, before *bool, roles bool) (found int, ok bool) {
	for _, raw := range handlers {
		var h rawHandler
		if json.Unmarshal(raw, &h) != nil {
			return found, false
		}
		switch h.Handler {
		case "authentication":
			*before = true
		case "stockgate_dashboard":
			if !*before && !h.exempt(roles) {
				return found, false
			}
			found++
		case "subroute":
			inside := *before // what is inside does not stand before what follows
			for _, r := range h.Routes {
				n, ok := dashboardsBehind(r.Handle, &inside, roles)
				if found += n; !ok {
					return found, false
				}
			}
		}
	}
	return found, true
}

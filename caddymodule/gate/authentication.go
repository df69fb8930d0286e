package gate

import (
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"
)

// userPlaceholder begins the placeholders that only an authentication handler sets.
const userPlaceholder = "{http.auth.user."

// LacksAuthentication returns the value that the gate reads from an authentication although its
// server has none, so that it is always empty; "" if there is no such value. Call it when all
// handlers of the configuration are provisioned.
func (g *Gate) LacksAuthentication() string {
	if g.server == nil {
		return ""
	}
	reads := ""
	for _, values := range append([][]string{g.Buyer}, g.identities()...) {
		if at := slices.IndexFunc(values, func(v string) bool { return strings.Contains(v, userPlaceholder) }); at >= 0 && reads == "" {
			reads = values[at]
		}
	}
	if reads == "" || authenticates(g.server.Routes) {
		return ""
	}
	for _, named := range g.server.NamedRoutes {
		if named != nil && authenticates(caddyhttp.RouteList{*named}) {
			return ""
		}
	}
	return reads
}

func (g *Gate) identities() (all [][]string) {
	for _, kind := range identityKinds {
		all = append(all, g.Identities[kind])
	}
	return all
}

// authenticates tells whether a handler in these routes can set who the user is.
func authenticates(routes caddyhttp.RouteList) bool {
	for i := range routes {
		for _, h := range routes[i].Handlers {
			switch h := h.(type) {
			case caddyauth.Authentication, *caddyauth.Authentication:
				return true
			case *caddyhttp.Subroute:
				if authenticates(h.Routes) {
					return true
				}
			}
		}
	}
	return false
}

// warnLoaded logs what is found when the whole configuration is known.
func (g *Gate) warnLoaded() {
	if reads := g.LacksAuthentication(); reads != "" {
		g.log.Warn(reads + " is always empty, because the server has no authentication: add one before the gate, such as basic_auth, or read the buyer elsewhere")
	}
}

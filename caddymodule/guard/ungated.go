package guard

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/intercept"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

// UngatedSites returns a warning for each site of another server that sends requests for the gate's paths to an
// upstream of the gate, and has no gate before it. Sites of the gate's own server are not asked about: the second
// look at what leaves finds an order there. Call it when all handlers of the configuration are provisioned.
func UngatedSites(g *Gate, title string, own *caddyhttp.Server, all map[string]*caddyhttp.Server) (warnings []string) {
	var home *way
	behind := make(map[string]bool)
	for _, w := range waysOf(own) {
		if to, ok := w.gates[g]; ok {
			home = to
			for _, dial := range w.dials {
				behind[dial] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name] == own {
			continue
		}
		for _, w := range waysOf(all[name]) {
			at := slices.IndexFunc(w.dials, func(dial string) bool { return behind[dial] })
			if at < 0 || len(w.gates) > 0 || !w.meets(home) {
				continue
			}
			_, address, _ := strings.Cut(w.dials[at], " ")
			warning := fmt.Sprintf("%s sends requests for the paths of %s of %s to %s too, and has no gate: nothing reserves an order that comes there; "+
				"put a gate there as well, or see that only your own servers reach that site", w.site(all[name]), title, home.site(own), address)
			if !slices.Contains(warnings, warning) {
				warnings = append(warnings, warning)
			}
		}
	}
	return warnings
}

// way is how requests come to a reverse_proxy: the hosts and paths around it, and the gates before it with
// the way to each.
type way struct {
	hosts []string
	paths [][]string // of each level that has a matcher of paths; a request matches one of each
	gates map[*Gate]*way
	dials []string
}

// site names the site of a way.
func (w *way) site(server *caddyhttp.Server) string {
	if len(w.hosts) > 0 {
		return "the site " + strings.Join(w.hosts, ", ")
	}
	return "the site at " + strings.Join(server.Listen, ", ")
}

// meets reports whether a path can be one of both.
func (w *way) meets(other *way) bool {
	for _, mine := range w.paths {
		for _, theirs := range other.paths {
			if !slices.ContainsFunc(mine, func(a string) bool {
				return slices.ContainsFunc(theirs, func(b string) bool { return overlap(a, b) })
			}) {
				return false
			}
		}
	}
	return true
}

// overlap reports whether a path may match both patterns. It compares what stands before a star.
func overlap(a, b string) bool {
	a, manyOfA := cutStar(a)
	b, manyOfB := cutStar(b)
	return a == b || manyOfA && strings.HasPrefix(b, a) || manyOfB && strings.HasPrefix(a, b)
}

func cutStar(pattern string) (prefix string, star bool) {
	prefix, _, star = strings.Cut(strings.ToLower(pattern), "*")
	if before, _, has := strings.Cut(prefix, "{"); has { // a placeholder may be anything
		return before, true
	}
	return prefix, star
}

// waysOf returns the ways to the reverse_proxies of a server.
func waysOf(server *caddyhttp.Server) []*way {
	w := wayWalk{server: server}
	for site := range sites(server.Routes) {
		w.gates = make(map[*Gate]*way)
		w.routes(site, way{}, nil)
	}
	return w.found
}

// wayWalk walks the routes of one site after the other, in the order in which they run.
type wayWalk struct {
	server *caddyhttp.Server
	gates  map[*Gate]*way // those before this point of the site
	found  []*way
}

func (w *wayWalk) routes(routes caddyhttp.RouteList, at way, invoked []string) {
	for i := range routes {
		inside := at
		inside.add(routes[i].MatcherSets)
		for _, h := range routes[i].Handlers {
			w.handler(h, inside, invoked)
		}
	}
}

// add adds the hosts and the paths of a route. Alternatives without a path match any.
func (w *way) add(sets caddyhttp.MatcherSets) {
	var paths []string
	anyPath := len(sets) == 0
	for _, set := range sets {
		has := false
		for _, m := range set {
			switch m := m.(type) {
			case *caddyhttp.MatchHost:
				w.hosts = slices.Concat(w.hosts, *m)
			case *caddyhttp.MatchPath:
				paths, has = append(paths, *m...), true
			}
		}
		anyPath = anyPath || !has
	}
	if !anyPath {
		w.paths = append(slices.Clone(w.paths), paths)
	}
}

func (w *wayWalk) handler(h caddyhttp.MiddlewareHandler, at way, invoked []string) {
	switch h := h.(type) {
	case Handler:
		w.gates[h.Guarded()] = &at
	case *caddyhttp.Subroute:
		w.routes(h.Routes, at, invoked)
	case *caddyhttp.Invoke:
		if named := w.server.NamedRoutes[h.Name]; named != nil && !slices.Contains(invoked, h.Name) {
			w.routes(caddyhttp.RouteList{*named}, at, append(slices.Clone(invoked), h.Name))
		}
	case *reverseproxy.Handler:
		at.gates = maps.Clone(w.gates)
		for _, u := range h.Upstreams {
			if addr, err := caddy.ParseNetworkAddress(u.Dial); err == nil && !HasPlaceholder(u.Dial) && (addr.PortRangeSize() == 1 || addr.IsUnixNetwork()) {
				at.dials = append(at.dials, dialName(addr.Network, addr.JoinHostPort(0)))
			}
		}
		w.found = append(w.found, &at)
		w.answers(h.HandleResponse, at, invoked)
	case *intercept.Intercept:
		w.answers(h.HandleResponse, at, invoked)
	}
}

func (w *wayWalk) answers(handlers []caddyhttp.ResponseHandler, at way, invoked []string) {
	at.gates, at.dials = nil, nil
	for i := range handlers {
		w.routes(handlers[i].Routes, at, invoked)
	}
}

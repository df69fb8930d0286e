// Package matchers tells what the matchers of Caddy look at that stand around a handler.
package matchers

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Around returns the matcher sets around a handler that is being provisioned, as far as they are
// in the routes of its server; nil: it has no server.
func Around(ctx caddy.Context, server *caddyhttp.Server) caddyhttp.MatcherSets {
	if server == nil {
		return nil
	}
	sets := slices.Clone(current(server.Routes))
	for _, m := range ctx.Modules() {
		if sub, ok := m.(*caddyhttp.Subroute); ok {
			sets = append(sets, current(sub.Routes)...)
		}
	}
	return sets
}

// current returns the matchers of the route whose handlers are being provisioned: it is the first that has
// its handlers in JSON only.
func current(routes caddyhttp.RouteList) caddyhttp.MatcherSets {
	for i := range routes {
		if len(routes[i].Handlers) == 0 && len(routes[i].HandlersRaw) > 0 {
			return routes[i].MatcherSets
		}
	}
	return nil
}

// All goes through the matchers of sets, those within `not` too: the name of each, and its
// configuration as JSON.
func All(sets []caddyhttp.MatcherSet) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) { each(sets, yield) }
}

func each(sets []caddyhttp.MatcherSet, yield func(name, text string) bool) bool {
	for _, set := range sets {
		for _, m := range set {
			if !one(m, yield) {
				return false
			}
		}
	}
	return true
}

func one(m any, yield func(name, text string) bool) bool {
	if not, ok := m.(*caddyhttp.MatchNot); ok {
		return each(not.MatcherSets, yield)
	}
	module, ok := m.(caddy.Module)
	if !ok {
		return true
	}
	text, err := json.Marshal(m)
	return err != nil || yield(strings.TrimPrefix(string(module.CaddyModule().ID), "http.matchers."), string(text))
}

// ReadingAddress returns the names of the matchers that read the client's address, each once.
func ReadingAddress(sets []caddyhttp.MatcherSet) (names []string) {
	for name, text := range All(sets) {
		reads := name == "client_ip" || strings.Contains(text, "client_ip}") || name == "expression" && strings.Contains(text, "client_ip(")
		if reads && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

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

// A Level is a list of routes in which a handler is being provisioned, or a subroute around it.
type Level struct {
	// Before are the routes before its own, Route is that.
	Before caddyhttp.RouteList
	Route  *caddyhttp.Route
	// Handlers are those before it in its own route, as JSON.
	Handlers []json.RawMessage
}

// Levels returns the levels of a handler that is being provisioned, from the server's routes inward, as far
// as it is in these; nil: it has no server.
func Levels(ctx caddy.Context, server *caddyhttp.Server) (levels []Level) {
	if server == nil {
		return nil
	}
	lists, names := []caddyhttp.RouteList{server.Routes}, []string(nil)
	for _, m := range ctx.Modules() {
		id := m.CaddyModule().ID
		if id.Namespace() == "http.handlers" {
			names = append(names, id.Name())
		}
		if sub, ok := m.(*caddyhttp.Subroute); ok {
			lists = append(lists, sub.Routes)
		}
	}
	for i, routes := range lists {
		// the route whose handlers are being provisioned is the first that has them in JSON only
		at := slices.IndexFunc(routes, func(r caddyhttp.Route) bool { return len(r.Handlers) == 0 && len(r.HandlersRaw) > 0 })
		if at < 0 {
			continue
		}
		level := Level{Before: routes[:at], Route: &routes[at]}
		if i < len(names) {
			level.Handlers = before(routes[at].HandlersRaw, names[i])
		}
		levels = append(levels, level)
	}
	return levels
}

// before returns the handlers before the first one with a name.
func before(handlers []json.RawMessage, name string) []json.RawMessage {
	at := slices.IndexFunc(handlers, func(raw json.RawMessage) bool { return HandlerName(raw) == name })
	return handlers[:max(at, 0)]
}

// HandlerName returns the name of a handler in JSON; empty: it cannot be read, which Caddy reports.
func HandlerName(raw json.RawMessage) string {
	var h struct {
		Handler string `json:"handler"`
	}
	if json.Unmarshal(raw, &h) != nil {
		return ""
	}
	return h.Handler
}

// Around returns the matcher sets around a handler that is being provisioned, as far as they are
// in the routes of its server; nil: it has no server.
func Around(ctx caddy.Context, server *caddyhttp.Server) (sets caddyhttp.MatcherSets) {
	for _, level := range Levels(ctx, server) {
		sets = append(sets, level.Route.MatcherSets...)
	}
	return sets
}

// Hosts returns the hosts of the routes around a handler that is being provisioned.
func Hosts(ctx caddy.Context, server *caddyhttp.Server) (hosts []string) {
	for _, set := range Around(ctx, server) {
		for _, m := range set {
			if host, ok := m.(*caddyhttp.MatchHost); ok {
				hosts = append(hosts, *host...)
			}
		}
	}
	return hosts
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

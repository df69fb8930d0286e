package guard

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

const (
	// MATCHER is the matcher's name.
	avoidsHeader = "the gate's matcher MATCHER depends on what a client sends in a header or on how it connects: the client can leave that out or write it in another way, " +
		"as in Content-Type: Application/JSON, and its order passes the gate; match by method, path and query, and let the gate refuse what is no order"
	avoidsQuery = "the gate's matcher MATCHER reads the query, and the shop may read it in another way, as in ?+route=x or ?route=x&y=%zz, which the guard can check only in the matcher query: " +
		"write `query route=x`"
)

// Avoidable returns warnings about the matchers of a gate, as JSON: those by which a client can let
// its order pass the gate.
func Avoidable(set caddy.ModuleMap) []string {
	var warnings []string
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if name != "not" {
			warnings = append(warnings, avoidable(name, string(set[name]))...)
			continue
		}
		var inside []caddy.ModuleMap
		if json.Unmarshal(set[name], &inside) != nil {
			continue // Caddy reports what is wrong with it
		}
		for _, one := range inside {
			warnings = append(warnings, Avoidable(one)...)
		}
	}
	return warnings
}

// AvoidableOn is Avoidable for the matchers around a module that is being provisioned, as far as
// they are in the routes of its server.
func AvoidableOn(ctx caddy.Context, server *caddyhttp.Server) []string {
	if server == nil {
		return nil
	}
	warnings := avoidableSets(current(server.Routes))
	for _, m := range ctx.Modules() {
		if sub, ok := m.(*caddyhttp.Subroute); ok {
			warnings = append(warnings, avoidableSets(current(sub.Routes))...)
		}
	}
	slices.Sort(warnings)
	return slices.Compact(warnings)
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

func avoidableSets(sets []caddyhttp.MatcherSet) (warnings []string) {
	for _, set := range sets {
		for _, m := range set {
			if not, ok := m.(*caddyhttp.MatchNot); ok {
				warnings = append(warnings, avoidableSets(not.MatcherSets)...)
				continue
			}
			module, ok := m.(caddy.Module)
			if !ok {
				continue
			}
			text, err := json.Marshal(m)
			if err != nil {
				continue
			}
			warnings = append(warnings, avoidable(strings.TrimPrefix(string(module.CaddyModule().ID), "http.matchers."), string(text))...)
		}
	}
	return warnings
}

// avoidable returns warnings about one matcher. text is its configuration.
func avoidable(name, text string) (warnings []string) {
	has := func(marks ...string) bool {
		return slices.ContainsFunc(marks, func(mark string) bool { return strings.Contains(text, mark) })
	}
	cel := name == "expression"
	switch {
	case name == "header", name == "header_regexp", name == "protocol",
		has("{http.request.header.", "{header.", "{http.request.cookie.", "{cookie."), cel && has("header(", "header_regexp(", "protocol("):
		warnings = append(warnings, strings.Replace(avoidsHeader, "MATCHER", name, 1))
	}
	switch {
	case has("{http.request.uri.query", "{query.", "{http.request.uri}", "{uri}", "{http.request.orig_uri}", "{http.request.orig_uri.query"),
		cel && has("query(", "url_pattern("), name == "url_pattern" && has("?"):
		warnings = append(warnings, strings.Replace(avoidsQuery, "MATCHER", name, 1))
	}
	return warnings
}

package guard

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/internal/matchers"
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
func AvoidableOn(ctx caddy.Context, server *caddyhttp.Server) (warnings []string) {
	for name, text := range matchers.All(matchers.Around(ctx, server)) {
		warnings = append(warnings, avoidable(name, text)...)
	}
	slices.Sort(warnings)
	return slices.Compact(warnings)
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

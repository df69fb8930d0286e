package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/rewrite"

	"github.com/stockgate/stockgate/caddymodule/internal/matchers"
)

// CheckOrder returns an error if no request comes to a gate that is being provisioned, because a handler
// before it answers all of them or sends them elsewhere. warnings are about handlers that may do so.
func CheckOrder(ctx caddy.Context, server *caddyhttp.Server, title string) (warnings []string, err error) {
	var sent *sending
	for _, level := range matchers.Levels(ctx, server) {
		for i := range level.Before {
			if name := answering(level.Before, i); name != "" {
				return nil, fmt.Errorf("%s comes after %s, which answers every request, so that none comes to it: put %s before it", title, name, title)
			}
			if to := sendingOf(level.Before, i); to != nil {
				sent = to
			}
		}
		for _, raw := range level.Handlers {
			if name := answeringRaw(raw); name != "" {
				return nil, fmt.Errorf("%s comes after %s, which answers every request, so that none comes to it: put %s before it", title, name, title)
			}
		}
		path, misses := sent.misses(level.Route.MatcherSets)
		switch {
		case misses && !sent.directories:
			return nil, fmt.Errorf("%s comes after %s, which sends requests for %s to %s, so that none comes to it: put both into a `route`, the gate first", title, sent.by, path, sent.to[0])
		case misses:
			warnings = append(warnings, fmt.Sprintf("%s comes after %s, which sends requests for %s to %s unless a file or directory of that name is there, so that they pass by: put both into a `route`, the gate first",
				title, sent.by, path, sent.to[0]))
		}
	}
	return warnings, nil
}

// checkGuardOrder returns an error if a gate comes before a guard that is being provisioned.
func checkGuardOrder(ctx caddy.Context, server *caddyhttp.Server) error {
	const late = "stockgate_guard comes after a gate in its route, and would take for a way around the gate what has come through it: put stockgate_guard first"
	for _, level := range matchers.Levels(ctx, server) {
		for i := range level.Before {
			if r := &level.Before[i]; r.Group == "" && slices.ContainsFunc(r.Handlers, isGate) {
				return errors.New(late)
			}
		}
		for _, raw := range level.Handlers {
			if name := matchers.HandlerName(raw); name == "stockgate" || name == "stockgate_check" {
				return errors.New(late)
			}
		}
	}
	return nil
}

func isGate(h caddyhttp.MiddlewareHandler) bool {
	gate, ok := h.(Handler)
	return ok && !gate.Guarded().Shadow
}

// takesAll reports whether every request comes to a route: it has no matcher, and is not one of several
// alternatives.
func takesAll(routes caddyhttp.RouteList, at int) bool {
	r := &routes[at]
	return len(r.MatcherSets) == 0 && (r.Group == "" || !slices.ContainsFunc(routes[:at], func(other caddyhttp.Route) bool { return other.Group == r.Group }))
}

// earlyHints is the status of an answer after which a request goes on.
const earlyHints = "103"

// answering returns the handler of a route that answers every request; empty: there is none.
func answering(routes caddyhttp.RouteList, at int) (name string) {
	if !takesAll(routes, at) {
		return ""
	}
	for _, h := range routes[at].Handlers {
		switch h := h.(type) {
		case *reverseproxy.Handler:
			if len(h.HandleResponse) == 0 { // forward_auth goes on
				return "reverse_proxy"
			}
		case *caddyhttp.StaticResponse:
			if h.StatusCode != earlyHints {
				return "respond"
			}
		case *caddyhttp.StaticError:
			return "error"
		case *caddyhttp.Subroute:
			for i := range h.Routes {
				if name := answering(h.Routes, i); name != "" {
					return name
				}
			}
		}
	}
	return ""
}

// answeringRaw is answering for a handler as JSON.
func answeringRaw(raw json.RawMessage) string {
	switch name := matchers.HandlerName(raw); name {
	case "static_response":
		var h caddyhttp.StaticResponse
		if json.Unmarshal(raw, &h) == nil && h.StatusCode != earlyHints {
			return "respond"
		}
	case "error":
		return name
	case "reverse_proxy":
		var h struct {
			HandleResponse []json.RawMessage `json:"handle_response"`
		}
		if json.Unmarshal(raw, &h) == nil && len(h.HandleResponse) == 0 {
			return name
		}
	}
	return ""
}

// sending is what a rewrite makes of requests for paths that are no files.
type sending struct {
	by string
	// to are the paths under which they go on.
	to []string
	// directories: those for which another file or a directory is there keep their path.
	directories bool
}

// sendingOf returns what a route sends elsewhere; nil: nothing that is known in advance.
func sendingOf(routes caddyhttp.RouteList, i int) *sending {
	r := &routes[i]
	at := slices.IndexFunc(r.Handlers, func(h caddyhttp.MiddlewareHandler) bool { _, ok := h.(*rewrite.Rewrite); return ok })
	if at < 0 {
		return nil
	}
	uri, _, _ := strings.Cut(r.Handlers[at].(*rewrite.Rewrite).URI, "?")
	if strings.Contains(uri, "{http.matchers.file.") {
		return tryFiles(r.MatcherSets)
	}
	if !takesAll(routes, i) || !strings.HasPrefix(uri, "/") || HasPlaceholder(uri) {
		return nil
	}
	return &sending{by: "rewrite", to: []string{uri}}
}

// tryFiles returns what try_files sends elsewhere: its matcher stands alone.
func tryFiles(sets caddyhttp.MatcherSets) *sending {
	if len(sets) != 1 || len(sets[0]) != 1 {
		return nil
	}
	s := &sending{by: "try_files"}
	for name, text := range matchers.All(sets) {
		var file struct {
			TryFiles []string `json:"try_files"`
		}
		if name != "file" || json.Unmarshal([]byte(text), &file) != nil {
			return nil
		}
		for _, try := range file.TryFiles {
			switch {
			case !HasPlaceholder(try) && strings.HasPrefix(try, "/"):
				s.to = append(s.to, try)
			case try != "{http.request.uri.path}":
				s.directories = true
			}
		}
	}
	if len(s.to) == 0 {
		return nil
	}
	return s
}

// misses reports whether the matchers of a route match no path under which a request goes on; path is one that
// they ask for.
func (s *sending) misses(sets caddyhttp.MatcherSets) (path string, misses bool) {
	if s == nil {
		return "", false
	}
	for _, set := range sets {
		at := slices.IndexFunc(set, func(m any) bool { _, ok := m.(*caddyhttp.MatchPath); return ok })
		if at < 0 {
			return "", false
		}
		paths := *set[at].(*caddyhttp.MatchPath)
		if slices.ContainsFunc(s.to, func(to string) bool { return matchesPath(paths, to) }) {
			return "", false
		}
		for _, pattern := range paths {
			if strings.ContainsAny(pattern, ".{%") { // it may be a file
				return "", false
			}
			path = pattern
		}
	}
	return path, path != ""
}

func matchesPath(paths caddyhttp.MatchPath, path string) bool {
	r, err := http.NewRequest(http.MethodGet, path, nil)
	if err != nil {
		return true
	}
	ok, err := paths.MatchWithError(caddyhttp.PrepareRequest(r, caddy.NewReplacer(), nil, nil))
	return ok || err != nil
}

package waitlist

import (
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/rewrite"

	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/caddymodule/internal/matchers"
)

// entersAt is the path by which clients reach a stockgate_waitlist that is being provisioned, from the path matcher nearest to
// it; empty: it is not known, because the matcher names no path, or the path is cut on the way there.
func entersAt(ctx caddy.Context, server *caddyhttp.Server) (path string) {
	for _, level := range matchers.Levels(ctx, server) {
		for _, before := range level.Before {
			if slices.ContainsFunc(before.Handlers, cutsPath) {
				return ""
			}
		}
		for _, raw := range level.Handlers {
			if matchers.HandlerName(raw) == "rewrite" {
				return ""
			}
		}
		for _, set := range level.Route.MatcherSets {
			for _, m := range set {
				if patterns, ok := m.(*caddyhttp.MatchPath); ok && len(*patterns) > 0 {
					path = (*patterns)[0]
				}
			}
		}
	}
	path = strings.TrimRight(strings.TrimSuffix(path, "*"), "/")
	if !strings.HasPrefix(path, "/") || strings.Contains(path, "*") || guard.HasPlaceholder(path) {
		return ""
	}
	return path
}

// cutsPath reports whether a handler makes another path of that which the client sent, as handle_path does.
func cutsPath(h caddyhttp.MiddlewareHandler) bool {
	r, ok := h.(*rewrite.Rewrite)
	return ok && (r.StripPathPrefix != "" || r.StripPathSuffix != "" || len(r.URISubstring)+len(r.PathRegexp) > 0)
}

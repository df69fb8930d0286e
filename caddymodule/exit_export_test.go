package caddymodule

import (
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
)

// ExitOf is the second look on a gate's server, around a transport.
func ExitOf(g *Gate, inner http.RoundTripper) http.RoundTripper {
	t := new(Exit)
	t.around(inner, g.server, zap.NewNop())
	return t
}

// GuardOf is a guard on a gate's server.
func GuardOf(g *Gate) caddyhttp.MiddlewareHandler {
	guard := new(Guard)
	guard.routes.server = g.server
	guard.style, _ = newRefuser(nil)
	return guard
}

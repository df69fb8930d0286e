// Command caddy is what cmd/caddy is, with one more directive: e2e_panic panics.
package main

import (
	"net/http"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	_ "github.com/caddyserver/caddy/v2/modules/standard"
	_ "github.com/stockgate/stockgate"
)

func main() { caddycmd.Main() }

func init() {
	caddy.RegisterModule(Panic{})
	httpcaddyfile.RegisterHandlerDirective("e2e_panic", func(httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		return Panic{}, nil
	})
	httpcaddyfile.RegisterDirectiveOrder("e2e_panic", httpcaddyfile.Before, "reverse_proxy")
}

// Panic is a handler with a mistake in it.
type Panic struct{}

// CaddyModule returns the Caddy module information.
func (Panic) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.e2e_panic", New: func() caddy.Module { return new(Panic) }}
}

// ServeHTTP panics.
func (Panic) ServeHTTP(http.ResponseWriter, *http.Request, caddyhttp.Handler) error {
	panic("e2e: a handler panics")
}

// UnmarshalCaddyfile reads nothing.
func (Panic) UnmarshalCaddyfile(*caddyfile.Dispenser) error { return nil }

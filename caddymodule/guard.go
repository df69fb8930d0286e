package caddymodule

import (
	"io"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/attempt"
	"github.com/stockgate/stockgate/sale"
)

func init() { caddy.RegisterModule(Guard{}) }

// Guard protects a whole site that has a gate: it removes the Stockgate-* headers
// and trailers that a client sends and the headers by which frameworks take one
// route for another (X-Original-URL, X-Rewrite-URL; method overrides of a GET), and
// answers 400 to paths that another server could read as another route.
type Guard struct {
	log   *zap.Logger
	style *refuser
}

// CaddyModule returns the Caddy module information.
func (Guard) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.stockgate_guard", New: func() caddy.Module { return new(Guard) }}
}

// Provision prepares the guard.
func (g *Guard) Provision(ctx caddy.Context) error {
	g.log = ctx.Logger()
	var err error
	g.style, err = newRefuser(nil)
	return err
}

// ServeHTTP lets a harmless request pass.
func (g *Guard) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if r.Trailer != nil || attempt.AnyStrippable(r.Header) {
		g.strip(r)
	}
	if why, bad := g.refuses(r); bad {
		countAttempt("", "refused", sale.Malformed)
		return g.style.refuse(w, r, &sale.Refusal{Reason: sale.Malformed, Detail: why})
	}
	return next.ServeHTTP(w, r)
}

// strip removes what only Stockgate may say, and what would make another route of it.
func (Guard) strip(r *http.Request) {
	stripReserved(r)
	attempt.StripRouteOverride(r)
}

// refuses says why the path is refused.
func (Guard) refuses(r *http.Request) (why string, bad bool) {
	return attempt.RawPathUnsafe(rawPath(r))
}

// rawPath is the path as the client sent it.
func rawPath(r *http.Request) string {
	path := r.RequestURI
	if orig, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		path = orig.RequestURI
	}
	for i := range len(path) {
		if path[i] == '?' || path[i] == '#' {
			return path[:i]
		}
	}
	return path
}

// stripReserved removes what only Stockgate may say. Trailers arrive after the
// body: those that are announced are dropped now, and again when they have come.
func stripReserved(r *http.Request) {
	attempt.StripReserved(r.Header)
	if r.Trailer == nil {
		return
	}
	attempt.StripReserved(r.Trailer)
	if r.Body != nil {
		r.Body = &strippedTrailer{r.Body, r.Trailer}
	}
}

// strippedTrailer is a body whose trailers lose what is reserved. They stand in the
// request's map when the body's end has been read, and not before.
type strippedTrailer struct {
	io.ReadCloser
	trailer http.Header
}

func (b *strippedTrailer) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		attempt.StripReserved(b.trailer)
	}
	return n, err
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Guard)(nil)
	_ caddyhttp.MiddlewareHandler = (*Guard)(nil)
)

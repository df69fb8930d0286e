// Package guard keeps requests from getting around a gate. The guard refuses those that another
// server could read as one for a gated route; the exit looks again where a request leaves for an
// upstream.
package guard

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/attempt"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/caddymodule/internal/reply"
	"github.com/stockgate/stockgate/refuse"
	"github.com/stockgate/stockgate/sale"
)

func init() { caddy.RegisterModule(new(Guard)) }

// Guard protects a whole site that has a gate.
//
// It removes what other servers would take for something else: the Stockgate-* headers
// and trailers that a client sends; headers whose names have anything but letters,
// digits and hyphens; the headers by which frameworks take one route for another
// (X-Original-URL, X-Rewrite-URL; method overrides of a GET); and the offer to go on in
// HTTP/2 without TLS.
//
// It answers 400 to targets that are no path, and to requests that some server could
// read as one for a gated route while they do not come to that gate. Whatever it lets
// pass is looked at again where it leaves for an upstream.
type Guard struct {
	// AllowHeaders are names with other characters that pass, such as grpc_metadata. Names
	// with underscores or dots need Caddy's own permission too (expected_underscore_headers).
	// Default: none.
	AllowHeaders []string `json:"allow_headers,omitempty"`

	log    *zap.Logger
	style  *refuse.Refuser
	routes Routes
}

// CaddyModule returns the Caddy module information.
func (*Guard) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.stockgate_guard", New: func() caddy.Module { return new(Guard) }}
}

// Provision prepares the guard.
func (g *Guard) Provision(ctx caddy.Context) (err error) {
	g.log = ctx.Logger()
	if ctx.Context != nil {
		server, _ := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
		g.routes.Of(server)
		WatchExits(ctx, server)
	}
	for _, name := range g.AllowHeaders {
		if attempt.Reserved(name) {
			return fmt.Errorf("allow_headers: %s would reach the shop as a header that only Stockgate may send", name)
		}
	}
	g.style, err = refuse.New(nil)
	return err
}

// Routes are the routes of the guard's server, as far as they lead to gates.
func (g *Guard) Routes() *Routes { return &g.routes }

// Refuser has the guard's answers.
func (g *Guard) Refuser() *refuse.Refuser { return g.style }

// ServeHTTP lets a harmless request pass.
func (g *Guard) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if r.Trailer != nil || attempt.AnyStrippable(r.Header) {
		g.Strip(r)
	}
	if why, _ := g.routes.Refuses(r); why != "" {
		meter.CountAttempt("", "refused", sale.Malformed)
		return reply.Refuse(g.style, w, r, &sale.Refusal{Reason: sale.Malformed, Detail: why})
	}
	if len(g.routes.methods) > 0 {
		NotePassage(r, passageGuarded)
	}
	return next.ServeHTTP(w, r)
}

// Strip removes what only Stockgate may say, and what would make another route of it.
func (g *Guard) Strip(r *http.Request) {
	attempt.StripNames(r.Header, g.allows)
	attempt.StripH2C(r.Header)
	attempt.StripRouteOverride(r)
	attempt.StripNames(r.Trailer, none)
	StripReserved(r)
}

func (g *Guard) allows(name string) bool {
	return slices.ContainsFunc(g.AllowHeaders, func(a string) bool { return strings.EqualFold(a, name) })
}

// StripReserved removes what only Stockgate may say. Trailers arrive after the
// body: those that are announced are dropped now, and again when they have come.
func StripReserved(r *http.Request) {
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
		attempt.StripNames(b.trailer, none)
	}
	return n, err
}

func none(string) bool { return false }

// Interface guards
var (
	_ caddy.Provisioner           = (*Guard)(nil)
	_ caddyhttp.MiddlewareHandler = (*Guard)(nil)
)

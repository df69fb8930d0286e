// Package guard prevents requests from getting around a gate. The guard refuses requests
// that another server could read as a request for a gated route; the exit checks again when
// a request leaves for an upstream.
package guard

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/caddymodule/internal/reply"
	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/internal/sale"
)

func init() { caddy.RegisterModule(new(Guard)) }

// Guard protects a whole site that has a gate.
//
// It removes what other servers could misread: the Stockgate-* headers and trailers that a
// client sends; headers whose names have anything but letters, digits and hyphens; the
// headers by which frameworks replace the route (X-Original-URL, X-Rewrite-URL; method
// overrides of a GET); and the offer to upgrade to HTTP/2 without TLS.
//
// It answers 400 to targets that are no path, and to requests that some server could read
// as a request for a gated route although they do not reach that gate; and it refuses requests
// that some server could read as one for a door that is closed. Requests that it
// lets pass are checked again when they leave for an upstream.
type Guard struct {
	// AllowHeaders are names with other characters than letters, digits and hyphens that pass, such as
	// `grpc_metadata`. Default: none.
	//
	// Names with underscores or dots also need Caddy's own permission (expected_underscore_headers).
	AllowHeaders []string `json:"allow_headers,omitempty"`
	// Close closes a way to the shop in every spelling. Matchers have `method`, `host`, `path`, `path_regexp` and
	// `query`, each a path or a query. Status 200 to 599. Default: 404, a problem.
	Close []*Door `json:"close,omitempty"`

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
		g.routes.doors = g.Close
		WatchExits(ctx, server)
		if err := checkGuardOrder(ctx, server); err != nil {
			return err
		}
	}
	for _, name := range g.AllowHeaders {
		if attempt.Reserved(name) {
			return fmt.Errorf("allow_headers: %s would reach the shop as a header that only Stockgate may send", name)
		}
	}
	texts, err := textsOf(ctx)
	if err != nil {
		return err
	}
	for _, door := range g.Close {
		if err := door.provision(ctx, texts); err != nil {
			return err
		}
	}
	g.style, err = refuse.New(nil, texts)
	return err
}

// textsOf returns the texts of the app; nil: a guard without an app has those that are built in.
func textsOf(ctx caddy.Context) (*refuse.Texts, error) {
	if ctx.Context == nil {
		return nil, nil
	}
	loaded, err := ctx.AppIfConfigured("stockgate")
	if errors.Is(err, caddy.ErrNotConfigured) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return loaded.(directive.HasMessages).SharedMessages().Over(nil)
}

// Routes returns the routes of the guard's server that lead to gates.
func (g *Guard) Routes() *Routes { return &g.routes }

// Refuser returns the guard's answers to refusals.
func (g *Guard) Refuser() *refuse.Refuser { return g.style }

// ServeHTTP refuses a request, or strips it and lets it pass.
func (g *Guard) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if r.Trailer != nil || attempt.AnyStrippable(r.Header) {
		g.Strip(r)
	}
	if why, door, _ := g.routes.Refuses(r); why != "" {
		style, no := g.style, &sale.Refusal{Reason: sale.Malformed, Detail: why}
		if door != nil {
			style, no = door.Refuser, refuse.ClosedDoor
		}
		meter.CountAttempt("", "refused", no.Reason)
		return reply.Refuse(style, w, r, no)
	}
	if len(g.routes.methods) > 0 {
		noteGuarded(r)
		if len(g.Close) > 0 {
			noteGuard(r, g)
		}
	}
	return next.ServeHTTP(w, r)
}

// Strip removes the headers that only Stockgate may set, and those that would replace the
// route.
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

// StripReserved removes the headers that only Stockgate may set. Trailers arrive after the
// body: announced ones are dropped now, and again when they have arrived.
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

// strippedTrailer is a body that drops reserved trailers. They are in the request's map
// only after the end of the body has been read.
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

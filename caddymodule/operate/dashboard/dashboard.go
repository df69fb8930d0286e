// Package dashboard is the handler stockgate_dashboard: one page on which operators watch a
// sale and, where they may, change it.
package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/operate/operator"
)

func init() { caddy.RegisterModule(new(Dashboard)) }

// Dashboard is a page that shows how the sales of this edge go, for a private listener. It
// answers these paths, relative to where the handler is mounted (`handle_path`), and passes
// all other requests to the next handler:
//
// Method | Path | Answer
// -------|------|-------
// GET | `/` and the files of the page | the page
// GET | `/events?sale=` | server-sent events: what is new, every half second
// GET | `/items?sale=&q=&sort=&limit=` | items by name, from memory
// GET | `/report?sale=` | the report of a sale, one HTML file
// POST | `/acts/…` | a request of the admin API below `/stockgate/`, where Acts allows it; otherwise 405
//
// What the page shows is read once for all viewers: the counters of this process twice a
// second and, of Redis, the movements since the last look and the cells that they touched.
//
// Nothing is changed by GET. A POST must come from the page itself (Origin), with JSON, and
// is logged and journalled with the user's name.
type Dashboard struct {
	// Acts are what users may do; without arguments, all. Default: none.
	//
	// A block says which users.
	Acts []string `json:"acts,omitempty"`
	// Roles are what some users may do beside that.
	Roles []Role `json:"roles,omitempty"`
	// Look: who may look, beside those in a block of `acts`. Default: all.
	Look *RoleMembers `json:"look,omitempty"`
	// Unprotected serves requests that no authentication directive has let in.
	Unprotected bool `json:"unprotected,omitempty"`
	// Origins are scheme and host of the page in browsers; needed behind a gateway that ends TLS. Default: the request's;
	// with `unprotected` only IP addresses and localhost.
	//
	// Such a gateway has to forward Host. Where Unprotected, no name of an attacker's can lead a browser here.
	Origins []string `json:"origins,omitempty"`

	app      *app.App
	log      *zap.Logger
	part     *part
	changes  http.Handler
	accounts map[string]bool // of basic_auth; nil: there may be other users
	down     chan struct{}   // closed when the server shuts down: streams end
}

// acts are what users may do, and the requests of the admin API that do it.
var acts = []string{"open", "pause", "close", "offers", "stock", "resolve"}

// CaddyModule returns the Caddy module information.
func (*Dashboard) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.stockgate_dashboard", New: func() caddy.Module { return new(Dashboard) }}
}

// Provision finds the app, and makes sure that an authentication handler stands before this
// one.
func (s *Dashboard) Provision(ctx caddy.Context) error {
	loaded, err := ctx.App("stockgate")
	if err != nil {
		return fmt.Errorf("stockgate_dashboard: %w", err)
	}
	s.app, s.log, s.changes, s.down = loaded.(*app.App), ctx.Logger(), operator.Changes(), make(chan struct{})
	server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if !ok {
		return errors.New("stockgate_dashboard: it is a handler of an HTTP server")
	}
	server.RegisterOnShutdown(func() { close(s.down) })
	if !s.Unprotected && !authenticated(server) {
		return errors.New("stockgate_dashboard: no authentication stands before it: write `basic_auth` in front, " +
			"or `unprotected` in its block if only operators can reach this listener")
	}
	if err := provisionRoles(s, server); err != nil {
		return fmt.Errorf("stockgate_dashboard: %w", err)
	}
	s.app.UsesAddress(ctx, s.log, "stockgate_dashboard")
	s.part = partOf(s.app)
	return nil
}

// Validate checks the options.
func (s *Dashboard) Validate() error {
	if err := s.validateRoles(); err != nil {
		return fmt.Errorf("stockgate_dashboard: %w", err)
	}
	for _, origin := range s.Origins {
		if !isOrigin(origin) {
			return fmt.Errorf("stockgate_dashboard: %.200q is no origin: write a scheme and a host, as in https://ops.example.com", origin)
		}
	}
	return nil
}

// ServeHTTP answers the paths of the page and passes all other requests to next.
func (s *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	path := strings.TrimPrefix(r.URL.Path, "/")
	file, isFile := files()[path]
	isAct := strings.HasPrefix(path, actsPath)
	if !isFile && !isAct && !slices.Contains([]string{"events", "items", "report"}, path) {
		return next.ServeHTTP(w, r)
	}
	protect(w.Header())
	user, known := userOf(r)
	switch {
	case !known && !s.Unprotected:
		return answerError(w, http.StatusForbidden, "the request has passed no authentication: is the matcher of `basic_auth` too narrow?")
	case !s.hostAllowed(r):
		return answerError(w, http.StatusMisdirectedRequest, "this host is not known here: reach the page by an IP address or localhost, or write `origins` in its block")
	case !s.mayLook(r):
		return answerError(w, http.StatusForbidden, "this user may not look at the page: neither `look` nor a role in its block names them")
	case isAct:
		return s.act(w, r, actOf(r), user)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return notAllowed(w, "GET, HEAD")
	case isFile:
		return serveFile(w, r, path, file)
	}
	if path == "report" {
		return s.serveReport(w, r)
	}
	c := s.part.collector()
	if c == nil {
		return answerError(w, http.StatusServiceUnavailable, "stockgate has not started yet")
	}
	if path == "items" {
		return serveItems(w, r, c)
	}
	return s.stream(w, r, c, user)
}

// provisionRoles makes sure that there can be users who have a role.
func provisionRoles(s *Dashboard, server *caddyhttp.Server) error {
	if len(s.Roles) == 0 && s.Look == nil {
		return nil
	}
	if !authenticatedAll(server) {
		return errors.New("no authentication stands before a page with roles, so that no user can have one: write `basic_auth` in front, which `unprotected` does not replace")
	}
	s.accounts = accountsOf(server)
	return nil
}

// userOf returns the user whom an authentication handler has let in; false: there was none.
func userOf(r *http.Request) (string, bool) {
	if user, _ := authenticatedUser(r); user != "" {
		return user, true
	}
	return "dashboard", false
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Dashboard)(nil)
	_ caddy.Validator             = (*Dashboard)(nil)
	_ caddyhttp.MiddlewareHandler = (*Dashboard)(nil)
)

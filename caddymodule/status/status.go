// Package status is the handler stockgate_status, from which the shop's pages read how an item
// sells.
package status

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/gate/option/waiting"
	"github.com/stockgate/stockgate/caddymodule/overviewcache"
	"github.com/stockgate/stockgate/token"
)

func init() { caddy.RegisterModule(new(Status)) }

// Status publishes the state of items for the shop's pages, and the keys with which the shop
// verifies reservation tokens. It answers GET and HEAD from memory:
//
// Path | Answer
// -----|-------
// `/sales/{id}/items/{sku}` | `{"state":"on_sale","server_time":"…","starts_at":"…"}`, cacheable for a second
// `/orders/{ticket}` | where an order stands that waits for the shop, or what the shop has answered; DELETE takes it out of the line (docs/queue.md)
// `/health` | `{"ready","orders","degraded","refund_needed"}`: 200 while Caddy runs, because an edge without Redis still serves the rest of the site; `?for=orders` answers 503 where orders do
// `/.well-known/jwks.json` | the public keys of all edges (RFC 7517), cacheable for a minute
//
// Requests to other paths go to the next handler; `handle_path` mounts it elsewhere.
//
// State | Meaning
// ------|--------
// `on_sale` | there is stock
// `low` | less than a tenth of the stock is available
// `all_held` | buyers hold all units; some may come back on sale
// `sold_out` | nothing is left
// `not_started` | the sale is open and begins at starts_at
// `paused` | the operator has paused the sale
// `ended` | the sale is over or closed
//
// Stock counts as sold out when it is less than the smallest order. The parameter
// `?region=` selects a region of an item with regional stock; without it, the answer is that
// of the region with the best state. Times are Redis's, not this machine's. Drafts are not
// public: like unknown sales they are 404. The stock is about a second old, in sales of many
// thousands of items up to five. When Redis has not answered for some seconds the answer is
// 503 with Retry-After.
type Status struct {
	app   *app.App
	log   *zap.Logger
	cache atomic.Pointer[overviewcache.Cache]
}

// CaddyModule returns the Caddy module information.
func (*Status) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.stockgate_status", New: func() caddy.Module { return new(Status) }}
}

// Provision finds the app.
func (s *Status) Provision(ctx caddy.Context) error {
	loaded, err := ctx.App("stockgate")
	if err != nil {
		return fmt.Errorf("stockgate_status: %w", err)
	}
	s.app, s.log = loaded.(*app.App), ctx.Logger()
	s.app.UsesAddress(ctx, s.log, "stockgate_status")
	return nil
}

// ServeHTTP answers the paths of the handler and passes all other requests to next.
func (s *Status) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	saleID, sku, isItem, isKeys := asked(r)
	if isHealth(r) {
		return s.serveHealth(w, r)
	}
	if ticket, ok := waiting.IsOrder(r.URL.EscapedPath()); ok && r.Method != http.MethodOptions {
		d := s.app.Runtime()
		if d == nil {
			return s.unavailable(w, errors.New("stockgate has not started yet"))
		}
		if err := waiting.ServeOrder(w, r, d, ticket); err != nil {
			return s.unavailable(w, err)
		}
		return nil
	}
	if !isItem && !isKeys || r.Method == http.MethodOptions {
		return next.ServeHTTP(w, r)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return answerStatus(w, http.StatusMethodNotAllowed, "no-store", statusError{"only GET and HEAD"})
	}
	d := s.app.Runtime()
	if d == nil {
		return s.unavailable(w, errors.New("stockgate has not started yet"))
	}
	if isKeys {
		return s.serveKeys(w, d)
	}
	return s.serveItem(w, r, d, saleID, sku)
}

// asked says which item a request asks for, or that it asks for the keys.
func asked(r *http.Request) (saleID, sku string, isItem, isKeys bool) {
	path := r.URL.EscapedPath()
	saleID, sku, isItem = itemPath(path)
	return saleID, sku, isItem, path == "/.well-known/jwks.json"
}

// Answers reports whether the handler may answer a request.
func (s *Status) Answers(r *http.Request) bool {
	_, _, isItem, isKeys := asked(r)
	_, isOrder := waiting.IsOrder(r.URL.EscapedPath())
	return isItem || isKeys || isOrder || isHealth(r)
}

// serveKeys publishes the keys of all edges. An edge that does not know the others' keys
// answers 503 instead of a set without them.
func (s *Status) serveKeys(w http.ResponseWriter, d *edgeruntime.Runtime) error {
	keys := d.PublicKeys()
	if err := d.Ready(); err != nil && keys == nil {
		return s.unavailable(w, err)
	}
	set := make([]json.RawMessage, 0, len(keys))
	for _, k := range slices.Sorted(slices.Values(keys)) {
		if k != "" { // a shared secret has no public half
			set = append(set, json.RawMessage(k))
		}
	}
	jwks, err := token.JWKS(set...)
	if err != nil {
		return s.unavailable(w, err)
	}
	return answerStatus(w, http.StatusOK, "public, max-age=60", json.RawMessage(jwks))
}

// unavailable answers 503. The cause is for the log, not for the public.
func (s *Status) unavailable(w http.ResponseWriter, err error) error {
	if c := s.log.Check(zap.DebugLevel, "the status is not known"); c != nil {
		c.Write(zap.Error(err))
	}
	w.Header().Set("Retry-After", strconv.Itoa(1+rand.IntN(3))) // clients come back in different seconds
	return answerStatus(w, http.StatusServiceUnavailable, "no-store", statusError{"the status is not known at present"})
}

// statusError is an answer that has no state.
type statusError struct {
	Error string `json:"error"`
}

// answerStatus writes the answer and returns nil, also for error statuses: returning an error
// to Caddy is expensive.
func answerStatus(w http.ResponseWriter, status int, cache string, answer any) error {
	body, err := json.Marshal(answer)
	if err != nil {
		return caddyhttp.Error(http.StatusInternalServerError, err)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", cache)
	w.WriteHeader(status)
	_, _ = w.Write(body)
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Status)(nil)
	_ caddyhttp.MiddlewareHandler = (*Status)(nil)
)

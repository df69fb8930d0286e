// Package status is the handler stockgate_status, which tells the shop's pages how an item sells.
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
	"github.com/stockgate/stockgate/caddymodule/bookcache"
	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/token"
)

func init() { caddy.RegisterModule(new(Status)) }

// Status tells the shop's pages how an item sells, and the shop with which keys
// reservation tokens are signed. It answers GET and HEAD from memory:
//
// Path | Answer
// -----|-------
// `/sales/{id}/items/{sku}` | `{"state":"on_sale","server_time":"…","starts_at":"…"}`, cacheable for a second
// `/.well-known/jwks.json` | the public keys of all edges (RFC 7517), cacheable for a minute
//
// Every other path goes on to the next handler; `handle_path` mounts it elsewhere.
//
// State | Meaning
// ------|--------
// `on_sale` | there is stock
// `low` | less than a tenth of the stock is available
// `all_held` | everything is being bought: some may come back
// `sold_out` | nothing is left
// `not_started` | the sale is open and begins at starts_at
// `paused` | the operator has paused the sale
// `ended` | the sale is over or closed
//
// Stock counts as sold out when it is less than one order must take. An item with
// regional stock is asked for with `?region=`; without it, the answer is that of the
// region that has most to offer. Times are Redis's, not this machine's. Drafts are
// not public: like what is unknown they are 404. The stock is about a second old, in
// sales of many thousands of items up to five. When Redis has not answered for some
// seconds the answer is 503 with Retry-After.
type Status struct {
	app   *app.App
	log   *zap.Logger
	cache atomic.Pointer[bookcache.Cache]
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
	return nil
}

// ServeHTTP answers what is asked of it; anything else is next's.
func (s *Status) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	saleID, sku, isItem, isKeys := asked(r)
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

// asked says what a request asks for.
func asked(r *http.Request) (saleID, sku string, isItem, isKeys bool) {
	path := r.URL.EscapedPath()
	saleID, sku, isItem = itemPath(path)
	return saleID, sku, isItem, path == "/.well-known/jwks.json"
}

// Answers says whether a request may be one that is answered here.
func (s *Status) Answers(r *http.Request) bool {
	_, _, isItem, isKeys := asked(r)
	return isItem || isKeys
}

// serveKeys publishes the keys of all edges. An edge that has not heard of the
// others says so, rather than publish a set that lacks theirs.
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

// unavailable says no more than that: what is wrong is for the log.
func (s *Status) unavailable(w http.ResponseWriter, err error) error {
	if c := s.log.Check(zap.DebugLevel, "the status is not known"); c != nil {
		c.Write(zap.Error(err))
	}
	w.Header().Set("Retry-After", strconv.Itoa(1+rand.IntN(3))) // not everybody in one second
	return answerStatus(w, http.StatusServiceUnavailable, "no-store", statusError{"the status is not known at present"})
}

// statusError is an answer that has no state.
type statusError struct {
	Error string `json:"error"`
}

// answerStatus writes bytes and returns nil: an error would be dear here.
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

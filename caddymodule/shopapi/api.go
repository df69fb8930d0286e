// Package shopapi is the handler stockgate_api, through which the shop confirms, releases,
// extends and returns reservations.
package shopapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/shard"
)

func init() { caddy.RegisterModule(new(API)) }

// apiTimeout bounds one request of the shop's API. If Redis takes longer the answer is 503,
// and the shop repeats the request.
const apiTimeout = 5 * time.Second

// API is where the shop settles reservations. A client with a key may settle any
// reservation, so the API belongs on a private listener.
//
// Method | Path | Body
// -------|------|-----
// POST | `/reservations/{id}/confirm` | `{"token":"…"}`: the shop has the order. The token is optional: where Redis has lost the reservation, it proves that there was one
// POST | `/reservations/{id}/release` | `{"cause":"…"}`, optional: there will be no order
// POST | `/reservations/{id}/extend` | `{"hold_for":"10m","token":"…"}`: puts the deadline off, up to the sale's max_hold; for the old token there is a new one in the answer
// POST | `/reservations/{id}/return` | `{"id":"…","lines":[{"sku","qty","region"}],"restock":true}`: units of an order come back; without lines all that are left
// GET | `/reservations/{id}` | none
//
// In the place of `reservations/{id}` there may be `refs/{ref}`: the shop's own name of the
// order, with `/` and other special characters escaped. It stands for the one reservation that
// has it.
//
// Paths are relative to where the handler is mounted (`handle_path`). The
// handler answers every request that reaches it: the shop would take an empty 200 to a
// misspelt path for a confirmation. The body or the parameter `?sale=` may name the `sale`:
// then no other sale is searched. A repeated request changes nothing and gets the first
// answer again, except a release by a ref: the ref may stand for a later order of the buyer by then.
//
// The credential is `Authorization: Bearer <key>`. A reservation token is not a credential,
// because it may be in the shop's logs.
//
// A 200 carries the reservation. Anything else is application/problem+json (RFC 9457)
// with `reason`, and `state` where the state of the reservation forbids the request:
//
// Status | Reasons
// -------|--------
// 400, 413, 415 | malformed, body_too_large, media_type
// 401 | unauthorized
// 404, 405 | not_found, no_such_route, method
// 409 | conflict, refund_needed, too_many; ambiguous, with the `reservations` that have the ref
// 422 | key_reused
// 503 | unavailable, with Retry-After: it is unknown whether anything has changed; repeat the request
type API struct {
	// Keys are what the shop may present as `Authorization: Bearer <key>`, 16 bytes or more. Required.
	Keys []string `json:"keys,omitempty"`

	app  *app.App
	log  *zap.Logger
	keys apiKeys
}

// CaddyModule returns the Caddy module information.
func (*API) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.stockgate_api", New: func() caddy.Module { return new(API) }}
}

// Provision reads the keys and finds the app.
func (a *API) Provision(ctx caddy.Context) (err error) {
	if a.keys, err = readAPIKeys(a.Keys); err != nil {
		return fmt.Errorf("stockgate_api: %w", err)
	}
	loaded, err := ctx.App("stockgate")
	if err != nil {
		return fmt.Errorf("stockgate_api: %w", err)
	}
	a.app, a.log = loaded.(*app.App), ctx.Logger()
	a.app.UsesAddress(ctx, a.log, "stockgate_api")
	a.app.Settles()
	return nil
}

// ServeHTTP answers every request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	call, err := apiRoute(r)
	if no := a.keys.check(r); no != nil {
		err = no
	}
	var answer any
	if err == nil {
		answer, err = a.serve(call, r)
	}
	reason := "ok"
	if err != nil {
		no := a.problemOf(call, err)
		answer, reason = no, no.Reason
		no.header(w.Header())
	}
	meter.All().API.WithLabelValues(call.operation, reason).Inc()
	return a.write(w, answer)
}

// serve runs the operation to its end, whether or not the shop waits for it.
func (a *API) serve(c *apiCall, r *http.Request) (any, error) {
	if err := c.read(r); err != nil {
		return nil, err
	}
	d := a.app.Runtime()
	if d == nil {
		return nil, shard.ErrStarting
	}
	if !d.Begin() {
		return nil, shard.ErrUnavailable // a request of an old configuration
	}
	defer d.End()
	c.app, c.runtime = a.app, d
	var cancel context.CancelFunc
	c.ctx, cancel = context.WithTimeout(context.WithoutCancel(r.Context()), apiTimeout)
	defer cancel()
	if err := c.find(); err != nil {
		return nil, d.Missing(c.ctx, c.sale, err)
	}
	answer, err := apiOperations[c.operation].run(c)
	if err != nil {
		// "not found" about a lost sale would make the shop drop the reservation
		return nil, d.Missing(c.ctx, c.sale, err)
	}
	return answer, nil
}

// write answers with JSON that no cache stores.
func (a *API) write(w http.ResponseWriter, answer any) error {
	body, err := json.Marshal(answer)
	if err != nil {
		return caddyhttp.Error(http.StatusInternalServerError, err)
	}
	status, contentType := http.StatusOK, "application/json"
	if no, ok := answer.(*apiProblem); ok {
		status, contentType = no.Status, refuse.ProblemJSON
	}
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)+1))
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
	return nil
}

// apiOperation is an operation of the API on a reservation.
type apiOperation struct {
	method string
	run    func(*apiCall) (any, error)
}

// apiOperations are the operations by name; `show` has no word in the path.
var apiOperations = map[string]apiOperation{
	"show":    {http.MethodGet, (*apiCall).show},
	"confirm": {http.MethodPost, (*apiCall).confirm},
	"release": {http.MethodPost, (*apiCall).release},
	"extend":  {http.MethodPost, (*apiCall).extend},
	"return":  {http.MethodPost, (*apiCall).giveBack},
}

// noOperation labels requests that name no operation.
const noOperation = "other"

// apiRoute reads the operation and the reservation's id or ref from the path. It returns a call
// also with an error.
func apiRoute(r *http.Request) (*apiCall, error) {
	c := &apiCall{operation: noOperation}
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), "/reservations/")
	byRef := false
	if !ok {
		rest, byRef = strings.CutPrefix(r.URL.EscapedPath(), "/refs/")
	}
	if !ok && !byRef {
		return c, noRoute("the paths are /reservations/{id} and /reservations/{id}/confirm, release, extend and return, or /refs/{ref} in place of /reservations/{id}, behind the prefix that the site strips")
	}
	escaped, word, deeper := strings.Cut(rest, "/")
	if !deeper {
		word = "show"
	} else if word == "show" {
		word = ""
	}
	operation, ok := apiOperations[word]
	if !ok {
		return c, noRoute("a reservation has confirm, release, extend and return")
	}
	c.operation = word
	name, err := url.PathUnescape(escaped)
	switch isName := err == nil && sale.IsName(name); {
	case !isName && byRef:
		return c, malformed("the ref must be 1 to 128 printable ASCII characters without space")
	case !isName:
		return c, malformed("the reservation's id must be 1 to 128 printable ASCII characters without space")
	case byRef:
		c.ref = name
	default:
		c.id = name
	}
	if r.Method != operation.method && (r.Method != http.MethodHead || word != "show") {
		return c, &apiProblem{Status: http.StatusMethodNotAllowed, Reason: "method", Detail: "use " + operation.method, allow: operation.method}
	}
	return c, nil
}

// malformed returns the answer to a request that cannot be read.
func malformed(format string, args ...any) *apiProblem {
	return &apiProblem{Status: http.StatusBadRequest, Reason: "malformed", Detail: fmt.Sprintf(format, args...)}
}

func noRoute(detail string) *apiProblem {
	return &apiProblem{Status: http.StatusNotFound, Reason: "no_such_route", Detail: detail}
}

// isUnanswered reports whether Redis may have made a change without answering.
func isUnanswered(err error) bool {
	return errors.Is(err, shard.ErrUnavailable) || errors.Is(err, shard.ErrStarting) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, shard.ErrNewerSchema) || errors.Is(err, shard.ErrMemoryPolicy)
}

// Interface guards
var (
	_ caddy.Provisioner           = (*API)(nil)
	_ caddyhttp.MiddlewareHandler = (*API)(nil)
)

// Package shopapi is the handler stockgate_api, by which the shop says what became of a
// reservation.
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
	"github.com/stockgate/stockgate/refuse"
	"github.com/stockgate/stockgate/sale"
	"github.com/stockgate/stockgate/shard"
)

func init() { caddy.RegisterModule(new(API)) }

// apiTimeout bounds one request of the shop's API: a Redis that takes longer is
// answered with 503, and the shop asks again.
const apiTimeout = 5 * time.Second

// API is where the shop says what became of a reservation: whoever has a key may
// resolve any reservation, so it belongs on a private listener.
//
// Method | Path | Body
// -------|------|-----
// POST | `/reservations/{id}/confirm` | `{"token":"…"}`: the shop has the order. The token is optional: where Redis has lost the reservation, it proves that there was one
// POST | `/reservations/{id}/release` | `{"cause":"…"}`, optional: there will be no order
// POST | `/reservations/{id}/extend` | `{"hold_for":"10m","token":"…"}`: puts the deadline off, up to the sale's max_hold; for the old token there is a new one in the answer
// POST | `/reservations/{id}/return` | `{"id":"…","lines":[{"sku","qty","region"}],"restock":true}`: units of an order come back; without lines all that are left
// GET | `/reservations/{id}` | none
//
// Paths are relative to where the handler is mounted (`handle_path`). Every request
// that reaches it is answered here: an empty 200 to a misspelt path would be taken
// for a confirmation. A body may name the `sale`, as may the parameter `?sale=`: then
// no other sale is searched. What is asked for again changes nothing and is answered
// as the first time.
//
// The credential is `Authorization: Bearer <key>`; a reservation token is none, it
// stands in the shop's logs.
//
// A 200 carries the reservation. Anything else is application/problem+json (RFC 9457)
// with `reason`, and `state` where the state of the reservation is in the way:
//
// Status | Reasons
// -------|--------
// 400, 413, 415 | malformed, body_too_large, media_type
// 401 | unauthorized
// 404, 405 | not_found, no_such_route, method
// 409 | conflict, refund_needed, too_many
// 422 | key_reused
// 503 | unavailable, with Retry-After: it is unknown whether anything has changed, ask again
type API struct {
	// Keys are what the shop may present, each 16 bytes or more, as a placeholder such
	// as {env.STOCKGATE_API_KEY} or {file./etc/stockgate/key}. Several are for rotation:
	// all are good. Required.
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

// serve does what is asked, whether or not the shop waits for it.
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
	answer, err := apiOperations[c.operation].run(c)
	if err != nil {
		// "not found" of a sale that was lost would make the shop forget a reservation
		return nil, d.Missing(c.ctx, c.sale, err)
	}
	return answer, nil
}

// write answers with JSON that nothing on the way keeps.
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

// apiOperation is what the API can do with a reservation.
type apiOperation struct {
	method string
	run    func(*apiCall) (any, error)
}

// apiOperations by their names; `show` has no word in the path.
var apiOperations = map[string]apiOperation{
	"show":    {http.MethodGet, (*apiCall).show},
	"confirm": {http.MethodPost, (*apiCall).confirm},
	"release": {http.MethodPost, (*apiCall).release},
	"extend":  {http.MethodPost, (*apiCall).extend},
	"return":  {http.MethodPost, (*apiCall).giveBack},
}

// noOperation labels what is asked of no operation.
const noOperation = "other"

// apiRoute reads what is asked of which reservation. The call is there also beside
// an error.
func apiRoute(r *http.Request) (*apiCall, error) {
	c := &apiCall{operation: noOperation}
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), "/reservations/")
	if !ok {
		return c, noRoute("the paths are /reservations/{id} and /reservations/{id}/confirm, release, extend and return, behind the prefix that the site strips")
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
	id, err := url.PathUnescape(escaped)
	if err != nil || !sale.IsName(id) {
		return c, malformed("the reservation's id must be 1 to 128 printable ASCII characters without space")
	}
	c.id = id
	if r.Method != operation.method && (r.Method != http.MethodHead || word != "show") {
		return c, &apiProblem{Status: http.StatusMethodNotAllowed, Reason: "method", Detail: "use " + operation.method, allow: operation.method}
	}
	return c, nil
}

// malformed is a mistake of whoever asks.
func malformed(format string, args ...any) *apiProblem {
	return &apiProblem{Status: http.StatusBadRequest, Reason: "malformed", Detail: fmt.Sprintf(format, args...)}
}

func noRoute(detail string) *apiProblem {
	return &apiProblem{Status: http.StatusNotFound, Reason: "no_such_route", Detail: detail}
}

// isUnanswered says that it is unknown whether anything has changed.
func isUnanswered(err error) bool {
	return errors.Is(err, shard.ErrUnavailable) || errors.Is(err, shard.ErrStarting) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, shard.ErrNewerSchema) || errors.Is(err, shard.ErrMemoryPolicy)
}

// Interface guards
var (
	_ caddy.Provisioner           = (*API)(nil)
	_ caddyhttp.MiddlewareHandler = (*API)(nil)
)

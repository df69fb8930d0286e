// Package operator is the admin API, by which operators manage sales and examine an edge.
package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

func init() { caddy.RegisterModule(AdminAPI{}) }

const (
	// adminTimeout bounds one request of the admin API.
	adminTimeout = 15 * time.Second
	// adminBody bounds the body of a request that is not a sale file.
	adminBody = 4 << 10
)

// AdminAPI lets operators manage sales and reservations, on Caddy's admin endpoint. It makes
// changes in Redis, so that all edges follow them.
//
// Method | Path | Answer
// -------|------|-------
// GET | `/stockgate/sales` | all sales
// GET | `/stockgate/sales/{id}` | a sale, and where its units are
// GET | `/stockgate/sales/{id}/file` | its file as it was applied last: `{"id","file"}`
// GET | `/stockgate/sales/{id}/tally` | the same with what was returned and adjusted, and whether it is final
// GET | `/stockgate/sales/{id}/counts` | what all edges have counted of it since it opened: attempts, how long they took, and the edges
// PUT | `/stockgate/sales/{id}` | applies a file (YAML or JSON); `?dry_run=1`, `?force=1`, `?new=1` for a sale that Redis has lost
// POST | `/stockgate/sales/{id}/open`, `pause`, `close` | the new status
// DELETE | `/stockgate/sales/{id}` | deletes a closed sale without open holds; `?force=1` although the ledger lacks some of its journal
// POST | `/stockgate/sales/{id}/forget_shadow` | drops what dry runs have noted of it: `{"id","forgotten"}`
// POST | `/stockgate/sales/{id}/align` | ends the lead of its clock over Redis's: `{"id","lead_ms","moved"}`
// POST | `/stockgate/sales/{id}/unfence` | sells a fenced sale again, without what Redis has lost: `{"id","was_fenced"}`. false: nothing was fenced or changed
// POST | `/stockgate/sales/{id}/items/{sku}/stock` | adds `{"id","delta","region"}`; the same id again changes nothing
// GET | `/stockgate/sales/{id}/schedule` | the acts that are to come, and the last ones that are done or failed
// POST | `/stockgate/sales/{id}/schedule` | plans `{"at","act","sku","region","change"}`, act open, pause, resume, close or stock: `{"id","act"}`; the same again changes nothing
// DELETE | `/stockgate/sales/{id}/schedule/{number}` | takes an act back that is to come, or forgets one that failed: `{"id","act"}`
// POST | `/stockgate/sales/{id}/move_in` | enters up to 1,000 purchases into a draft, `{"purchases":[{"name","kind","value","orders","lines"}]}`; the same again changes nothing
// GET | `/stockgate/sales/{id}/queue` | its orders that wait for the shop: `{"id","waiting","at_shop","oldest_ms","bytes","pace","paused","later_ms","skipped"}`
// POST | `/stockgate/sales/{id}/queue/pause`, `resume` | lets no order go to the shop, or lets them go on: the same
// POST | `/stockgate/sales/{id}/queue/drain` | releases up to `?most=` orders that wait, the first ones first (5,000): the same with `released`
// GET | `/stockgate/sales/{id}/waitlist` | its waiting list: `{"id","people","offered","most","offer","entered","offers","accepted","lapsed","left","closed","other","offers_paused_since"}`
// POST | `/stockgate/sales/{id}/waitlist/pause`, `resume` | lets no more offers be made, or lets them go on: the same
// POST | `/stockgate/sales/{id}/rebuild` | rebuilds a sale that Redis has lost, `?from=ledger`; `?dry_run=1`, `?open=1`, `?force=1`
// GET | `/stockgate/sales/{id}/holds` | reservations that are `?state=held`, `in_doubt` (the default) or `unbacked`; `?cause=`, `?older=10m`, `?limit=`, `?after=`
// POST | `/stockgate/sales/{id}/reconcile` | what differs between Redis, the journal, the ledger and, with `{"orders","as_of"}` or `{"probe"}`, the shop; `{"repair":true}` puts it right
// GET | `/stockgate/holds` | the same of all sales
// POST | `/stockgate/sales/{id}/holds/confirm`, `release` | resolves many: `{"state","cause","older","all","force","dry_run","after"}`, or `{"names"}` of reservations or refs to confirm; up to 500, `next` says where to go on
// POST | `/stockgate/sales/{id}/holds/names` | the reservations or refs that a file names: `{"name","text","column"}`, the text up to 2 MiB of CSV, JSON lines or a bare list. Nothing is changed
// POST | `/stockgate/sales/{id}/returns` | units of up to 500 orders come back: `{"returns":[{"name","id","lines","restock"}],"dry_run"}`; the same again changes nothing
// GET | `/stockgate/sales/{id}/journal` | where the sale's journal begins and ends, and how far its followers are
// GET | `/stockgate/sales/{id}/journal/movements` | up to `?limit=` movements `?after=` a number, of the journal and where it has ended of the ledger; `?epoch=`; `?wait=` up to 60 seconds for the next one
// GET | `/stockgate/journals` | the journals of all sales
// GET | `/stockgate/reservations/{id}` | a reservation
// POST | `/stockgate/reservations/{id}/confirm`, `release` | the reservation; a release before the deadline needs `?force=1`
// POST | `/stockgate/reservations/{id}/return` | the reservation, after `{"id","lines","restock"}` came back, as in the shop's API
// POST | `/stockgate/reservations/{id}/extend` | the reservation, held for `{"hold_for"}` from now, up to the sale's max_hold
// POST | `/stockgate/key/replace` | registers this edge's signing key in the place of a lost one: `{"old_key"}` in PEM, or `{"begin_anew":true}`; `"force"`
// DELETE | `/stockgate/edges/{edge}` | ends the warning about an edge that is silent and does not come back: `{"id","was_silent"}`. false: nothing was changed
// GET | `/stockgate/health` | `{"ready","orders","lost","degraded","bypassed"}`, from memory; 503 where this edge does not sell
// GET | `/stockgate/doctor` | what this edge finds right and wrong, `{"level","check","text"}` each; `?older=10m` for holds in doubt
// GET | `/stockgate/gates` | the gates of this edge by name
// POST | `/stockgate/gates/{name}/try` | how that gate decides on `{"request","answer"}`, HTTP messages in base64; also `"from"`, an address, and `"placeholders"`, those that other directives set. Nothing is reserved
// POST | `/stockgate/try` | the same of the only gate
// POST | `/stockgate/gates/{name}/bypass` | lets the orders of that gate pass without a reservation, at this edge, for `{"for":"15m","reason"}`: `{"gate","edge","from","until","by","orders","taken","deciding"}`. It needs no Redis
// DELETE | `/stockgate/gates/{name}/bypass` | ends that: the same; 404 where it is not on
// POST, DELETE | `/stockgate/bypass` | the same of the only gate
// GET | `/stockgate/bypasses` | the bypasses of all edges that Redis knows, and of this one
// POST | `/stockgate/notify/test` | sends a test message to the receiver of `notify`: `{"form","answer","took_ms"}`; 409 with its answer where it does not take it
// POST | `/stockgate/store/backup` | a copy of all that `store` has, as it is at one moment: a file of Redis, with `{"at","bytes","sales","named","server"}` in the header `Stockgate-Backup`
// POST | `/stockgate/move` | moves all stock to `{"store"}`, a directory of this machine, or to `{"redis":["host:port"],"sentinel","cluster","username","password","tls"}`: `{"where","sales","keys","before"}`. The same again goes on
// POST | `/stockgate/move/undo` | ends a move that has not finished: the stock stays, and sells
// GET | `/stockgate/lists` | all named lists
// GET | `/stockgate/lists/{name}` | a list and how many entries it has
// POST | `/stockgate/lists/{name}/add`, `remove` | changes a list that is kept in Redis by a JSON array of up to 5,000 entries
// POST | `/stockgate/person/show` | what sales, lists and the ledger have of `{"identities":{"buyer":"u42"}}`, up to 1,000,000 records and counters; `"after"` the `next` of the answer before
// POST | `/stockgate/person/erase` | the same, after removing what neither books nor limits need, with what is `erased` and `kept`; `"lists"` removes entries of lists too, `"dry_run"` nothing
//
// Errors are `{"error":"…"}`: 400 bad input, 404 unknown, 409 the state forbids it,
// 413 too large, 503 Redis does not answer, or no stockgate app is running. After a
// 503 it is unknown whether a change was made: every change may be requested again.
type AdminAPI struct{}

// CaddyModule returns the Caddy module information.
func (AdminAPI) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "admin.api.stockgate", New: func() caddy.Module { return new(AdminAPI) }}
}

// Routes returns the routes of the admin endpoint. Every request looks up the app, because
// the endpoint is made before the apps and outlives a reload.
func (AdminAPI) Routes() []caddy.AdminRoute {
	routes := []struct {
		pattern string
		handle  func(*operator, *http.Request) (any, error)
	}{
		{"GET /stockgate/sales", (*operator).listSales},
		{"GET /stockgate/sales/{id}", (*operator).showSale},
		{"GET /stockgate/sales/{id}/file", (*operator).saleFile},
		{"GET /stockgate/sales/{id}/tally", (*operator).tallySale},
		{"GET /stockgate/sales/{id}/counts", (*operator).countSale},
		{"PUT /stockgate/sales/{id}", (*operator).applySale},
		{"POST /stockgate/sales/{id}/open", func(o *operator, r *http.Request) (any, error) { return o.setStatus(r, sale.Open) }},
		{"POST /stockgate/sales/{id}/pause", func(o *operator, r *http.Request) (any, error) { return o.setStatus(r, sale.Paused) }},
		{"POST /stockgate/sales/{id}/close", func(o *operator, r *http.Request) (any, error) { return o.setStatus(r, sale.Closed) }},
		{"DELETE /stockgate/sales/{id}", (*operator).deleteSale},
		{"POST /stockgate/sales/{id}/align", (*operator).alignSale},
		{"POST /stockgate/sales/{id}/forget_shadow", (*operator).forgetShadow},
		{"POST /stockgate/sales/{id}/unfence", (*operator).unfenceSale},
		{"POST /stockgate/sales/{id}/items/{sku}/stock", (*operator).addStock},
		{"GET /stockgate/sales/{id}/schedule", (*operator).showSchedule},
		{"POST /stockgate/sales/{id}/schedule", (*operator).scheduleAct},
		{"DELETE /stockgate/sales/{id}/schedule/{number}", (*operator).cancelAct},
		{"POST /stockgate/sales/{id}/move_in", (*operator).moveIn},
		{"GET /stockgate/sales/{id}/queue", (*operator).showQueue},
		{"POST /stockgate/sales/{id}/queue/pause", (*operator).pauseQueue},
		{"POST /stockgate/sales/{id}/queue/resume", (*operator).resumeQueue},
		{"POST /stockgate/sales/{id}/queue/drain", (*operator).drainQueue},
		{"GET /stockgate/sales/{id}/waitlist", (*operator).showWaitlist},
		{"POST /stockgate/sales/{id}/waitlist/pause", (*operator).pauseOffers},
		{"POST /stockgate/sales/{id}/waitlist/resume", (*operator).resumeOffers},
		{"POST /stockgate/sales/{id}/rebuild", (*operator).rebuildSale},
		{"GET /stockgate/sales/{id}/holds", (*operator).listHolds},
		{"GET /stockgate/holds", (*operator).listHolds},
		{"POST /stockgate/sales/{id}/holds/confirm", (*operator).confirmHolds},
		{"POST /stockgate/sales/{id}/holds/release", (*operator).releaseHolds},
		{"POST /stockgate/sales/{id}/holds/names", (*operator).namesIn},
		{"POST /stockgate/sales/{id}/returns", (*operator).giveBackMany},
		{"GET /stockgate/sales/{id}/journal", (*operator).showJournal},
		{"GET /stockgate/sales/{id}/journal/movements", (*operator).readMovements},
		{"GET /stockgate/journals", (*operator).listJournals},
		{"POST /stockgate/sales/{id}/reconcile", (*operator).reconcile},
		{"GET /stockgate/lists", (*operator).listLists},
		{"GET /stockgate/lists/{name}", (*operator).showList},
		{"POST /stockgate/lists/{name}/add", func(o *operator, r *http.Request) (any, error) { return o.changeList(r, "add") }},
		{"POST /stockgate/lists/{name}/remove", func(o *operator, r *http.Request) (any, error) { return o.changeList(r, "remove") }},
		{"POST /stockgate/person/show", (*operator).showPerson},
		{"POST /stockgate/person/erase", (*operator).erasePerson},
		{"GET /stockgate/reservations/{id}", (*operator).showReservation},
		{"POST /stockgate/reservations/{id}/confirm", (*operator).confirm},
		{"POST /stockgate/reservations/{id}/release", (*operator).release},
		{"POST /stockgate/reservations/{id}/return", (*operator).giveBack},
		{"POST /stockgate/reservations/{id}/extend", (*operator).extend},
		{"POST /stockgate/key/replace", (*operator).replaceKey},
		{"DELETE /stockgate/edges/{edge}", (*operator).forgetEdge},
		{"POST /stockgate/move/undo", (*operator).undoMove},
		{"GET /stockgate/health", (*operator).health},
		{"GET /stockgate/doctor", (*operator).examine},
		{"GET /stockgate/gates", (*operator).listGates},
		{"POST /stockgate/gates/{name}/try", (*operator).tryGate},
		{"POST /stockgate/try", (*operator).tryGate},
		{"POST /stockgate/gates/{name}/bypass", (*operator).beginBypass},
		{"POST /stockgate/bypass", (*operator).beginBypass},
		{"DELETE /stockgate/gates/{name}/bypass", (*operator).endBypass},
		{"DELETE /stockgate/bypass", (*operator).endBypass},
		{"GET /stockgate/bypasses", (*operator).listBypasses},
		{"POST /stockgate/notify/test", (*operator).testNotify},
	}
	out := make([]caddy.AdminRoute, len(routes))
	for i, route := range routes {
		out[i] = caddy.AdminRoute{Pattern: route.pattern, Handler: serveOperator(route.handle)}
	}
	return append(out,
		caddy.AdminRoute{Pattern: "POST /stockgate/store/backup", Handler: caddy.AdminHandlerFunc(serveBackup)},
		caddy.AdminRoute{Pattern: "POST /stockgate/move", Handler: caddy.AdminHandlerFunc(serveMove)},
	)
}

// operatorOf finds the edge runtime for a request; nil: it has answered that there is none.
func operatorOf(w http.ResponseWriter, r *http.Request) (*operator, error) {
	w.Header().Set(adminapi.ServedHeader, "1")
	app := app.Active()
	if app == nil || app.Runtime() == nil {
		return nil, refuse(w, caddy.APIError{HTTPStatus: http.StatusServiceUnavailable, Message: noApp})
	}
	return &operator{app: app, runtime: app.Runtime(), by: request.By(r), cause: causeOf(r), log: caddy.Log().Named("admin.api.stockgate")}, nil
}

// serveOperator makes an admin handler. It finds the edge runtime and writes what handle
// returns as an HTTP response.
func serveOperator(handle func(*operator, *http.Request) (any, error)) caddy.AdminHandler {
	return caddy.AdminHandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		o, err := operatorOf(w, r)
		if o == nil {
			return err
		}
		// a change that has begun is finished, whether or not the client waits for it
		var cancel context.CancelFunc
		o.ctx, cancel = context.WithTimeout(context.WithoutCancel(r.Context()), adminTimeout)
		defer cancel()
		answer, err := handle(o, r)
		if err != nil {
			return refuse(w, apiError(err))
		}
		status := http.StatusOK
		if h, ok := answer.(adminapi.Health); ok && !h.Ready {
			status = http.StatusServiceUnavailable
		}
		return write(w, status, answer)
	})
}

// notFoundError says that something does not exist.
type notFoundError struct{ error }

func (e notFoundError) Unwrap() error { return e.error }

// apiError gives an error its status.
func apiError(err error) caddy.APIError {
	status := http.StatusInternalServerError
	var tooLarge *http.MaxBytesError
	var input request.Error
	var missing notFoundError
	var conflict *reservation.ConflictError
	var refund *reservation.RefundNeededError
	var early *reservation.TooSoonError
	var many *reservation.TooManyError
	message := err.Error()
	switch {
	case errors.As(err, &tooLarge):
		status = http.StatusRequestEntityTooLarge
		message = fmt.Sprintf("the body is larger than %d bytes", tooLarge.Limit)
	case errors.As(err, &input):
		status = http.StatusBadRequest
	case errors.As(err, &missing), errors.Is(err, shard.ErrNoSale), errors.Is(err, reservation.ErrNotFound):
		status = http.StatusNotFound
	case errors.As(err, &refund):
		status, message = http.StatusConflict, "refund_needed: "+message
	case errors.Is(err, shard.ErrRefused), errors.As(err, &conflict), errors.As(err, &early), errors.As(err, &many),
		errors.Is(err, reservation.ErrReused):
		status = http.StatusConflict
	case errors.Is(err, shard.ErrUnavailable), errors.Is(err, context.DeadlineExceeded), errors.Is(err, shard.ErrStarting),
		errors.Is(err, ledger.ErrLedger), errors.Is(err, ledger.ErrLedger), errors.Is(err, shard.ErrNewerSchema), errors.Is(err, shard.ErrMemoryPolicy):
		status = http.StatusServiceUnavailable
	}
	return caddy.APIError{HTTPStatus: status, Err: err, Message: message}
}

// Interface guards
var (
	_ caddy.Module      = (*AdminAPI)(nil)
	_ caddy.AdminRouter = (*AdminAPI)(nil)
)

// Package operator is the admin API, by which operators manage sales and examine an edge.
package operator

import (
	"net/http"
	"slices"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/caddymodule/operate/operator/gates"
	"github.com/stockgate/stockgate/caddymodule/operate/operator/journals"
	"github.com/stockgate/stockgate/caddymodule/operate/operator/reservations"
	"github.com/stockgate/stockgate/caddymodule/operate/operator/sales"
	"github.com/stockgate/stockgate/caddymodule/operate/operator/serve"
)

func init() { caddy.RegisterModule(AdminAPI{}) }

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

// Routes returns the routes of the admin endpoint.
func (AdminAPI) Routes() []caddy.AdminRoute {
	return slices.Concat(sales.Routes(), reservations.Routes(), gates.Routes(), journals.Routes(), []caddy.AdminRoute{
		serve.Route("GET /stockgate/lists", listLists),
		serve.Route("GET /stockgate/lists/{name}", showList),
		serve.Route("POST /stockgate/lists/{name}/add", func(o *serve.Operator, r *http.Request) (any, error) { return changeList(o, r, "add") }),
		serve.Route("POST /stockgate/lists/{name}/remove", func(o *serve.Operator, r *http.Request) (any, error) { return changeList(o, r, "remove") }),
		serve.Route("POST /stockgate/person/show", showPerson),
		serve.Route("POST /stockgate/person/erase", erasePerson),
		serve.Route("POST /stockgate/key/replace", replaceKey),
		serve.Route("DELETE /stockgate/edges/{edge}", forgetEdge),
		serve.Route("POST /stockgate/move/undo", undoMove),
		serve.Route("GET /stockgate/health", health),
		serve.Route("GET /stockgate/doctor", examine),
		serve.Route("POST /stockgate/notify/test", testNotify),
		{Pattern: "POST /stockgate/store/backup", Handler: caddy.AdminHandlerFunc(serveBackup)},
		{Pattern: "POST /stockgate/move", Handler: caddy.AdminHandlerFunc(serveMove)},
	})
}

// Interface guards
var (
	_ caddy.Module      = (*AdminAPI)(nil)
	_ caddy.AdminRouter = (*AdminAPI)(nil)
)

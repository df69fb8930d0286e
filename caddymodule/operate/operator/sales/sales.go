// Package sales serves requests of the admin API about sales: files, stock, schedules, queues and waiting lists.
package sales

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/caddymodule/operate/doctor"
	"github.com/stockgate/stockgate/caddymodule/operate/operator/serve"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// ledgerAsked bounds how long the apply of a new sale waits for the ledger.
const ledgerAsked = 5 * time.Second

// Routes returns the routes of requests about sales.
func Routes() []caddy.AdminRoute {
	return []caddy.AdminRoute{
		serve.Route("GET /stockgate/sales", listSales),
		serve.Route("GET /stockgate/sales/{id}", showSale),
		serve.Route("GET /stockgate/sales/{id}/file", saleFile),
		serve.Route("GET /stockgate/sales/{id}/tally", tallySale),
		serve.Route("GET /stockgate/sales/{id}/counts", countSale),
		serve.Route("PUT /stockgate/sales/{id}", applySale),
		serve.Route("POST /stockgate/sales/{id}/open", func(o *serve.Operator, r *http.Request) (any, error) { return setStatus(o, r, sale.Open) }),
		serve.Route("POST /stockgate/sales/{id}/pause", func(o *serve.Operator, r *http.Request) (any, error) { return setStatus(o, r, sale.Paused) }),
		serve.Route("POST /stockgate/sales/{id}/close", func(o *serve.Operator, r *http.Request) (any, error) { return setStatus(o, r, sale.Closed) }),
		serve.Route("DELETE /stockgate/sales/{id}", deleteSale),
		serve.Route("POST /stockgate/sales/{id}/align", alignSale),
		serve.Route("POST /stockgate/sales/{id}/forget_shadow", forgetShadow),
		serve.Route("POST /stockgate/sales/{id}/unfence", unfenceSale),
		serve.Route("POST /stockgate/sales/{id}/items/{sku}/stock", addStock),
		serve.Route("GET /stockgate/sales/{id}/schedule", showSchedule),
		serve.Route("POST /stockgate/sales/{id}/schedule", scheduleAct),
		serve.Route("DELETE /stockgate/sales/{id}/schedule/{number}", cancelAct),
		serve.Route("POST /stockgate/sales/{id}/move_in", moveIn),
		serve.Route("GET /stockgate/sales/{id}/queue", showQueue),
		serve.Route("POST /stockgate/sales/{id}/queue/pause", pauseQueue),
		serve.Route("POST /stockgate/sales/{id}/queue/resume", resumeQueue),
		serve.Route("POST /stockgate/sales/{id}/queue/drain", drainQueue),
		serve.Route("GET /stockgate/sales/{id}/waitlist", showWaitlist),
		serve.Route("POST /stockgate/sales/{id}/waitlist/pause", pauseOffers),
		serve.Route("POST /stockgate/sales/{id}/waitlist/resume", resumeOffers),
	}
}

func listSales(o *serve.Operator, r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	ids, err := o.Runtime.Store.Journal().Sales(o.Ctx)
	if err != nil {
		return nil, err
	}
	list := adminapi.SaleList{Sales: make([]adminapi.SaleSummary, 0, len(ids))}
	for _, id := range ids {
		b, err := o.Runtime.Store.SaleStock(o.Ctx, id)
		if errors.Is(err, shard.ErrNoSale) {
			list.Sales = append(list.Sales, adminapi.SaleSummary{ID: id, Status: edge.StatusLost})
			continue
		} else if err != nil {
			return nil, err
		}
		list.Sales = append(list.Sales, adminapi.SaleSummary{ID: b.ID, Status: b.Status, StartsAt: b.StartsAt, EndsAt: b.EndsAt, Timezone: b.Timezone, Balanced: b.Balanced})
	}
	return list, nil
}

func showSale(o *serve.Operator, r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	id, err := request.SaleID(r)
	if err != nil {
		return nil, err
	}
	stock, err := o.Runtime.Store.SaleStock(o.Ctx, id)
	if err != nil {
		return nil, o.NoSale(id, err)
	}
	shadow, err := o.Runtime.Store.ShadowCells(o.Ctx, id, stock.Items)
	if err != nil {
		return nil, err
	}
	state := o.Runtime.AtRisk(id)
	shown := adminapi.SaleShown{SaleStock: *stock, UnitsAtRisk: state.Units, AtRiskMs: state.Age.Milliseconds(), Shadow: shadow}
	for _, p := range o.App.Bypassed() {
		if len(p.Sales) == 0 || slices.Contains(p.Sales, id) {
			shown.Bypasses = append(shown.Bypasses, p.Sentence())
		}
	}
	if stock.MovedIn != nil {
		current, err := o.Runtime.Store.Load(o.Ctx, id)
		if err != nil {
			return nil, o.NoSale(id, err)
		}
		shown.MovedIn = &adminapi.SaleMovedIn{MovedIn: *stock.MovedIn, Loaded: current.Sale.Cells()}
	}
	if shown.Queue, err = queueOf(o, id); err != nil {
		return nil, o.NoSale(id, err)
	}
	if shown.Waitlist, err = waitlistOf(o, id); err != nil {
		return nil, err
	}
	shown.Mirror, err = mirror(o, id)
	return shown, err
}

// mirror says how the shop's own Redis follows a sale; nil: no edge has mirrored it.
func mirror(o *serve.Operator, id string) (*adminapi.SaleMirror, error) {
	state, until, err := o.Runtime.Store.Journal().Mirror(o.Ctx, id)
	if err != nil || state == nil {
		return nil, err
	}
	head, err := o.Runtime.Store.Journal().Head(o.Ctx, id)
	if err != nil {
		return nil, err
	}
	return &adminapi.SaleMirror{MirrorState: *state, Running: until.After(head.Now)}, nil
}

func tallySale(o *serve.Operator, r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	id, err := request.SaleID(r)
	if err != nil {
		return nil, err
	}
	tally, err := o.Runtime.Store.Tally(o.Ctx, id)
	return tally, o.NoSale(id, err)
}

func saleFile(o *serve.Operator, r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	id, err := request.SaleID(r)
	if err != nil {
		return nil, err
	}
	_, _, file, err := o.Runtime.Store.Journal().SaleDocument(o.Ctx, id)
	return adminapi.SaleFile{ID: id, File: []byte(file)}, o.NoSale(id, err)
}

func applySale(o *serve.Operator, r *http.Request) (any, error) {
	id, err := request.SaleID(r)
	if err != nil {
		return nil, err
	}
	query, err := request.Query(r, "dry_run", "force", "new")
	if err != nil {
		return nil, err
	}
	options := reservation.ApplyOptions{By: o.By}
	for name, into := range map[string]*bool{"dry_run": &options.DryRun, "force": &options.Force, "new": &options.New} {
		if *into, err = request.Flag(query, name); err != nil {
			return nil, err
		}
	}
	file, err := request.Body(r, sale.MaxFile)
	if err != nil {
		return nil, err
	}
	next, err := sale.Parse(file)
	if err != nil {
		return nil, request.Bad("%w", err)
	}
	if next.ID != id {
		return nil, request.Bad("the file is about the sale %s, the path about %s", next.ID, id)
	}
	if err := checkReaders(o, next); err != nil {
		return nil, err
	}
	warning, err := askLedger(o, id, &options)
	if err != nil {
		return nil, err
	}
	current, _ := o.Runtime.Catalogue().Sale(id)
	unexpected := surprises(current, next, o.Runtime.Store.Now(id))
	applied, err := o.Runtime.ApplyUnlessLost(o.Ctx, next, options)
	answer := &adminapi.AppliedSale{Applied: applied, Surprises: unexpected}
	if applied == nil {
		answer = nil
	} else {
		if !applied.Same {
			applied.Warnings = append(next.Advice(o.Runtime.Store.Now(id)), withoutStock(current, next)...)
		}
		applied.Warnings = slices.Concat(applied.Warnings, warning, doctor.SharedItems(o.App, o.Runtime.Catalogue(), next), hopelessActs(o, next))
	}
	if options.DryRun {
		if err != nil && applied != nil {
			err = serve.RefusedChange(err, applied.Changes)
		}
		return answer, err
	}
	var changes []string
	if applied != nil {
		changes = applied.Changes
	}
	return answer, o.Noted(err, "sale applied", zap.String("sale", id), zap.Bool("force", options.Force), zap.Bool("new", options.New), zap.Strings("changes", changes))
}

// askLedger asks the ledger about a sale that is missing in Redis. It refuses one that the ledger
// has and that was not deleted on purpose, unless options say that it is new: Redis has lost it. What
// the ledger knows of an earlier deletion goes into options; if it does not answer about a new sale,
// that is a warning.
func askLedger(o *serve.Operator, id string, options *reservation.ApplyOptions) (warning []string, err error) {
	db := o.App.Journals().Ledger()
	if db == nil {
		return nil, nil
	}
	if _, err := o.Runtime.Store.Journal().Head(o.Ctx, id); !errors.Is(err, shard.ErrNoSale) {
		return nil, nil // an error here occurs again when the sale is applied
	}
	ctx, cancel := context.WithTimeout(o.Ctx, ledgerAsked)
	defer cancel()
	at, err := ledgerOf(o, ctx, db, id, options)
	switch {
	case err != nil && options.New:
		return []string{"the ledger does not answer, so it is not known whether a sale " + id + " was deleted before: an order of that one, which the shop confirms now, would take a unit of this one; " +
			"close and delete this sale, and apply it when the ledger answers, if that may be"}, nil
	case err != nil:
		return nil, fmt.Errorf("%w: %w; whether redis has lost sale %s is not known: ask again when the ledger answers, or say --new if there never was such a sale", ledger.ErrLedger, err, id)
	case at == ledger.Position{} || options.New:
		return nil, nil
	}
	deleted, err := o.Runtime.Store.Journal().Deleted(ctx)
	if err != nil {
		return nil, err
	}
	if epoch, err := strconv.ParseInt(deleted[id], 10, 64); err == nil && epoch >= at.Epoch {
		return nil, nil // on purpose: the ledger archives it when it hears of the new one
	}
	return nil, reservation.RefuseAnew(id)
}

// ledgerOf reads how far the ledger has a sale, and notes in options which one under its id was
// deleted last.
func ledgerOf(o *serve.Operator, ctx context.Context, db ledger.Ledger, id string, options *reservation.ApplyOptions) (at ledger.Position, err error) {
	if err = db.Migrate(ctx); err != nil {
		return at, err
	}
	if options.Deleted, err = db.Archived(ctx, id); err != nil {
		return at, err
	}
	return db.Position(ctx, id)
}

func setStatus(o *serve.Operator, r *http.Request, status sale.Status) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	id, err := request.SaleID(r)
	if err != nil {
		return nil, err
	}
	err = o.NoSale(id, o.Runtime.Store.SetStatus(o.Ctx, id, status, o.By))
	if err = o.Noted(err, "sale status set", zap.String("sale", id), zap.String("status", string(status))); err != nil {
		return nil, err
	}
	noteAct(o, id, status)
	answer := adminapi.SaleStatus{ID: id, Status: status}
	if l, ok := o.Runtime.Catalogue().Sale(id); ok && status == sale.Open {
		answer.Warnings = doctor.SharedItems(o.App, o.Runtime.Catalogue(), l.Sale)
	}
	return answer, nil
}

// noteAct keeps the operator who changed the status of a sale, for the message of `notify`.
func noteAct(o *serve.Operator, id string, status sale.Status) {
	if o.App.Notifier() == nil {
		return
	}
	if err := o.Runtime.Client().NoteAct(o.Ctx, id, string(status), o.By); err != nil {
		o.Log.Warn("operators are not told by whom the status was set", zap.String("sale", id), zap.Error(err))
	}
}

func deleteSale(o *serve.Operator, r *http.Request) (any, error) {
	query, err := request.Query(r, "force")
	if err != nil {
		return nil, err
	}
	id, err := request.SaleID(r)
	if err != nil {
		return nil, err
	}
	force, err := request.Flag(query, "force")
	if err != nil {
		return nil, err
	}
	err = o.NoSale(id, o.Runtime.Store.Delete(o.Ctx, id, force))
	return adminapi.SaleDeleted{ID: id, Deleted: true}, o.Noted(err, "sale deleted", zap.String("sale", id), zap.Bool("force", force))
}

func alignSale(o *serve.Operator, r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	id, err := request.SaleID(r)
	if err != nil {
		return nil, err
	}
	lead, moved, err := o.Runtime.Store.Align(o.Ctx, id, o.By)
	err = edgeruntime.NoSale(id, err)
	return adminapi.SaleAligned{ID: id, LeadMs: lead.Milliseconds(), Moved: moved},
		o.Noted(err, "sale's clock aligned", zap.String("sale", id), zap.Duration("lead", lead), zap.Int64("moved", moved))
}

func unfenceSale(o *serve.Operator, r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	id, err := request.SaleID(r)
	if err != nil {
		return nil, err
	}
	fenced, err := o.Runtime.Leases().Resume(o.Ctx, id)
	err = o.NoSale(id, err)
	if !fenced && err == nil {
		return adminapi.SaleUnfenced{ID: id}, nil
	}
	return adminapi.SaleUnfenced{ID: id, WasFenced: fenced}, o.Noted(err, "sale sold again without what redis has lost", zap.String("sale", id))
}

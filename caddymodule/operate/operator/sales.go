package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/caddymodule/operate/doctor"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// ledgerAsked bounds how long the apply of a new sale waits for the ledger.
const ledgerAsked = 5 * time.Second

func (o *operator) listSales(r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	ids, err := o.runtime.Store.Journal().Sales(o.ctx)
	if err != nil {
		return nil, err
	}
	list := adminapi.SaleList{Sales: make([]adminapi.SaleSummary, 0, len(ids))}
	for _, id := range ids {
		b, err := o.runtime.Store.SaleStock(o.ctx, id)
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

func (o *operator) showSale(r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	id, err := request.SaleID(r)
	if err != nil {
		return nil, err
	}
	stock, err := o.runtime.Store.SaleStock(o.ctx, id)
	if err != nil {
		return nil, o.noSale(id, err)
	}
	shadow, err := o.runtime.Store.ShadowCells(o.ctx, id, stock.Items)
	if err != nil {
		return nil, err
	}
	state := o.runtime.AtRisk(id)
	shown := adminapi.SaleShown{SaleStock: *stock, UnitsAtRisk: state.Units, AtRiskMs: state.Age.Milliseconds(), Shadow: shadow}
	for _, p := range o.app.Bypassed() {
		if len(p.Sales) == 0 || slices.Contains(p.Sales, id) {
			shown.Bypasses = append(shown.Bypasses, p.Sentence())
		}
	}
	if stock.MovedIn != nil {
		current, err := o.runtime.Store.Load(o.ctx, id)
		if err != nil {
			return nil, o.noSale(id, err)
		}
		shown.MovedIn = &adminapi.SaleMovedIn{MovedIn: *stock.MovedIn, Loaded: current.Sale.Cells()}
	}
	if shown.Queue, err = o.queueOf(id); err != nil {
		return nil, o.noSale(id, err)
	}
	if shown.Waitlist, err = o.waitlistOf(id); err != nil {
		return nil, err
	}
	shown.Mirror, err = o.mirror(id)
	return shown, err
}

// mirror says how the shop's own Redis follows a sale; nil: no edge has mirrored it.
func (o *operator) mirror(id string) (*adminapi.SaleMirror, error) {
	state, until, err := o.runtime.Store.Journal().Mirror(o.ctx, id)
	if err != nil || state == nil {
		return nil, err
	}
	head, err := o.runtime.Store.Journal().Head(o.ctx, id)
	if err != nil {
		return nil, err
	}
	return &adminapi.SaleMirror{MirrorState: *state, Running: until.After(head.Now)}, nil
}

func (o *operator) tallySale(r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	id, err := request.SaleID(r)
	if err != nil {
		return nil, err
	}
	tally, err := o.runtime.Store.Tally(o.ctx, id)
	return tally, o.noSale(id, err)
}

func (o *operator) saleFile(r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	id, err := request.SaleID(r)
	if err != nil {
		return nil, err
	}
	_, _, file, err := o.runtime.Store.Journal().SaleDocument(o.ctx, id)
	return adminapi.SaleFile{ID: id, File: []byte(file)}, o.noSale(id, err)
}

func (o *operator) applySale(r *http.Request) (any, error) {
	id, err := request.SaleID(r)
	if err != nil {
		return nil, err
	}
	query, err := request.Query(r, "dry_run", "force", "new")
	if err != nil {
		return nil, err
	}
	options := reservation.ApplyOptions{By: o.by}
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
	if err := o.checkReaders(next); err != nil {
		return nil, err
	}
	warning, err := o.askLedger(id, &options)
	if err != nil {
		return nil, err
	}
	current, _ := o.runtime.Catalogue().Sale(id)
	unexpected := surprises(current, next, o.runtime.Store.Now(id))
	applied, err := o.runtime.ApplyUnlessLost(o.ctx, next, options)
	answer := &adminapi.AppliedSale{Applied: applied, Surprises: unexpected}
	if applied == nil {
		answer = nil
	} else {
		if !applied.Same {
			applied.Warnings = append(next.Advice(o.runtime.Store.Now(id)), withoutStock(current, next)...)
		}
		applied.Warnings = slices.Concat(applied.Warnings, warning, doctor.SharedItems(o.app, o.runtime.Catalogue(), next), o.hopelessActs(next))
	}
	if options.DryRun {
		if err != nil && applied != nil {
			err = &refusedChange{err, applied.Changes}
		}
		return answer, err
	}
	var changes []string
	if applied != nil {
		changes = applied.Changes
	}
	return answer, o.noted(err, "sale applied", zap.String("sale", id), zap.Bool("force", options.Force), zap.Bool("new", options.New), zap.Strings("changes", changes))
}

// askLedger asks the ledger about a sale that is missing in Redis. It refuses one that the ledger
// has and that was not deleted on purpose, unless options say that it is new: Redis has lost it. What
// the ledger knows of an earlier deletion goes into options; if it does not answer about a new sale,
// that is a warning.
func (o *operator) askLedger(id string, options *reservation.ApplyOptions) (warning []string, err error) {
	db := o.app.Ledger()
	if db == nil {
		return nil, nil
	}
	if _, err := o.runtime.Store.Journal().Head(o.ctx, id); !errors.Is(err, shard.ErrNoSale) {
		return nil, nil // an error here occurs again when the sale is applied
	}
	ctx, cancel := context.WithTimeout(o.ctx, ledgerAsked)
	defer cancel()
	at, err := o.ledgerOf(ctx, db, id, options)
	switch {
	case err != nil && options.New:
		return []string{"the ledger does not answer, so it is not known whether a sale " + id + " was deleted before: an order of that one, which the shop confirms now, would take a unit of this one; " +
			"close and delete this sale, and apply it when the ledger answers, if that may be"}, nil
	case err != nil:
		return nil, fmt.Errorf("%w: %w; whether redis has lost sale %s is not known: ask again when the ledger answers, or say --new if there never was such a sale", ledger.ErrLedger, err, id)
	case at == ledger.Position{} || options.New:
		return nil, nil
	}
	deleted, err := o.runtime.Store.Journal().Deleted(ctx)
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
func (o *operator) ledgerOf(ctx context.Context, db ledger.Ledger, id string, options *reservation.ApplyOptions) (at ledger.Position, err error) {
	if err = db.Migrate(ctx); err != nil {
		return at, err
	}
	if options.Deleted, err = db.Archived(ctx, id); err != nil {
		return at, err
	}
	return db.Position(ctx, id)
}

func (o *operator) setStatus(r *http.Request, status sale.Status) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	id, err := request.SaleID(r)
	if err != nil {
		return nil, err
	}
	err = o.noSale(id, o.runtime.Store.SetStatus(o.ctx, id, status, o.by))
	if err = o.noted(err, "sale status set", zap.String("sale", id), zap.String("status", string(status))); err != nil {
		return nil, err
	}
	o.noteAct(id, status)
	answer := adminapi.SaleStatus{ID: id, Status: status}
	if l, ok := o.runtime.Catalogue().Sale(id); ok && status == sale.Open {
		answer.Warnings = doctor.SharedItems(o.app, o.runtime.Catalogue(), l.Sale)
	}
	return answer, nil
}

func (o *operator) deleteSale(r *http.Request) (any, error) {
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
	err = o.noSale(id, o.runtime.Store.Delete(o.ctx, id, force))
	return adminapi.SaleDeleted{ID: id, Deleted: true}, o.noted(err, "sale deleted", zap.String("sale", id), zap.Bool("force", force))
}

func (o *operator) alignSale(r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	id, err := request.SaleID(r)
	if err != nil {
		return nil, err
	}
	lead, moved, err := o.runtime.Store.Align(o.ctx, id, o.by)
	err = edgeruntime.NoSale(id, err)
	return adminapi.SaleAligned{ID: id, LeadMs: lead.Milliseconds(), Moved: moved},
		o.noted(err, "sale's clock aligned", zap.String("sale", id), zap.Duration("lead", lead), zap.Int64("moved", moved))
}

func (o *operator) unfenceSale(r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	id, err := request.SaleID(r)
	if err != nil {
		return nil, err
	}
	fenced, err := o.runtime.Leases().Resume(o.ctx, id)
	err = o.noSale(id, err)
	if !fenced && err == nil {
		return adminapi.SaleUnfenced{ID: id}, nil
	}
	return adminapi.SaleUnfenced{ID: id, WasFenced: fenced}, o.noted(err, "sale sold again without what redis has lost", zap.String("sale", id))
}

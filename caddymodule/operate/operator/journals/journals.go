// Package journals serves requests of the admin API about the journals of sales, and rebuilds and reconciles sales.
package journals

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/caddymodule/operate/operator/serve"
	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// journalLook is how often a request that waits for movements looks for them.
const journalLook = 250 * time.Millisecond

// Routes returns the routes of requests about journals, and of those that rebuild and reconcile sales.
func Routes() []caddy.AdminRoute {
	return []caddy.AdminRoute{
		serve.Route("POST /stockgate/sales/{id}/rebuild", rebuildSale),
		serve.Route("GET /stockgate/sales/{id}/journal", showJournal),
		serve.Route("GET /stockgate/sales/{id}/journal/movements", readMovements),
		serve.Route("GET /stockgate/journals", listJournals),
		serve.Route("POST /stockgate/sales/{id}/reconcile", reconcile),
	}
}

func listJournals(o *serve.Operator, r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	ids, err := o.Runtime.Store.Journal().Sales(o.Ctx)
	if err != nil {
		return nil, err
	}
	all := adminapi.JournalStates{Journals: make([]adminapi.JournalState, 0, len(ids))}
	for _, id := range ids {
		s, err := journalState(o, id)
		if errors.Is(err, shard.ErrNoSale) {
			continue // its first apply has not reached Redis
		} else if err != nil {
			return nil, err
		}
		all.Journals = append(all.Journals, s)
	}
	return all, nil
}

func showJournal(o *serve.Operator, r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	id, err := request.SaleID(r)
	if err != nil {
		return nil, err
	}
	s, err := journalState(o, id)
	return s, o.NoSale(id, err)
}

func journalState(o *serve.Operator, id string) (adminapi.JournalState, error) {
	h, err := o.Runtime.Store.Journal().Head(o.Ctx, id)
	if err != nil {
		return adminapi.JournalState{}, err
	}
	s := adminapi.JournalState{Sale: id, Epoch: h.Epoch, First: h.First, Last: h.Last, Began: h.Began}
	if o.App.Journals().KeepsLedger() || !h.AckedAt.IsZero() {
		s.Ledger = ledgerState(o, id, h)
	}
	if o.App.Outbox != nil || !h.SentAt.IsZero() {
		s.Outbox = &adminapi.JournalReader{Has: h.Sent, Behind: h.Unsent(), At: h.SentAt}
	}
	return s, nil
}

// ledgerState is how far this edge's ledger has come or, where it has none, that of another edge.
func ledgerState(o *serve.Operator, id string, h journal.Head) *adminapi.JournalReader {
	var err error
	if own := o.App.Journals().Ledger(); own != nil {
		h, err = ledger.Standing(o.Ctx, o.Runtime.Store.Journal(), own, id, h)
	}
	r := &adminapi.JournalReader{Has: h.Acked, Behind: h.Behind(), At: h.AckedAt}
	if err != nil {
		r.Trouble = err.Error()
	}
	return r
}

// readMovements answers with a part of a sale's movements: those of the journal, and from the
// ledger those that the journal no longer keeps.
func readMovements(o *serve.Operator, r *http.Request) (any, error) {
	id, err := request.SaleID(r)
	if err != nil {
		return nil, err
	}
	query, err := request.Query(r, "after", "epoch", "limit", "wait")
	if err != nil {
		return nil, err
	}
	after, err := readNumber(query, "after", 0, 0, 1<<53)
	if err != nil {
		return nil, err
	}
	epoch, err := readNumber(query, "epoch", 0, 1, 1<<53)
	if err != nil {
		return nil, err
	}
	limit, err := readNumber(query, "limit", adminapi.JournalPage, 1, adminapi.JournalPage)
	if err != nil {
		return nil, err
	}
	wait, err := readNumber(query, "wait", 0, 0, adminapi.JournalWait)
	if err != nil {
		return nil, err
	}
	page, err := await(o, r, time.Duration(wait)*time.Second, func() (*adminapi.MovementPage[ledger.Entry], error) {
		return movements(o, id, epoch, after, int(limit))
	})
	return page, o.NoSale(id, err)
}

// await reads until there are movements, the time is over, the client leaves, or another
// configuration runs, so that a follower asks seldom: Caddy logs every request.
func await(o *serve.Operator, r *http.Request, wait time.Duration, read func() (*adminapi.MovementPage[ledger.Entry], error)) (*adminapi.MovementPage[ledger.Entry], error) {
	over := time.NewTimer(wait)
	defer over.Stop()
	look := time.NewTicker(journalLook)
	defer look.Stop()
	for {
		page, err := read()
		if wait == 0 || err != nil || len(page.Movements) > 0 || page.Current != page.Epoch {
			return page, err
		}
		select {
		case <-look.C:
		case <-over.C:
			return page, nil
		case <-r.Context().Done():
			return page, nil
		}
		if app.Active() != o.App {
			return page, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), serve.Timeout)
		defer cancel() // a request waits for a minute at most
		o.Ctx = ctx
	}
}

// readNumber reads a parameter that is a whole number; absent is fallback.
func readNumber(query url.Values, name string, fallback, least, most int64) (int64, error) {
	if !query.Has(name) {
		return fallback, nil
	}
	n, err := strconv.ParseInt(query.Get(name), 10, 64)
	if err != nil || n < least || n > most {
		return 0, request.Bad("%s must be a whole number from %d to %d", name, least, most)
	}
	return n, nil
}

func movements(o *serve.Operator, id string, epoch, after int64, limit int) (*adminapi.MovementPage[ledger.Entry], error) {
	history, lost := o.App.Journals().History(o.Runtime), false
	head, err := o.Runtime.Store.Journal().Head(o.Ctx, id)
	if errors.Is(err, shard.ErrNoSale) && history.Ledger != nil {
		at, failed := history.Ledger.Position(o.Ctx, id)
		if failed != nil {
			return nil, fmt.Errorf("%w: %w", ledger.ErrLedger, failed)
		}
		if at.Seq > 0 { // Redis has lost it, the ledger has not
			err, lost, head.Epoch = nil, true, at.Epoch
			epoch = cmp.Or(epoch, at.Epoch)
		}
	}
	if err != nil {
		return nil, err
	}
	page := &adminapi.MovementPage[ledger.Entry]{Sale: id, Epoch: epoch, Current: head.Epoch}
	var movements []journal.Movement
	switch {
	case lost || epoch != 0 && epoch != head.Epoch:
		movements, err = history.Old(o.Ctx, id, epoch, after, limit)
	case after > head.Last:
		return nil, fmt.Errorf("%w: the journal of sale %s ends with number %d", shard.ErrRefused, id, head.Last)
	default:
		page.Epoch = head.Epoch
		movements, err = history.Read(o.Ctx, id, head.Epoch, after, limit)
		if err == nil && len(movements) == 0 && after < head.Last {
			err = &journal.GapError{Sale: id, Want: after + 1}
		}
		if _, gap := errors.AsType[*journal.GapError](err); gap || err == nil { // numbers of another epoch leave a gap
			err = cmp.Or(sameEpoch(o, id, head.Epoch), err)
		}
	}
	switch gap, ok := errors.AsType[*journal.GapError](err); {
	case ok && gap.Have > 0:
		return nil, fmt.Errorf("%w: the movements %d to %d of sale %s were trimmed from its journal, and no ledger here has them: it goes on from number %d",
			shard.ErrRefused, gap.Want, gap.Have-1, id, gap.Have)
	case ok:
		return nil, fmt.Errorf("%w: %w", shard.ErrRefused, err)
	}
	page.Movements = ledger.Entries(id, page.Epoch, movements)
	return page, err
}

// sameEpoch returns an error if what was just read belongs to another epoch of the sale.
func sameEpoch(o *serve.Operator, id string, epoch int64) error {
	head, err := o.Runtime.Store.Journal().Head(o.Ctx, id)
	if err == nil && head.Epoch != epoch {
		err = fmt.Errorf("%w: it has just lost sale %s: ask again", shard.ErrUnavailable, id)
	}
	return err
}

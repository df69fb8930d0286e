package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// ledger examines whether the database of the ledger answers and has its tables.
func (d *examination) ledger() {
	db := d.app.Journals().Ledger()
	if db == nil {
		return // a finding about each open sale says so
	}
	ctx, cancel := d.call()
	defer cancel()
	// what the drainer does too before a sale's first movement
	if err := db.Migrate(ctx); err != nil {
		d.Add(adminapi.LevelError, "ledger", "the ledger does not answer, or cannot be used: %v; selling goes on, and the journal grows in redis until it is back", err)
		return
	}
	d.Add(adminapi.LevelOK, "ledger", "the ledger answers")
	// a database whose sessions cannot ask for durable commits says what its server does
	if server, ok := db.(interface {
		Durable(context.Context) (why string, err error)
	}); ok {
		if why, err := server.Durable(ctx); err == nil && why != "" {
			d.Add(adminapi.LevelWarning, "ledger", "%s", why)
		}
	}
}

// judgeJournal adds the findings about how far the ledger is behind a sale.
func (d *examination) judgeJournal(b *reservation.SaleStock, head journal.Head) {
	if head.Fenced { // judgeFence says so, and what is lost is known afterwards
		return
	}
	withLedger := d.app.Journals().Ledger() != nil
	if withLedger && d.lost(b.ID, head) {
		return
	}
	if head.Lost > 0 {
		d.Add(adminapi.LevelError, "journal", "redis went back in %s: it has lost at least %d movements that this edge has seen, and more may be lost; what they sold may be sold again: "+
			"pause it, and compare it with the shop's orders, 'caddy stockgate holds %s --confirm-from FILE'", b.ID, head.Lost, b.ID)
	}
	if !withLedger {
		if b.Status == sale.Open {
			d.Add(adminapi.LevelWarning, "ledger", "%s is open and no ledger is kept, so only redis knows what it has sold: add `ledger sqlite FILE`, `ledger postgres DSN` or `ledger mysql DSN`", b.ID)
		}
		return
	}
	ctx, cancel := d.call()
	defer cancel()
	if edges, err := ledger.Apart(ctx, d.runtime.Store.Journal(), b.ID); err == nil && edges != nil {
		d.Add(adminapi.LevelError, "ledger", "these edges keep ledgers of their own of %s: %s; one may lack what the other has, and a rebuild from it would sell that again: give every edge the same ledger, `ledger postgres` or `ledger mysql` on several machines",
			b.ID, strings.Join(edges, ", "))
	}
	own, err := ledger.Standing(ctx, d.runtime.Store.Journal(), d.app.Journals().Ledger(), b.ID, head)
	behind := fmt.Sprintf("%d movements of %s, the oldest for %v", own.Behind(), b.ID, own.Age.Round(time.Second))
	_, gap := errors.AsType[*ledger.PositionError](err)
	switch {
	case gap:
		d.Add(adminapi.LevelError, "journal", "%v", err)
	case ledger.Late(own):
		d.Add(adminapi.LevelError, "journal", "the ledger does not have %s: they stay in redis's memory (%d movements) until it has; see the log for what stops it", behind, own.Length)
	case err != nil:
		d.Add(adminapi.LevelError, "journal", "how much of %s the ledger has is not known: %v", b.ID, err)
	case own.Acked < head.Acked:
		d.Add(adminapi.LevelError, "journal", "the ledger has %s up to entry %d, and up to %d was acknowledged: it was removed, replaced, put back from a backup or failed over to a replica that was behind, or another edge follows the sale with a ledger of its own: "+
			"give every edge the same ledger. It gets the rest from the journal", b.ID, own.Acked, head.Acked)
	case own.Behind() > 0:
		d.Add(adminapi.LevelOK, "journal", "the ledger is about to get %s", behind)
	default:
		d.Add(adminapi.LevelOK, "journal", "the ledger has all of %s up to entry %d", b.ID, own.Last)
	}
}

// lost reports whether the ledger has movements that Redis has lost, and adds the finding.
func (d *examination) lost(id string, head journal.Head) bool {
	ctx, cancel := d.call()
	defer cancel()
	at, err := d.app.Journals().Ledger().Position(ctx, id)
	switch {
	case err != nil, at == ledger.Position{}: // the finding ledger says why
		return false
	case at.Epoch != head.Epoch:
		if deleted, err := d.runtime.Store.Journal().DeletedEpoch(ctx, id); err == nil && journal.Replaced(at.Epoch, deleted, head.Epoch) {
			d.Add(adminapi.LevelOK, "journal", "the ledger still has the %s that was deleted, and is about to archive it", id)
			return true
		}
		d.Add(adminapi.LevelError, "journal", "%v", ledger.OtherLife(ctx, d.runtime.Store.Journal(), id, at, head))
		return true
	case at.Seq > head.Last && !d.later(id, at):
		d.Add(adminapi.LevelError, "journal", "the ledger has %s up to entry %d, and redis only up to %d: redis has lost movements, so what was sold then may be sold again; pause the sale", id, at.Seq, head.Last)
		return true
	}
	return false
}

package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/edge/fence"
	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/recovery"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// outbox examines whether the receiver of the outbox gets what is sold.
func (d *examination) outbox() {
	late, ok := d.app.LateOutbox()
	if !ok {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(late)) {
		why := "another edge sends it, and its log says what stops it"
		if late[id] != "" {
			why = late[id]
		}
		d.Add(adminapi.LevelError, "outbox", "the outbox's receiver is behind with %s: %s; selling goes on, and the journal grows in redis until it catches up", id, why)
	}
	if len(late) == 0 {
		d.Add(adminapi.LevelOK, "outbox", "the outbox's receiver is not behind")
	}
}

// sales examines every sale.
func (d *examination) sales() {
	ctx, cancel := d.call()
	defer cancel()
	ids, err := d.runtime.Store.Journal().Sales(ctx)
	if err != nil {
		d.Add(adminapi.LevelError, "sales", "the sales cannot be read: %v", err)
		return
	}
	schemas, err := d.runtime.Store.Shard().Schemas(ctx, ids, func(id string) bool {
		l, ok := d.runtime.Catalogue().Sale(id)
		return ok && l.Sale.Waitlist != nil
	})
	switch {
	case err != nil:
		d.Add(adminapi.LevelError, "schema", "the layout of the sales' keys cannot be read: %v", err)
	case len(schemas.Newer) > 0:
		d.Add(adminapi.LevelError, "schema", "a newer stockgate has written the keys of %s, and this edge does not sell them: update it", strings.Join(schemas.Newer, ", "))
	default:
		d.Add(adminapi.LevelOK, "schema", "this edge knows the layout of the keys of all %d sales", len(ids))
	}
	for _, id := range slices.Sorted(maps.Keys(schemas.Older)) {
		d.Add(adminapi.LevelWarning, "schema", "the keys of %s have %s: edges of a version that does not know that then stop selling it, and it cannot go back to such a version. Update all edges before", id, schemas.Older[id])
	}
	d.move(schemas.Frozen)
	d.otherRules()
	for l := range d.runtime.Catalogue().All { // the index of sales may be gone, with all else
		ids = append(ids, l.Sale.ID)
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		d.sale(id)
	}
	d.unknownSales(ids)
	for l := range d.runtime.Catalogue().All {
		d.limits(l)
		d.unread(l)
		d.waitlist(l)
		d.recounted(l)
	}
	d.waitlists()
	d.shared()
}

// sale examines the stock of one sale, and what the ledger has of it.
func (d *examination) sale(id string) {
	ctx, cancel := d.call()
	defer cancel()
	if err := d.runtime.Store.Shard().CheckKeys(ctx, id); errors.Is(err, shard.ErrRefused) {
		d.Add(adminapi.LevelError, "sale", "%v", err)
		return
	}
	life, err := d.runtime.Store.Life(ctx, id)
	switch {
	case err != nil:
		d.Add(adminapi.LevelError, "sale", "%s cannot be read: %v", id, err)
		return
	case life.Restoring:
		d.Add(adminapi.LevelError, "sale", "%s is being rebuilt, or that broke off: nothing is sold, and outcomes wait; if no rebuild is running, run 'caddy stockgate rebuild %s --from ledger'", id, id)
		return
	case life.HasPrevious:
		d.Add(adminapi.LevelError, "sale", "%s was rebuilt, and what redis had before is not all merged: it cannot be opened, and some outcomes wait; if no rebuild is running, "+
			"run 'caddy stockgate rebuild %s --from ledger' again", id, id)
	}
	d.judgeFence(ctx, id)
	b, err := d.runtime.Store.SaleStock(ctx, id)
	if noSaleThere(err) {
		d.Add(adminapi.LevelError, "sale", "%v", &edge.LostError{Sale: id})
		d.otherLedger(id)
		return
	}
	if err != nil {
		d.Add(adminapi.LevelError, "sale", "%s cannot be read: %v", id, err)
		return
	}
	head, err := d.runtime.Store.Journal().Head(ctx, id)
	if err != nil {
		d.Add(adminapi.LevelError, "journal", "the journal of %s cannot be read: %v", id, err)
		return
	}
	before := d.Errors + d.Warnings
	d.judgeBalance(b, d.runtime.Store.Now(id))
	d.judgeLead(id, head.Lead)
	judgeRestored(&d.Diagnosis, b)
	judgeSchedule(&d.Diagnosis, b, d.runtime.Store.Now(id))
	judgeRisk(&d.Diagnosis, id, d.runtime.AtRisk(id), d.app.AtRisk())
	if d.Errors+d.Warnings == before {
		d.Add(adminapi.LevelOK, "sale", "%s is %s, and its stock balances", id, b.Status)
	}
	d.judgeQueue(id, head)
	d.judgeJournal(b, head)
	d.judgeMirror(b, head)
}

// driftFor is how long a key that something else has written is a finding.
const driftFor = 10 * time.Minute

// judgeMirror adds the findings about the keys of the shop's own Redis.
func (d *examination) judgeMirror(b *reservation.SaleStock, head journal.Head) {
	ctx, cancel := d.call()
	defer cancel()
	s, until, err := d.runtime.Store.Journal().Mirror(ctx, b.ID)
	configured := d.app.Journals().Mirrors(b.ID)
	switch {
	case err != nil || s == nil && !configured: // SaleStock says it
		return
	case b.Status == sale.Draft && configured:
		d.Add(adminapi.LevelOK, "mirror", "the mirror of %s begins when it is opened: until then the shop's own script may write its keys", b.ID)
		return
	case !until.After(head.Now):
		if b.Status == sale.Open {
			d.Add(adminapi.LevelWarning, "mirror", "no edge mirrors %s to the shop's Redis now: its readers see old numbers; every edge that runs should have `mirror`", b.ID)
		}
		return
	case s == nil: // the lease says that an edge has begun, and it has noted nothing that can be read
		return
	case s.Error != "":
		d.Add(adminapi.LevelError, "mirror", "the shop's Redis lacks changes of %s since %s, so its readers see old numbers: %s; the mirror catches up by itself once it can write", b.ID, adminapi.LocalTime(s.Behind), s.Error)
		return
	case head.Now.Sub(s.DriftAt) < driftFor:
		d.Add(adminapi.LevelWarning, "mirror", "something else writes keys that the mirror of %s writes, the last time at %s: %s had %s, and the mirror had written %s. "+
			"If it is the shop's own script, stop it: it sells what stockgate sells", b.ID, adminapi.LocalTime(s.DriftAt), s.DriftKey, s.Had, s.Wrote)
		return
	}
	d.Add(adminapi.LevelOK, "mirror", "the shop's Redis follows %s", b.ID)
}

// namedEdges is how many edges a finding names.
const namedEdges = 5

// judgeFence adds the findings about failovers of the sale's Redis.
func (d *examination) judgeFence(ctx context.Context, id string) {
	var s fence.State
	for _, state := range d.runtime.Leases().States() {
		if state.Sale == id {
			s = state
		}
	}
	r, err := fence.Read(ctx, d.runtime.Store.Shard(), id)
	switch {
	case err != nil: // SaleStock says it
	case s.Replaced:
		d.Add(adminapi.LevelError, "fence", "this edge knows what redis lacks, and redis was not restarted: it may be a primary that has been replaced. Nothing of %s is sold since %s. "+
			"Lead the edges to the server that has taken over; if that is lost, have this one save (SAVE) and restart it: the edges then give it what it lacks", id, adminapi.LocalTime(s.Since))
	case s.Owed > 0:
		d.Add(adminapi.LevelError, "fence", "this edge came after a failover, and redis does not take %d promises that it made before: it sells nothing of %s since %s. "+
			"The log says why. When redis takes them it sells; to give them up, restart the edge, which then logs them as lost", s.Owed, id, adminapi.LocalTime(s.Since))
	case r.Fenced:
		why := ""
		switch {
		case s.Contradicted:
			why = fmt.Sprintf(": from entry %d of the journal on it has other movements than the edges know; an old primary came back after its successor was lost. "+
				"Lead the edges to the successor. If that is lost, rebuild %[2]s from the ledger, or run 'caddy stockgate sale unfence %[2]s' and compare with the shop by 'reconcile'; see docs/failover.md", s.Stuck, id)
		case s.Stuck > 0:
			why = fmt.Sprintf(": it lacks entry %d of the journal, which cannot be applied again; see docs/failover.md, then 'caddy stockgate sale unfence %s'", s.Stuck, id)
		case s.Absent > 0:
			why = fmt.Sprintf(": %d edges have not said what they know (%s); start those that do not run", s.Absent, r.Absentees(namedEdges, adminapi.LocalTime))
		}
		d.Add(adminapi.LevelError, "fence", "redis was promoted or restarted, and nothing of %s is sold since %s%s", id, adminapi.LocalTime(r.Began), why)
	case r.Missing+r.Absent > 0:
		who := ""
		if r.Absent > 0 {
			who = fmt.Sprintf("; these may know any movement after number %d%s: %s", r.Base, d.atMost(), r.Absentees(namedEdges, adminapi.LocalTime))
		}
		d.Add(adminapi.LevelWarning, "fence", "redis was promoted or restarted at %s, and may have lost sales of %s: %d movements were not known to any edge, %d edges did not come, %d movements were applied again%s. "+
			"'caddy stockgate reconcile %s' with the shop's orders says what is missing", adminapi.LocalTime(r.Ended), id, r.Missing, r.Absent, r.Replayed, who, id)
	}
}

// atMost says how much an edge may have sold that no replica has, where that is bounded.
func (d *examination) atMost() string {
	if bound := d.app.AtRisk(); bound != "" && bound != "any" {
		return " (at_risk bounds what each sold to " + bound + ")"
	}
	return ""
}

// judgeLead adds a finding if Redis's clock has stepped while the sale had holds.
func (d *examination) judgeLead(id string, lead time.Duration) {
	how := "back"
	if lead < 0 {
		how = "forward"
	}
	if lead.Abs() > clockOff {
		d.Add(adminapi.LevelWarning, "clock", "redis's clock has stepped %s by %v while %s had holds: their deadlines go on by a clock of their own until no hold is left. "+
			"Run NTP on redis's machine so that it slews instead; once its time is right, 'caddy stockgate sale align %s' ends that at once", how, lead.Abs().Round(time.Second), id, id)
	}
}

// judgeBalance adds the findings about the stock of a sale. now is its Redis's time.
func (d *examination) judgeBalance(b *reservation.SaleStock, now time.Time) {
	if !b.Balanced {
		d.Add(adminapi.LevelError, "sale", "the stock of %s does not balance: it is not available + held + in doubt + confirmed, so something else has changed keys in redis; "+
			"pause it with 'caddy stockgate sale pause %s', and 'caddy stockgate reconcile %s' says what is wrong", b.ID, b.ID, b.ID)
	}
	if b.Status == sale.Open && now.After(b.EndsAt) {
		d.Add(adminapi.LevelWarning, "sale", "%s has ended at %s and is still open: close it with 'caddy stockgate sale close %s --export FILE'", b.ID, adminapi.SaleTime(b.EndsAt, b.Timezone), b.ID)
	}
	if since := b.OldestInDoubt; !since.IsZero() && now.Sub(since) > d.doubt {
		d.Add(adminapi.LevelWarning, "in_doubt", "a hold of %s is in doubt since %s, %v ago%s: 'caddy stockgate holds %s' lists them, and confirms or releases what your shop has or has not",
			b.ID, adminapi.SaleTime(since, b.Timezone), now.Sub(since).Round(time.Second), d.whyDoubt(), b.ID)
	}
	if b.Unbacked > 0 {
		d.Add(adminapi.LevelWarning, "unbacked", "%d orders of %s are taken by the shop or paid for without stock: refund and release them, or add stock and confirm them; 'caddy stockgate holds %s --state unbacked' lists them",
			b.Unbacked, b.ID, b.ID)
	}
}

// whyDoubt reports whether a gate has a probe that asks the shop.
func (d *examination) whyDoubt() string {
	for sells := range selling(d.app) {
		if sells.Probes {
			return ", although a probe asks the shop"
		}
	}
	return ", and no gate has `in_doubt probe`"
}

// otherLedger adds a finding if another edge's ledger has more of a lost sale than this edge's.
func (d *examination) otherLedger(id string) {
	if d.app.Journals().Ledger() == nil {
		return
	}
	ctx, cancel := d.call()
	defer cancel()
	if err := recovery.NewerLedger(ctx, d.app.Journals().Ledger(), d.runtime.Store, id); errors.Is(err, shard.ErrRefused) {
		d.Add(adminapi.LevelError, "ledger", "%v", err)
	}
}

// later reports whether the sale's journal has reached the ledger's position meanwhile.
func (d *examination) later(id string, at ledger.Position) bool {
	ctx, cancel := d.call()
	defer cancel()
	now, err := d.runtime.Store.Journal().Head(ctx, id)
	return err != nil || now.Last >= at.Seq
}

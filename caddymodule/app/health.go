package app

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/caddymodule/overviewcache"
	"github.com/stockgate/stockgate/internal/sale"
)

// The parts without which an edge can work, as the label of stockgate_degraded names them.
const (
	partSale    = "sale"    // a sale that Redis has lost
	partLedger  = "ledger"  // the ledger is behind
	partOutbox  = "outbox"  // the outbox's receiver is behind
	partView    = "view"    // an open sale is not followed: Redis is asked about each attempt
	partBacklog = "backlog" // outcomes that Redis does not know yet
	partRates   = "rates"   // the Redis of shared rates does not answer
	partNotify  = "notify"  // operators are not told
)

var degradable = []string{partSale, partLedger, partOutbox, partView, partBacklog, partRates, partNotify}

// Health reports, from memory, whether the edge sells and what it works without.
func (a *App) Health() adminapi.Health {
	d := a.Runtime()
	if d == nil {
		return adminapi.Health{Orders: "stockgate has not started yet"}
	}
	h := adminapi.Health{Ready: true, Orders: adminapi.OrdersReady}
	if err := d.Ready(); err != nil {
		h.Ready, h.Orders = false, err.Error()
	}
	for _, p := range a.Bypassed() {
		h.Bypassed = append(h.Bypassed, p.Sentence())
	}
	if !h.Ready && len(a.BypassedGates()) > 0 {
		h.Ready, h.Orders = true, "bypassed"
	}
	missing := a.missing()
	h.Lost = missing[partSale]
	for _, part := range degradable {
		if names := missing[part]; len(names) > 0 {
			if part == partLedger {
				h.Degraded = append(h.Degraded, behindLedger(names)...)
				continue
			}
			h.Degraded = append(h.Degraded, fmt.Sprintf(sentences[part], strings.Join(names, ", ")))
		}
	}
	h.RefundNeeded = a.refundNeeded()
	return h
}

// behindLedger returns the sentences about sales with which the ledger is behind.
func behindLedger(names []string) (out []string) {
	var late []string
	for _, sale := range names {
		if why := meter.LedgerTrouble(sale); why != "" {
			out = append(out, why)
		} else {
			late = append(late, sale)
		}
	}
	if len(late) > 0 {
		out = append(out, fmt.Sprintf(sentences[partLedger], strings.Join(late, ", ")))
	}
	return out
}

// LateOutbox returns the sales with which the outbox's receiver is behind, each with what keeps this
// edge from sending it; empty where another edge sends. ok: there is an outbox.
func (a *App) LateOutbox() (late map[string]string, ok bool) {
	late = make(map[string]string)
	for _, sale := range meter.LateOutbox() {
		late[sale] = meter.OutboxTrouble(sale)
	}
	return late, a.Outbox != nil
}

// refundOptions bound how often Redis is asked for orders without stock. No cell is kept.
var refundOptions = overviewcache.Options{Least: 10 * time.Second, Longest: 30 * time.Second}

// refundNeeded returns a sentence for each sale with orders that have no stock, from memory. It reads
// the sales again in the background.
func (a *App) refundNeeded() (all []string) {
	d := a.Runtime()
	cache := overviewcache.Of(&a.refunds, d, refundOptions)
	atOnce, cancel := context.WithCancel(context.Background())
	cancel()
	for l := range d.Catalogue().All {
		if l.Lost() {
			continue
		}
		if s, ok := cache.Latest(atOnce, l.Sale.ID); ok && s.Overview.Unbacked > 0 {
			all = append(all, fmt.Sprintf("%d orders of %s are taken by the shop or paid for without stock: refund and release them, or add stock and confirm them; "+
				"`caddy stockgate holds %s --state unbacked` lists them", s.Overview.Unbacked, l.Sale.ID, l.Sale.ID))
		}
	}
	slices.Sort(all)
	return all
}

var sentences = map[string]string{
	partSale:    "redis has lost %s: buyers hear unavailable; run `caddy stockgate rebuild`",
	partLedger:  "the ledger is behind with %s: the journal grows in redis until it catches up",
	partOutbox:  "the outbox's receiver is behind with %s",
	partView:    "%s is not followed: redis is asked about each attempt",
	partBacklog: "redis does not know %s outcomes yet: they are told again and again",
	partNotify:  "operators are not told what happens: %s",
	partRates:   "gates with a shared rate answer 503, because of rate_redis: %s",
}

// missing returns, for each part, what is affected.
func (a *App) missing() map[string][]string {
	d, all := a.Runtime(), make(map[string][]string)
	for l := range d.Catalogue().All {
		switch {
		case l.Lost():
			all[partSale] = append(all[partSale], l.Sale.ID)
		case l.Status == sale.Open && !l.IsFollowed():
			all[partView] = append(all[partView], l.Sale.ID)
		}
	}
	slices.Sort(all[partSale])
	slices.Sort(all[partView])
	all[partLedger], all[partOutbox] = meter.LateLedger(), meter.LateOutbox()
	if a.rates != nil {
		if err := d.CountsRates(); err != nil {
			all[partRates] = []string{err.Error()}
		}
	}
	if a.notifier != nil {
		if why := a.notifier.Trouble(); why != "" {
			all[partNotify] = []string{why}
		}
	}
	if n := d.Backlog(); n > 0 {
		all[partBacklog] = []string{fmt.Sprint(n)}
	}
	return all
}

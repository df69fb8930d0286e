package notify

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/stockgate/stockgate/caddymodule/internal/timing"
	"github.com/stockgate/stockgate/caddymodule/overviewcache"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/notices"
	"github.com/stockgate/stockgate/internal/store/shard"
)

const (
	// failedShare is the share of orders in a minute, in percent, from which the shop fails, and wellShare the one below
	// which it is well again; leastOrders is how many orders that takes.
	failedShare, wellShare, leastOrders = 20, 10, 20
	// doubtFor is how long an order is in doubt before operators hear of it: the shop is asked first.
	doubtFor = time.Minute
	// standsFor is how long the first order in line waits before the line counts as standing.
	standsFor = time.Minute
	// actWithin is how long after the change of a sale it may be noted by whom.
	actWithin = 2 * time.Second
)

// lookout collects what is so now.
type lookout struct {
	*teller
	ctx     context.Context
	now     time.Time
	known   map[string]string
	cache   *overviewcache.Cache
	shop    map[string][2]int64
	facts   []fact
	unknown map[string]bool // sales of which nothing is known now
	sells   bool            // a sale is not over
	back    map[string]time.Time
}

// add adds a fact of a kind that operators want to hear of.
func (o *lookout) add(kind string, f fact) {
	if o.config.tells(kind) {
		o.facts = append(o.facts, f)
	}
}

// isUnknown reports whether it is not known what is so about a subject.
func (o *lookout) isUnknown(about string) bool {
	_, id, _ := strings.Cut(about, " ")
	kind := readTold(o.known[about]).Kind
	return o.unknown[id] || kind != "" && !o.config.tells(kind)
}

// tell makes the notice of a sale.
func tell(kind, id, state, command, format string, args ...any) func(string) *notices.Notice {
	return func(string) *notices.Notice {
		return &notices.Notice{Kind: kind, Sale: id, State: state, Command: command, Text: fmt.Sprintf(format, args...)}
	}
}

// quiet forgets a subject without a word.
func (o *lookout) quiet(about string) {
	o.facts = append(o.facts, fact{about: about, say: func(string) *notices.Notice { return nil }})
}

// edges says which edges are gone. Where nothing sells any more, none is missed.
func (o *lookout) edges() {
	if !o.sells {
		for about := range o.known {
			if strings.HasPrefix(about, "edge ") {
				o.quiet(about)
			}
		}
		return
	}
	for _, s := range o.runtime.Silent() {
		name := edgeName(s.ID)
		o.add(kindEdge, fact{
			about: "edge " + s.ID, state: "gone", over: fmt.Sprintf("The edge %s is not missed any more: it is back, or was replaced or forgotten.", name),
			say: tell(kindEdge, "", "gone", "caddy stockgate edge forget "+s.ID,
				"The edge %s is gone: it was not stopped, and was last heard %s ago. It sold %s. Start it again; the command ends the warning about one that does not come back.", name, s.For.Round(time.Second), strings.Join(s.Sales, ", ")),
		})
	}
}

// sales looks at every sale.
func (o *lookout) sales() {
	o.unknown = make(map[string]bool)
	for l := range o.runtime.Catalogue().All {
		id := l.Sale.ID
		o.sells = o.sells || l.Status != sale.Closed && l.Now().Before(l.Sale.EndsAt)
		if l.Lost() {
			o.unknown[id] = true
			o.add(kindSale, fact{about: "lost " + id, state: "lost", over: fmt.Sprintf("%s is there again.", id),
				say: tell(kindSale, id, "lost", "caddy stockgate rebuild "+id+" --from ledger", "Redis has lost %s, and buyers hear 503 for its items.", id)})
			continue
		}
		if l.Status == sale.Draft || l.Status == sale.Closed && o.known["in_doubt "+id] == "" && o.known["unbacked "+id] == "" {
			o.status(l, nil)
			continue
		}
		s, ok := o.overview(id)
		if !ok {
			o.unknown[id] = true
			continue
		}
		o.status(l, s)
		o.stock(l, s)
		o.doubts(id, s)
		o.line(id, s)
		o.orders(l)
	}
}

// overview reads a sale; false: Redis does not answer.
func (o *lookout) overview(id string) (*overviewcache.Cached, bool) {
	ctx, cancel := context.WithTimeout(o.ctx, time.Second)
	defer cancel()
	s, err := o.cache.Recent(ctx, id)
	return s, err == nil
}

// status tells that a sale opens, pauses or ends, and by whom.
func (o *lookout) status(l *edge.Listing, s *overviewcache.Cached) {
	id, now := l.Sale.ID, l.Now()
	by, err := o.runtime.Client().Act(o.ctx, id, string(l.Status))
	switch {
	case err != nil:
		o.unknown[id] = true
		return
	case by == "" && o.isEarly("sale "+id, l.Status):
		o.leave("sale " + id)
		return
	}
	who, opened := "", ""
	if by != "" {
		who, opened = " by "+by, " It was opened by "+by+"."
	}
	f := fact{about: "sale " + id}
	switch {
	case l.Status == sale.Draft, l.Status == sale.Open && now.Before(l.Sale.StartsAt):
		return
	case l.Status == sale.Open && !now.Before(l.Sale.EndsAt):
		f.state = "ended"
		f.say = tell(kindSale, id, f.state, "caddy stockgate report "+id, "%s has ended: %s.", id, soldOf(s))
	case l.Status == sale.Open:
		f.state = "open"
		f.say = func(known string) *notices.Notice {
			if known == "paused" {
				return tell(kindSale, id, "resumed", "", "%s is open again: %s.%s", id, soldOf(s), opened)("")
			}
			return tell(kindSale, id, "opened", "caddy stockgate sale show "+id, "%s is open: %s of %s on sale until %s.%s", id, many(s.Overview.Sum.Available, "unit"), many(int64(len(l.Sale.Items)), "item"), zoned(l, l.Sale.EndsAt), opened)("")
		}
	case l.Status == sale.Paused:
		f.state = "paused"
		f.say = known(tell(kindSale, id, "paused", "caddy stockgate sale open "+id, "%s is paused%s, and its buyers hear 503: %s.", id, who, soldOf(s)))
	case l.Status == sale.Closed:
		f.state = "closed"
		f.say = known(tell(kindSale, id, "closed", "caddy stockgate report "+id, "%s is closed%s.", id, who))
	default: // it cannot be read
		o.unknown[id] = true
		return
	}
	if f.state == "ended" {
		f.say = known(f.say)
	}
	o.add(kindSale, f)
}

// isEarly reports whether the edge that has changed a sale may still note by whom.
func (o *lookout) isEarly(about string, status sale.Status) bool {
	if readTold(o.known[about]).State == string(status) {
		return false
	}
	key := about + " " + string(status)
	since, noted := o.back[key]
	if !noted {
		since, o.back[key] = o.now, o.now
	}
	early := o.now.Sub(since) < actWithin
	if !early && o.now.Sub(since) > time.Minute { // of an earlier change
		o.back[key] = o.now
		return true
	}
	return early
}

// known tells nothing of a sale that operators have never heard of: it was so before.
func known(say func(string) *notices.Notice) func(string) *notices.Notice {
	return func(before string) *notices.Notice {
		if before == "" {
			return nil
		}
		return say(before)
	}
}

// stock says that half of a sale is sold, and all of it.
func (o *lookout) stock(l *edge.Listing, s *overviewcache.Cached) {
	id, sum, now := l.Sale.ID, s.Overview.Sum, l.Now()
	f := fact{about: "stock " + id}
	switch {
	case l.Status != sale.Open || sum.Stock == 0 || now.Before(l.Sale.StartsAt) || !now.Before(l.Sale.EndsAt):
		o.leave(f.about)
		return
	case sum.Available == 0 && sum.Held == 0:
		f.state = "sold_out"
	case 2*sum.Confirmed >= sum.Stock:
		f.state = "half_sold"
	}
	f.say = func(before string) *notices.Notice {
		switch {
		case f.state == "sold_out":
			return tell(kindStock, id, f.state, "caddy stockgate sale show "+id, "%s is sold out: %s.", id, soldOf(s))("")
		case before == "sold_out" && sum.Available > 0:
			return tell(kindStock, id, "on_sale", "caddy stockgate sale show "+id, "%s has units on sale again: %s came back or were added.", id, units(sum.Available))("")
		case f.state == "half_sold" && before == "":
			return tell(kindStock, id, f.state, "caddy stockgate sale show "+id, "Half of %s is sold: %s, and %s are left.", id, soldOf(s), units(sum.Available))("")
		}
		return nil
	}
	if readTold(o.known[f.about]).State == "sold_out" && !o.isBack(id, sum.Available) {
		f.state = "sold_out"
	}
	o.add(kindStock, f)
}

// isBack reports whether units are on sale again for a while. Units that a buyer holds are not on sale, and units
// that are taken at once are no news.
func (o *lookout) isBack(id string, available int64) bool {
	since, noted := o.back[id]
	switch {
	case available == 0:
		delete(o.back, id)
	case !noted:
		o.back[id] = o.now
	case o.now.Sub(since) >= 2*timing.NoticeCalm.Now():
		delete(o.back, id)
		return true
	}
	return false
}

// doubts says how many orders are in doubt, and how many have no stock.
func (o *lookout) doubts(id string, s *overviewcache.Cached) {
	count := func(about string, key int) int64 {
		n, err := o.runtime.Client().Data(id).Count(o.ctx, key)
		if err != nil {
			o.leave(about)
		}
		return n
	}
	if about, since := "in_doubt "+id, s.Overview.OldestInDoubt; !since.IsZero() {
		if n := count(about, shard.InDoubtKey); n > 0 && (o.now.Sub(since) > doubtFor || o.known[about] != "") {
			o.add(kindInDoubt, fact{about: about, state: "in_doubt", level: n, over: fmt.Sprintf("No order of %s is in doubt any more.", id),
				say: tell(kindInDoubt, id, "in_doubt", "caddy stockgate holds "+id, "Orders of %s are in doubt: %s. It is not known whether the shop took them, and their units are kept.", id, units(n))})
		}
	}
	if n := s.Overview.Unbacked; n > 0 {
		o.add(kindUnbacked, fact{about: "unbacked " + id, state: "unbacked", level: n, over: fmt.Sprintf("No order of %s is without stock any more.", id),
			say: tell(kindUnbacked, id, "unbacked", "caddy stockgate holds "+id+" --state unbacked", "The shop took orders of %s without stock: %s. Add stock and confirm them, or refund them.", id, units(n))})
	}
}

// line says that no order leaves the line.
func (o *lookout) line(id string, s *overviewcache.Cached) {
	q := s.Queue
	if q == nil || q.Waiting == 0 || q.Oldest < standsFor || q.Pace > 0 {
		return
	}
	why, command := "no edge sends one", "caddy stockgate doctor"
	switch {
	case q.Paused:
		why, command = "an operator has paused the line", "caddy stockgate queue resume "+id
	case q.HeldUp > 0:
		why = "the shop has asked for later"
	case q.Skipped == q.Waiting:
		why = "no edge has the gate that took them"
	}
	o.add(kindQueue, fact{about: "queue " + id, state: "stands", over: fmt.Sprintf("The line of %s moves again.", id),
		say: tell(kindQueue, id, "stands", command, "The line of %s stands with %s. The first has waited for %s, and %s.", id, many(q.Waiting, "order"), q.Oldest.Round(time.Second), why)})
}

// orders says that the shop fails.
func (o *lookout) orders(l *edge.Listing) {
	id := l.Sale.ID
	about, n := "shop "+id, o.shop[id]
	sent, failed := n[0], n[1]
	was := o.known[about] != ""
	switch {
	case l.Status != sale.Open:
		o.quiet(about)
		return
	case sent < leastOrders: // too few to tell
		if was {
			o.leave(about)
		}
		return
	case failed*100 < sent*failedShare && !(was && failed*100 >= sent*wellShare):
		return
	}
	o.add(kindShop, fact{about: about, state: "failing", over: fmt.Sprintf("The shop takes orders of %s again.", id),
		say: tell(kindShop, id, "failing", "caddy stockgate doctor", "The shop fails orders of %s: %s of %s in the last minute got an error (5xx) or no answer. Look at the shop; what it does not answer is in doubt.", id, units(failed), units(sent))})
}

// leave leaves a subject as it was told.
func (o *lookout) leave(about string) {
	if text, ok := o.known[about]; ok {
		was := readTold(text)
		o.facts = append(o.facts, fact{about: about, state: was.State, level: was.Level})
	}
}

func units(n int64) string { return humanize.Comma(n) }

// many is a number of things.
func many(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return humanize.Comma(n) + " " + thing + "s"
}

// soldOf says how much of a sale is sold.
func soldOf(s *overviewcache.Cached) string {
	sum := s.Overview.Sum
	text := fmt.Sprintf("%s of %s units are sold", units(sum.Confirmed), units(sum.Stock))
	if sum.InDoubt > 0 {
		text += fmt.Sprintf(" and %s in doubt", units(sum.InDoubt))
	}
	return text
}

// zoned is a time in the zone of the sale.
func zoned(l *edge.Listing, at time.Time) string {
	if zone, err := time.LoadLocation(l.Sale.Timezone); err == nil {
		at = at.In(zone)
	}
	return at.Format("15:04 MST on 2 January")
}

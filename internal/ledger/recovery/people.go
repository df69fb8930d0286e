package recovery

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/store/waitlist"
)

// people are those who waited, as a ledger has it.
type people struct {
	offers  map[string]*record.Record // that are held, by their ids
	ended   map[string]bool           // offers that have ended
	entries map[int64]*waitlist.Entry
	counts  waitlist.ListCounts // Entered is the number of the newest entry
}

func newPeople() *people {
	return &people{offers: make(map[string]*record.Record), ended: make(map[string]bool), entries: make(map[int64]*waitlist.Entry)}
}

// offer takes a reservation into account that may be an offer.
func (p *people) offer(r *ledger.Reservation) {
	if r.Mode != record.ModeOffer {
		return
	}
	p.counts.Offers++
	if r.State == record.Held {
		held := r.Record
		p.offers[r.ID] = &held
		return
	}
	p.ended[r.ID] = true
	p.counts.End(r.Cause)
}

// aboutPeople are the kinds of movements that moved takes.
var aboutPeople = []string{"entered", "left", "offers_paused", "offers_resumed"}

// moved takes a movement into account by which a person enters or leaves, or offers stop or go on. Where a sale was loaded again without a
// rebuild, numbers begin again, and the last person with one has it.
func (p *people) moved(_ int64, m *journal.Movement) error {
	switch m.Kind {
	case "offers_paused":
		p.counts.PausedSince = m.Time
		return nil
	case "offers_resumed":
		p.counts.PausedSince = time.Time{}
		return nil
	}
	number, err := strconv.ParseInt(m.ID, 10, 64)
	if err != nil || len(m.Lines) != 1 {
		return nil // another client has written it
	}
	if delete(p.entries, number); m.Kind == "entered" {
		p.entries[number] = waitlist.NewEntry(number, record.MsOf(m.Time), m.Lines[0].Cell, m.Lines[0].Units, m.Buyer, m.Cause)
		p.counts.Entered = max(p.counts.Entered, number)
	} else {
		p.counts.End(m.Cause)
	}
	return nil
}

// list returns the entries that there must be, by their numbers.
func (p *people) list() []*waitlist.Entry {
	for number, e := range p.entries {
		id := e.OfferID()
		if r := p.offers[id]; r != nil && len(r.Lines) == 1 {
			e.Offered, e.Quantity = true, r.Lines[0].Units
		} else if p.ended[id] {
			delete(p.entries, number)
		}
	}
	for id, r := range p.offers { // of which the entry did not reach the ledger
		number, since, ok := numbersOf(id)
		if !ok || len(r.Lines) != 1 || p.entries[number] != nil {
			continue
		}
		e := waitlist.NewEntry(number, since, r.Lines[0].Cell, r.Lines[0].Units, r.Buyer, "")
		e.Offered = true
		p.entries[number], p.counts.Entered = e, max(p.counts.Entered, number)
	}
	numbers := slices.Sorted(maps.Keys(p.entries))
	all := make([]*waitlist.Entry, len(numbers))
	for i, n := range numbers {
		all[i] = p.entries[n]
	}
	return all
}

// numbersOf takes the id of an offer apart.
func numbersOf(id string) (number, since int64, ok bool) {
	a, b, ok := strings.Cut(strings.TrimPrefix(id, "w"), ".")
	number, failed := strconv.ParseInt(a, 10, 64)
	since, wrong := strconv.ParseInt(b, 10, 64)
	return number, since, ok && failed == nil && wrong == nil
}

// fillPeople restores the waiting list.
func (b *rebuilding) fillPeople(ctx context.Context, r *Restoration, p *people) error {
	if err := b.ledger.MovementsOfKinds(ctx, b.id, aboutPeople, p.moved); err != nil {
		return err
	}
	all := p.list()
	b.out.Waiting = len(all)
	if r == nil || p.counts.Entered == 0 && p.counts.PausedSince.IsZero() {
		return nil
	}
	r.waitlist = 1
	return waitlist.Fields(all, &p.counts, func(field, value string) error {
		r.add(shard.WaitlistKey, field, value)
		return r.send(ctx, maxRestoreBatch)
	})
}

// peopleAtOnce is how many people one call merges.
const peopleAtOnce = 100

// people puts those on the list who were on it in Redis, and takes those off who had left it there.
func (c *merger) people(ctx context.Context) error {
	redis := NewRestorer(c.store).shard
	was, last, err := waitlist.ReadAll(ctx, redis.Previous(c.id))
	if err != nil {
		return err
	}
	if err := c.offersPaused(ctx); err != nil || last == 0 {
		return err
	}
	now, _, err := waitlist.ReadAll(ctx, redis.Data(c.id))
	if err != nil {
		return err
	}
	known, there := make(map[string]bool), make(map[string]bool)
	for _, e := range now {
		known[e.OfferID()] = true
	}
	var ops []shard.Operation
	for _, e := range was {
		there[e.OfferID()] = true
		if !known[e.OfferID()] {
			ops = append(ops, e.Again())
		}
	}
	if err := c.inChunks(ctx, ops); err != nil {
		return err
	}
	ops = nil
	for _, e := range now {
		if c.sameLife && e.Number <= last && !there[e.OfferID()] {
			ops = append(ops, e.Leaves(asRedisHadIt))
		}
	}
	return c.inChunks(ctx, ops)
}

// offersPaused stops offers, or lets them go on, as it was in Redis: the ledger may not have the last word of operators.
func (c *merger) offersPaused(ctx context.Context) error {
	redis := NewRestorer(c.store).shard
	was, err := waitlist.ReadCounts(ctx, redis.Previous(c.id))
	if err != nil {
		return err
	}
	now, err := waitlist.ReadCounts(ctx, redis.Data(c.id))
	stop := !was.PausedSince.IsZero()
	if err != nil || stop == !now.PausedSince.IsZero() || !stop && !c.sameLife {
		return err
	}
	return c.inChunks(ctx, []shard.Operation{waitlist.Pauses(stop, asRedisHadIt)})
}

func (c *merger) inChunks(ctx context.Context, ops []shard.Operation) error {
	for chunk := range slices.Chunk(ops, peopleAtOnce) {
		if _, err := NewRestorer(c.store).shard.RunReplicated(ctx, c.id, chunk...); err != nil {
			return err
		}
	}
	return nil
}

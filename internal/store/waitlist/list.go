package waitlist

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// TurnOrder compares two people who wait for the same units: below 0, the turn of a comes first. It decides to whom units
// are offered and which places are told, and nothing else does: scripts take any person who waits. It must not
// change while people wait, must be the same on all edges, and never 0 for two entries.
type TurnOrder func(a, b *Entry) int

// ByArrival is the order in which people have entered, over all edges.
func ByArrival(a, b *Entry) int { return cmp.Compare(a.Number, b.Number) }

// List is the waiting list of one sale, as an edge knows it from the journal. It is safe for concurrent use.
type List struct {
	before  TurnOrder
	mu      sync.RWMutex
	entries map[int64]*Entry
	people  map[string]int64  // hash → number
	lines   map[string]*line  // by cell
	ended   map[string]string // by buyer, why some of the last entries have ended
	order   []string          // of ended, the oldest first
	left    left
	paused  bool // an operator lets no offer be made
}

// line is who waits for one cell.
type line struct {
	waiting []*Entry // in the order of their turns
	offered int
	offers  pace
}

// mostEnded bounds the entries of which a list remembers how they ended.
const mostEnded = 20_000

// NewList makes an empty list.
func NewList(order TurnOrder) *List {
	return &List{before: order, entries: make(map[int64]*Entry), people: make(map[string]int64), lines: make(map[string]*line), ended: make(map[string]string)}
}

// Load reads a sale's list from Redis. Movements of the journal from a moment before on may be applied to it.
func Load(ctx context.Context, d shard.Data, order TurnOrder) (*List, error) {
	l := NewList(order)
	n, err := d.Length(ctx, shard.WaitlistKey)
	if err != nil || n == 0 {
		return l, err
	}
	v, err := d.Values(ctx, shard.WaitlistKey, pausedField)
	if err != nil {
		return l, err
	}
	l.paused = v.Has(0)
	err = d.Each(ctx, shard.WaitlistKey, "e|*", 100, func(_, text string) error {
		for _, e := range parseBlock(text) {
			l.put(e)
		}
		return nil
	})
	if err != nil {
		return l, err
	}
	return l, l.loadOffers(ctx, d)
}

// offersAtOnce is how many offers are made, or read, in one call.
const offersAtOnce = 100

// loadOffers reads until when the offers last.
func (l *List) loadOffers(ctx context.Context, d shard.Data) error {
	var offered []*Entry
	for _, e := range l.entries {
		if e.Offered {
			offered = append(offered, e)
		}
	}
	for some := range slices.Chunk(offered, offersAtOnce) {
		ids := make([]string, len(some))
		for i, e := range some {
			ids[i] = e.OfferID()
		}
		texts, err := d.Values(ctx, shard.RecordsKey, ids...)
		if err != nil {
			return err
		}
		for i, e := range some {
			if r, err := record.Parse(texts.Text(i)); err == nil { // else the journal tells how it has ended
				e.Until = journal.OfferUntil(r)
			}
		}
	}
	return nil
}

// Apply brings the list to what a movement says, and returns the hash of the buyer whom it concerns; empty: it concerns no
// entry that is known.
func (l *List) Apply(w journal.WaitlistStep) (buyer string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.entries[w.Number]; e != nil {
		buyer = e.Buyer
	}
	switch {
	case w.Pauses, w.Resumes:
		l.paused = w.Pauses
	case w.Ends != "":
		l.take(w.Number, w.Ends)
	case w.Enters:
		l.put(&Entry{Number: w.Number, Cell: w.Cell, Quantity: w.Quantity, Buyer: w.Buyer, identities: w.Identities})
		return w.Buyer
	case w.Offered:
		l.offer(w)
	}
	return buyer
}

// put adds an entry that is not there yet.
func (l *List) put(e *Entry) {
	if l.entries[e.Number] != nil {
		return
	}
	l.entries[e.Number] = e
	delete(l.ended, e.Buyer)
	for hash := range e.hashes {
		if _, taken := l.people[hash]; !taken {
			l.people[hash] = e.Number
		}
	}
	of := l.lines[e.Cell]
	if of == nil {
		of = new(line)
		l.lines[e.Cell] = of
	}
	if e.Offered {
		of.offered++
		return
	}
	i, _ := slices.BinarySearchFunc(of.waiting, e, l.before)
	of.waiting = slices.Insert(of.waiting, i, e)
}

// offer notes that units are offered to an entry, or until when they are.
func (l *List) offer(w journal.WaitlistStep) {
	e := l.entries[w.Number]
	if e == nil {
		return
	}
	offered := *e // readers have the old one
	offered.Offered, offered.Quantity, offered.Until = true, w.Quantity, w.Until
	l.entries[w.Number] = &offered
	if e.Offered {
		return
	}
	of := l.lines[e.Cell]
	of.leave(e, l.before)
	of.offered++
	of.offers.add(time.Now())
}

// take ends an entry.
func (l *List) take(number int64, why string) {
	e := l.entries[number]
	if e == nil {
		return
	}
	delete(l.entries, number)
	for hash := range e.hashes {
		if l.people[hash] == number {
			delete(l.people, hash)
		}
	}
	if of := l.lines[e.Cell]; e.Offered {
		of.offered--
	} else {
		of.leave(e, l.before)
	}
	l.ended[e.Buyer], l.order = why, append(l.order, e.Buyer)
	if len(l.order) > mostEnded {
		delete(l.ended, l.order[0])
		l.order = l.order[1:]
	}
}

func (l *line) leave(e *Entry, before TurnOrder) {
	if i, found := slices.BinarySearchFunc(l.waiting, e, before); found {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
}

// IsEmpty reports whether no person is on the list. A list that is nil is empty.
func (l *List) IsEmpty() bool {
	if l == nil {
		return true
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	return len(l.entries) == 0
}

// Has reports whether a person with an identity, given by its hash, is on the list.
func (l *List) Has(hash string) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	_, ok := l.people[hash]
	return ok
}

// Awaited reports whether people wait for the cell of a line.
func (l *List) Awaited(of *sale.Line) bool {
	var room [2*sale.MaxName + 1]byte
	cell := append(room[:0], of.SKU...)
	if of.Region != "" {
		cell = append(append(cell, '@'), of.Region...)
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	waits := l.lines[string(cell)]
	return waits != nil && len(waits.waiting) > 0
}

// Size is how many people are on the list, and how many of them have an offer.
func (l *List) Size() (people, offered int) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, of := range l.lines {
		offered += of.offered
	}
	return len(l.entries), offered
}

// EntryPlace is where an entry stands.
type EntryPlace struct {
	Entry Entry
	// Place counts from 1; 0: it has an offer. Of is how many wait for the same units.
	Place, Of int
	// People is how many are on the whole list.
	People int
	// About is how long it may take until the entry's turn comes, by the pace of the last minutes; 0: there was no offer.
	About time.Duration
	// Left is how many units are free, offered, held or in doubt; below 0: that is not known.
	Left int64
	// SoldOut: fewer are left than the smallest order has, so that none can come back. An edge says it.
	SoldOut bool
	// Paused: an operator lets no offer be made.
	Paused bool
	// Ended is why the entry is not on the list any more; empty: it is, or that is not known.
	Ended string
}

// PlaceOf returns where a buyer stands, given by its hash. False: this edge knows nothing of it.
func (l *List) PlaceOf(buyer string, now time.Time) (p EntryPlace, ok bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	e := l.entries[l.people[buyer]]
	if e == nil {
		p.Ended, ok = l.ended[buyer], l.ended[buyer] != ""
		return p, ok
	}
	p.Entry, p.People, p.Left, p.Paused = *e, len(l.entries), -1, l.paused
	if l.left.cells != nil {
		p.Left = l.left.cells[e.Cell]
	}
	if of := l.lines[e.Cell]; !e.Offered {
		i, _ := slices.BinarySearchFunc(of.waiting, e, l.before)
		p.Place, p.Of = i+1, len(of.waiting)
		p.About = of.offers.until(p.Place, now)
	}
	return p, true
}

// Next returns the first people who wait for a cell, in the order of their turns, until their units are more than there
// are, or fewer are left than an order may have. skip leaves some out.
func (l *List) Next(cell string, units, least int64, most int, skip func(*Entry) bool) []Entry {
	l.mu.RLock()
	defer l.mu.RUnlock()
	of := l.lines[cell]
	if of == nil {
		return nil
	}
	var out []Entry
	for _, e := range of.waiting {
		if units < least || len(out) == most {
			break
		}
		if skip(e) {
			continue
		}
		next := *e
		next.Quantity = min(next.Quantity, units)
		units -= next.Quantity
		out = append(out, next)
	}
	return out
}

// Cells are those for which people wait.
func (l *List) Cells() []string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	var cells []string
	for cell, of := range l.lines {
		if len(of.waiting) > 0 {
			cells = append(cells, cell)
		}
	}
	slices.SortFunc(cells, strings.Compare)
	return cells
}

// OffersPaused reports whether an operator lets no offer be made.
func (l *List) OffersPaused() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.paused
}

// Entries returns the entries of a cell, in no order; all where it is empty.
func (l *List) Entries(cell string) []Entry {
	l.mu.RLock()
	defer l.mu.RUnlock()
	out := make([]Entry, 0, len(l.entries))
	for _, e := range l.entries {
		if cell == "" || e.Cell == cell {
			out = append(out, *e)
		}
	}
	return out
}

package edge

import (
	"sync/atomic"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/identity"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/waitlist"
)

const (
	// freshFor is how long a view counts after an answered read of the journal. With an
	// older one every attempt asks Redis.
	freshFor = time.Second
	// mostName is the longest name of a stock cell: SKU, @ and region.
	mostName = 2*sale.MaxName + 1
)

// started is where the view's clock begins. It only measures how much time has passed.
var started = time.Now()

func sinceStarted() time.Duration { return time.Since(started) }

// followed is what an edge knows of a sale because it follows the sale's journal
// without a gap: which cells have nothing left, and what keys and refs are bound.
// It belongs to one stretch of following and to the cells of one version of the sale.
// When either ends, another replaces it, and late replies go to the replaced one.
type followed struct {
	now      func() time.Duration
	sale     *sale.Sale
	alone    []int32          // the index in cells of each of the sale's items; -1: it has regions
	regional map[string]int32 // cell of an item with regions → its index in cells
	cells    []cell
	bound    atomic.Pointer[boundFilter] // nil: not loaded yet
	waits    *waitlist.List
	kinds    []string        // of identities, beside the buyer, by which the sale knows a person on its waiting list
	at       atomic.Int64    // when the view was complete, by now
	asks     atomic.Int64    // from when an attempt may check in Redis what is remembered, by now
	seq      atomic.Int64    // of the last entry that is in it
	current  atomic.Int64    // it has what was bound until then, by sinceStarted: a check says so
	epoch    string          // of the shard whose journal is followed
	wake     chan<- struct{} // ends the pause of the reader that follows it
}

// newFollowed begins at a journal's seq: earlier replies do not count.
func newFollowed(l *Listing, now func() time.Duration, epoch string, seq int64, at time.Duration) *followed {
	f := &followed{now: now, sale: l.Sale, kinds: l.Sale.KnownBy(), epoch: epoch, alone: make([]int32, len(l.Sale.Items)), regional: make(map[string]int32)}
	n := int32(0)
	for i := range l.Sale.Items {
		item := &l.Sale.Items[i]
		if len(item.Regions) == 0 && !item.IsBundle() {
			f.alone[i] = n
			n++
			continue
		}
		f.alone[i] = -1
		for _, name := range item.Cells() {
			f.regional[name] = n
			n++
		}
	}
	f.cells = make([]cell, n)
	for i := range f.cells {
		f.cells[i].credit.Store(seq)
	}
	f.at.Store(int64(at))
	f.seq.Store(seq)
	return f
}

// hurry wakes the reader. Its next read may be older than what the caller needs, so
// callers call hurry again after each of its steps.
func (f *followed) hurry() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// fresh reports whether the view was complete less than freshFor ago.
func (f *followed) fresh(now time.Duration) bool { return now-time.Duration(f.at.Load()) < freshFor }

// named finds a cell by its name; nil: the sale has none of this name.
func (f *followed) named(name string) *cell {
	if i, ok := f.regional[name]; ok {
		return &f.cells[i]
	}
	return f.cellOfItem(name)
}

// cellOfItem finds the cell of an item without regions. It uses the same index that found
// the sale: with many items that part is still in the processor's cache.
func (f *followed) cellOfItem(sku string) *cell {
	if i, ok := f.sale.Place(sku); ok && f.alone[i] >= 0 {
		return &f.cells[f.alone[i]]
	}
	return nil
}

// cellOf finds the cell of a line. It allocates nothing.
func (f *followed) cellOf(line *sale.Line) *cell {
	if line.Region == "" {
		return f.cellOfItem(line.SKU)
	}
	var buf [mostName]byte
	name := append(append(append(buf[:0], line.SKU...), '@'), line.Region...)
	if i, ok := f.regional[string(name)]; ok {
		return &f.cells[i]
	}
	return nil
}

// Recheck is one attempt's exclusive right to ask Redis about cells that the edge remembers
// as empty, while other attempts are refused from memory. Its holder must call End.
type Recheck struct{ memories []*memory }

// End lets another attempt ask, in case this one got no answer about the stock. It may be
// called on nil, and more than once.
func (p *Recheck) End() {
	if p == nil {
		return
	}
	for _, m := range p.memories {
		m.asking.Store(0)
	}
	p.memories = nil // another attempt may have taken them since
}

// Remembered returns the refusal of an attempt whose units are known to be gone, without
// asking Redis: a reply has said so, and the journal shows no units that came back since.
// lines must be as the sale resolved them. If the refusal is nil, ask Redis. With a Recheck,
// this attempt is the one that checks the memory in Redis, and must end the Recheck when it
// has. The refusal is shared, and costs no allocation. It is not_your_turn where others wait for the units; a
// person who waits asks Redis, and may have an offer.
func (e *Edge) Remembered(l *Listing, a *sale.Attempt, lines []sale.Line) (*sale.Refusal, *Recheck) {
	f := l.view()
	if f == nil {
		return nil, nil
	}
	turn, listed := e.turn(f, a, lines)
	if listed {
		return nil, nil
	}
	no, due := f.recall(lines)
	if turn != nil {
		return firstOf(no, turn), nil
	}
	var ask *Recheck
	if due {
		ask, no = f.takeRecheck(lines)
	}
	if no != nil {
		(*e.metrics.Load()).NothingLeft(true)
	}
	return no, ask
}

// IsCrowded reports whether so many attempts of a sale wait for Redis that another one had better
// wait for room first: what they get may leave nothing for it.
func (e *Edge) IsCrowded(l *Listing) bool { return e.Store.Calls.IsCrowded(l.Sale.ID) }

// AwaitRoom waits until a sale is not crowded any more. False: it was for as long as the timeout.
func (e *Edge) AwaitRoom(l *Listing) bool {
	return e.Store.Calls.AwaitRoom(l.Sale.ID, e.shard.Timeout())
}

// Recall is Remembered for callers that will not ask Redis: it takes no Ask. Nil: it is
// not known that units are missing.
func (e *Edge) Recall(l *Listing, a *sale.Attempt, lines []sale.Line) *sale.Refusal {
	f := l.view()
	if f == nil {
		return nil
	}
	turn, listed := e.turn(f, a, lines)
	if listed {
		return nil
	}
	no, _ := f.recall(lines)
	return firstOf(no, turn)
}

// recall returns the refusal that Redis would give: sold_out for the first line that is
// sold out, else all_held. due: there is none, but one attempt should check a memory.
func (f *followed) recall(lines []sale.Line) (no *sale.Refusal, due bool) {
	now := f.now()
	if !f.fresh(now) {
		return nil, false
	}
	mayAsk := now >= time.Duration(f.asks.Load())
	for i := range lines {
		m, refusal := f.remembers(&lines[i])
		switch {
		case refusal == nil:
		case mayAsk && m.due(now):
			due = true
		case refusal.Reason == sale.SoldOut:
			return refusal, false
		case no == nil:
			no = refusal
		}
	}
	return no, due && no == nil
}

// remembers returns the memory of a line's cell, and the refusal that follows from it.
func (f *followed) remembers(line *sale.Line) (*memory, *sale.Refusal) {
	c := f.cellOf(line)
	if c == nil {
		return nil, nil
	}
	m := c.memory.Load()
	if m == nil {
		return nil, nil
	}
	return m, m.refusal(line.Quantity)
}

// takeRecheck acquires the right to check the memories of an attempt's lines, or returns the
// refusal if another attempt has acquired it meanwhile.
func (f *followed) takeRecheck(lines []sale.Line) (*Recheck, *sale.Refusal) {
	now := f.now()
	if next := f.asks.Load(); int64(now) < next || !f.asks.CompareAndSwap(next, int64(now+askEvery)) {
		no, _ := f.recall(lines)
		return nil, no
	}
	p := new(Recheck)
	for i := range lines {
		m, refusal := f.remembers(&lines[i])
		switch {
		case refusal == nil:
		case m.ask(now):
			p.memories = append(p.memories, m)
		default:
			p.End()
			return nil, refusal
		}
	}
	return p, nil
}

// viewOf returns what the edge knows from a sale's journal now; nil: nothing is certain.
func (e *Edge) viewOf(saleID string) *followed {
	l, ok := e.Catalogue().Sale(saleID)
	if !ok {
		return nil
	}
	return l.view()
}

// binds notes what a hold of this edge has bound, before the journal has it: a buyer who
// repeats an attempt at once reaches the same edge. The view may be newer than the reserve
// request.
func (e *Edge) binds(c *reservation.ReserveRequest) {
	if f := e.viewOf(c.Sale); f != nil {
		record.Bindings(c.Binding.Field, c.Ref, f.bound.Load().add)
	}
}

// MayRepeat reports whether an attempt may repeat one that has reserved under its
// idempotency key or its ref, as far as this edge has read the journal. False is not
// enough to refuse the attempt: see SurelyNew.
func (e *Edge) MayRepeat(l *Listing, a *sale.Attempt) bool { return e.mayRepeat(l.view(), a) }

// attemptBindings are the binding fields of an attempt's idempotency key, if it has one, and of
// its ref; empty: it has none.
type attemptBindings struct {
	ref   string
	keyed bool
	key   [identity.KeyLength]byte
}

// bindingsOf returns the binding fields of an attempt; false: the edge does not know the
// secret that hashes keys.
func (e *Edge) bindingsOf(a *sale.Attempt) (b attemptBindings, known bool) {
	if a.Ref != "" {
		b.ref = record.FirstNameField + a.Ref
	}
	if a.Key == "" {
		return b, true
	}
	secret := e.secret.Load()
	if secret == nil {
		return b, false
	}
	secret.AppendKey(b.key[:0], a.Buyer, a.Key)
	b.keyed = true
	return b, true
}

func (e *Edge) mayRepeat(f *followed, a *sale.Attempt) bool {
	if f == nil || !f.fresh(f.now()) {
		return true
	}
	b, known := e.bindingsOf(a)
	return !known || !f.bound.Load().excludes(&b)
}

// mayBind reports whether a binding field (an idempotency key, a ref) may be bound in the sale.
// False is certain up to what this edge has read of the journal; a nil view knows nothing.
func (f *followed) mayBind(field string) bool {
	if f == nil || !f.fresh(f.now()) {
		return true
	}
	bound := f.bound.Load()
	return bound == nil || bound.maybe(field)
}

package edge

import (
	"sync/atomic"
	"time"

	"github.com/stockgate/stockgate/record"
	"github.com/stockgate/stockgate/reservation"
	"github.com/stockgate/stockgate/sale"
)

const (
	// freshFor is how long after an answered read of the journal the view counts: an
	// older one says nothing, and everything is asked in Redis.
	freshFor = time.Second
	// mostName is the longest name of a stock cell: SKU, @ and region.
	mostName = 2*sale.MaxName + 1
)

// started is where the view's clock begins. It only measures how much time has passed.
var started = time.Now()

func sinceStarted() time.Duration { return time.Since(started) }

// followed is what an edge knows of a sale because it follows the sale's journal
// without a gap: which cells have nothing left, and what keys and refs are bound.
// It belongs to one stretch of following and to the cells of one version of the sale:
// when either ends another takes its place, and what comes late is told to the one
// that is over.
type followed struct {
	now      func() time.Duration
	sale     *sale.Sale
	alone    []int32          // the place in cells of each of the sale's items; -1: it has regions
	regional map[string]int32 // cell of an item with regions → its place in cells
	cells    []cell
	bound    atomic.Pointer[boundFilter] // nil: not loaded yet
	at       atomic.Int64                // when the view was complete, by now
	asks     atomic.Int64                // from when on an attempt may ask whether what is remembered is still so, by now
	seq      atomic.Int64                // of the last entry that is in it
	epoch    string                      // of the shard whose journal is followed
	wake     chan<- struct{}             // ends the pause of the reader that follows it
}

// newFollowed begins at a journal's seq: what a reply of before says does not count.
func newFollowed(l *Listing, now func() time.Duration, epoch string, seq int64, at time.Duration) *followed {
	f := &followed{now: now, sale: l.Sale, epoch: epoch, alone: make([]int32, len(l.Sale.Items)), regional: make(map[string]int32)}
	n := int32(0)
	for i := range l.Sale.Items {
		item := &l.Sale.Items[i]
		if len(item.Regions) == 0 {
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

// hurry lets the reader read now. What it reads now may be older than what is wanted, so
// that callers ask again after each of its steps.
func (f *followed) hurry() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// fresh says that the view was complete less than a second ago.
func (f *followed) fresh(now time.Duration) bool { return now-time.Duration(f.at.Load()) < freshFor }

// named finds a cell by its name; nil: the sale has none of this name.
func (f *followed) named(name string) *cell {
	if i, ok := f.regional[name]; ok {
		return &f.cells[i]
	}
	return f.cellOfItem(name)
}

// cellOfItem finds the cell of an item without regions. It asks what has just been asked
// to find the sale: of many items few are at hand for the processor.
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

// Ask is the permission to ask Redis about cells of which the edge remembers that
// nothing is left, while others are refused from memory. It must be ended.
type Ask struct{ memories []*memory }

// End lets another attempt ask, if this one has not brought an answer about the
// stock. It may be called on nil, and again.
func (p *Ask) End() {
	if p == nil {
		return
	}
	for _, m := range p.memories {
		m.asking.Store(0)
	}
	p.memories = nil // another attempt may have taken them since
}

// Remembered refuses an attempt whose units are known not to be there, without
// asking Redis: a reply has said so, and the journal shows nothing that came back
// since. lines must be as the sale resolved them. Nil: ask Redis. With an Ask the
// attempt is the one that asks whether it is still so: it must end it when it has.
// The refusal is shared, and costs no allocation.
func (e *Edge) Remembered(l *Listing, lines []sale.Line) (*sale.Refusal, *Ask) {
	f := l.view()
	if f == nil {
		return nil, nil
	}
	no, due := f.recall(lines)
	var ask *Ask
	if due {
		ask, no = f.takeAsk(lines)
	}
	if no != nil {
		(*e.metrics.Load()).NothingLeft(true)
	}
	return no, ask
}

// Recall is Remembered for who will not ask Redis: it takes no Ask. Nil: nobody
// knows.
func (e *Edge) Recall(l *Listing, lines []sale.Line) *sale.Refusal {
	f := l.view()
	if f == nil {
		return nil
	}
	no, _ := f.recall(lines)
	return no
}

// recall gives the refusal that Redis would give: sold_out of the first line that is,
// else all_held. due: there is none, but a memory that one attempt should check.
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

// remembers is what there is about a line.
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

// takeAsk takes what an attempt needs to check the memories of its lines, or gives the
// refusal where another attempt has begun to ask meanwhile.
func (f *followed) takeAsk(lines []sale.Line) (*Ask, *sale.Refusal) {
	now := f.now()
	if next := f.asks.Load(); int64(now) < next || !f.asks.CompareAndSwap(next, int64(now+askEvery)) {
		no, _ := f.recall(lines)
		return nil, no
	}
	p := new(Ask)
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

// viewOf is what is followed of a sale at this moment; nil: nothing.
func (e *Edge) viewOf(saleID string) *followed {
	l, ok := e.Catalogue().Sale(saleID)
	if !ok {
		return nil
	}
	return l.view()
}

// binds notes what a hold of this edge has bound, before the journal tells it: buyers who repeat
// an attempt at once come to the same edge. The view may have begun after the claim.
func (e *Edge) binds(c *reservation.BindingPriority) {
	if f := e.viewOf(c.Sale); f != nil {
		record.Bindings(c.Binding.Field, c.Ref, f.bound.Load().add)
	}
}

// MayRepeat says whether an attempt may repeat one that has reserved under its
// idempotency key or its ref, as far as this edge has read. False is no reason to refuse
// the attempt: see SurelyNew.
func (e *Edge) MayRepeat(l *Listing, a *sale.Attempt) bool { return e.mayRepeat(l.view(), a) }

// SurelyNew says that when it was called nothing in Redis was bound to the attempt's
// idempotency key or ref: the attempt may be refused from memory. False: ask Redis. It
// waits until this edge has read what others have bound, for the timeout at most. The error
// says that it could not read it in time.
func (e *Edge) SurelyNew(l *Listing, a *sale.Attempt) (bool, error) {
	if f := l.view(); f == nil || !f.fresh(f.now()) || f.bound.Load() == nil {
		return false, nil
	}
	f, err := e.checks.current(l.Sale.ID)
	return err == nil && !e.mayRepeat(f, a), err
}

func (e *Edge) mayRepeat(f *followed, a *sale.Attempt) bool {
	if a.Ref != "" && f.mayBind(record.FirstNameField+a.Ref) {
		return true
	}
	if a.Key == "" {
		return false
	}
	secret := e.secret.Load()
	return secret == nil || f.mayBind(secret.Key(a.Buyer, a.Key))
}

// MayBeBound says whether a binding field (an idempotency key, a ref) may be bound in the
// sale, as far as this edge has read: false is certain but for what it has not read yet.
func (e *Edge) MayBeBound(saleID, field string) bool { return e.viewOf(saleID).mayBind(field) }

// mayBind is MayBeBound by one view; nil: it knows nothing.
func (f *followed) mayBind(field string) bool {
	if f == nil || !f.fresh(f.now()) {
		return true
	}
	bound := f.bound.Load()
	return bound == nil || bound.maybe(field)
}

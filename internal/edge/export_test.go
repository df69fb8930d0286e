package edge

import (
	"context"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
)

// ReadFor is how long a read of the journals waits.
const ReadFor = readFor

// SetViewClock must come before Start.
func (e *Edge) SetViewClock(now func() time.Duration) { e.viewNow = now }

// Told is a refusal that came with seq.
func (e *Edge) Told(l *Listing, line *sale.Line, seq, left int64, no *sale.Refusal) {
	all := left
	if no.Reason == sale.AllHeld {
		all += line.Quantity
	}
	l.view().Refused(line, seq, left, all)
}

// Got is a hold that came with seq.
func (e *Edge) Got(l *Listing, lines []sale.Line, seq int64) { l.view().Got(lines, seq) }

// Follow only follows journals, until ctx ends.
func (e *Edge) Follow(ctx context.Context) { e.follow(ctx) }

// KeyField is the binding field of a buyer's idempotency key.
func (e *Edge) KeyField(buyer, key string) string { return e.secret.Load().Key(buyer, key) }

// BoundRoom is for how many bindings the edge's filter was made; 0: there is none.
func (e *Edge) BoundRoom(sale string) int64 {
	l, ok := e.Catalogue().Sale(sale)
	if !ok {
		return 0
	}
	if f := l.view(); f != nil && f.bound.Load() != nil {
		return f.bound.Load().room()
	}
	return 0
}

// Followed is up to which entry of its journal the edge knows a sale; false: it knows
// nothing for sure.
func (e *Edge) Followed(sale string) (seq int64, ok bool) {
	l, ok := e.Catalogue().Sale(sale)
	if !ok {
		return 0, false
	}
	f := l.view()
	if f == nil || !f.fresh(f.now()) {
		return 0, false
	}
	return f.seq.Load(), true
}

// BindingsLoaded reports whether the edge knows which keys and refs are bound.
func (e *Edge) BindingsLoaded(sale string) bool {
	l, ok := e.Catalogue().Sale(sale)
	if !ok {
		return false
	}
	f := l.view()
	return f != nil && f.bound.Load() != nil
}

// NewCatalogue makes the view of these sales.
var NewCatalogue = newCatalogue

// SoldLines returns what was sold as lines of a sale, and the names that it does not list.
var SoldLines = soldLines

// WaitingForCheck is how many attempts wait for the next check of a sale.
func (e *Edge) WaitingForCheck(sale string) int {
	c := e.checks
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.sales[sale]; s != nil && s.next != nil {
		return s.next.waiting
	}
	return 0
}

// Checking says that a check of a sale is under way, and nothing waits for the next one.
func (e *Edge) Checking(sale string) bool {
	c := e.checks
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sales[sale]
	return s != nil && s.next == nil
}

// Filter is the filter of bound keys and refs of one sale.
type Filter struct{ f *boundFilter }

// NewFilter makes a filter of a sale that has bound nothing.
func NewFilter() Filter { return Filter{newBoundFilter(0)} }

// Add adds a name, and lets the filter grow as an edge does.
func (f Filter) Add(name string) {
	f.f.add(name)
	if f.f.full() {
		f.f.grow()
	}
}

// Maybe reports whether the filter takes a name for one that was added.
func (f Filter) Maybe(name string) bool { return f.f.maybe(name) }

// Count lets the filter grow as if each of its stages had so many names.
func (f Filter) Count(names int64) {
	for {
		stages := *f.f.stages.Load()
		stages[len(stages)-1].added.Store(names)
		if !f.f.full() {
			return
		}
		f.f.grow()
	}
}

// Size returns for how many names the filter has room, and how many bytes it takes.
func (f Filter) Size() (room, bytes int64) {
	for _, s := range *f.f.stages.Load() {
		for i := range s.parts {
			bytes += int64(s.parts[i].bloom.Cap() / 8)
		}
	}
	return f.f.room(), bytes
}

// OwnHolds is of how many of so many holds an edge knows the lines.
func OwnHolds(ids func(i int) string, made int) int {
	var o ownHolds
	for i := range made {
		o.add(ids(i), nil)
	}
	return len(o.lines)
}

// BacklogSize and BacklogOfSale bound what waits for Redis.
const (
	BacklogSize   = backlogSize
	BacklogOfSale = backlogOfSale
)

// SetMetrics replaces the metrics; nil: nothing is counted.
func (e *Edge) SetMetrics(m Metrics) { e.setMetrics(m) }

// Abandon releases a reservation that was never forwarded.
func (e *Edge) Abandon(sale, id string) { e.abandon(sale, id, false) }

// MayBeBound reports whether a binding field may be bound in a sale, as far as the edge knows.
func (e *Edge) MayBeBound(sale, field string) bool { return e.viewOf(sale).mayBind(field) }

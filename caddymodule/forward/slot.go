package forward

import (
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/filters"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/internal/sale"
)

// Slots are the in-flight slots and single-flight keys of one gate.
type Slots struct {
	// single admits one attempt per buyer before Redis is asked, and one of several
	// identical attempts until it ends
	single   filters.Single
	inFlight *filters.Slots
	readers  *readers
}

// Open makes slots for attempts, and bounds the clients that read the answers of atShop orders.
func (ps *Slots) Open(slots, atShop int, log *zap.Logger) {
	ps.inFlight, ps.readers = filters.NewSlots(slots), newReaders(atShop, log)
}

// IsFull reports whether all slots are taken.
func (ps *Slots) IsFull() bool { return ps.inFlight.Full() }

// Enter admits one attempt per key at a time, and reports whether this one is admitted.
func (ps *Slots) Enter(key string) bool { return ps.single.Enter(key) }

// Leave undoes Enter.
func (ps *Slots) Leave(key string) { ps.single.Leave(key) }

// IsUnderWay reports whether an attempt with that key is admitted.
func (ps *Slots) IsUnderWay(key string) bool { return ps.single.Entered(key) }

// InFlightSlot is what an attempt holds until its outcome is known: the single-flight key
// of its buyer and lines, one slot of max_in_flight, and the edge runtime. It is released
// before the answer is written: a client that does not read the answer must not block other
// attempts.
type InFlightSlot struct {
	of      *Slots
	runtime *edgeruntime.Runtime
	Key     string // single-flight key
	held    bool
}

// Take takes a slot for an attempt with that single-flight key, or returns the refusal.
func (pl *InFlightSlot) Take(of *Slots, d *edgeruntime.Runtime, key string) *sale.Refusal {
	pl.of, pl.runtime, pl.Key = of, d, key
	switch {
	case !of.single.Enter(pl.Key):
		return refuse.Duplicate
	case of.readers.full() || !of.inFlight.Take():
		of.single.Leave(pl.Key)
		return refuse.Busy
	case !d.Begin():
		of.inFlight.Give()
		of.single.Leave(pl.Key)
		return refuse.Unavailable
	}
	pl.held = true
	return nil
}

// GiveBack releases the slot, once.
func (pl *InFlightSlot) GiveBack() {
	if !pl.held {
		return
	}
	pl.held = false
	pl.of.single.Leave(pl.Key)
	pl.of.inFlight.Give()
	pl.runtime.End()
}

package forward

import (
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/filters"
	"github.com/stockgate/stockgate/refuse"
	"github.com/stockgate/stockgate/sale"
)

// Places are what the attempts of one gate take until their outcome is known.
type Places struct {
	// single keeps one attempt per buyer before Redis, and one identical attempt
	// until its end
	single   filters.Single
	inFlight *filters.Slots
	readers  *readers
}

// Open makes room for so many attempts.
func (ps *Places) Open(maxInFlight int, log *zap.Logger) {
	ps.inFlight, ps.readers = filters.NewSlots(maxInFlight), newReaders(maxInFlight, log)
}

// IsFull says that all slots are taken.
func (ps *Places) IsFull() bool { return ps.inFlight.Full() }

// Enter lets one attempt with that key in at a time, and says whether it is in.
func (ps *Places) Enter(key string) bool { return ps.single.Enter(key) }

// Leave undoes enter.
func (ps *Places) Leave(key string) { ps.single.Leave(key) }

// IsUnderWay says that an attempt with that key is in.
func (ps *Places) IsUnderWay(key string) bool { return ps.single.Entered(key) }

// Place is what an attempt takes until its outcome is known: the single-flight key of its
// buyer and lines, one slot of max_in_flight, and the desk. It is given back before the
// answer is written: a client that does not read it must not keep others out.
type InFlightSlot struct {
	of      *Places
	runtime *edgeruntime.Runtime
	Key     string // single-flight key
	held    bool
}

// Take takes a place for an attempt with that single-flight key, or says why there is none.
func (pl *InFlightSlot) Take(of *Places, d *edgeruntime.Runtime, key string) *sale.Refusal {
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

// GiveBack gives the place back, once.
func (pl *InFlightSlot) GiveBack() {
	if !pl.held {
		return
	}
	pl.held = false
	pl.of.single.Leave(pl.Key)
	pl.of.inFlight.Give()
	pl.runtime.End()
}

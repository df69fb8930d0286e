package caddymodule

import (
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/filters"
	"github.com/stockgate/stockgate/sale"
)

// places are what the attempts of one gate take until their outcome is known.
type places struct {
	// single keeps one attempt per buyer before Redis, and one identical attempt
	// until its end
	single   filters.Single
	inFlight *filters.Slots
	readers  *readers
}

// open makes room for so many attempts.
func (ps *places) open(maxInFlight int, log *zap.Logger) {
	ps.inFlight, ps.readers = filters.NewSlots(maxInFlight), newReaders(maxInFlight, log)
}

// isFull says that all slots are taken.
func (ps *places) isFull() bool { return ps.inFlight.Full() }

// enter lets one attempt with that key in at a time, and says whether it is in.
func (ps *places) enter(key string) bool { return ps.single.Enter(key) }

// leave undoes enter.
func (ps *places) leave(key string) { ps.single.Leave(key) }

// isUnderWay says that an attempt with that key is in.
func (ps *places) isUnderWay(key string) bool { return ps.single.Entered(key) }

// place is what an attempt takes until its outcome is known: the single-flight key of its
// buyer and lines, one slot of max_in_flight, and the desk. It is given back before the
// answer is written: a client that does not read it must not keep others out.
type place struct {
	of   *places
	desk *desk
	key  string // single-flight key
	held bool
}

// take takes a place for an attempt with that single-flight key, or says why there is none.
func (pl *place) take(of *places, d *desk, key string) *sale.Refusal {
	pl.of, pl.desk, pl.key = of, d, key
	switch {
	case !of.single.Enter(pl.key):
		return refuseDuplicate
	case of.readers.full() || !of.inFlight.Take():
		of.single.Leave(pl.key)
		return refuseBusy
	case !d.begin():
		of.inFlight.Give()
		of.single.Leave(pl.key)
		return refuseUnavailable
	}
	pl.held = true
	return nil
}

// giveBack gives the place back, once.
func (pl *place) giveBack() {
	if !pl.held {
		return
	}
	pl.held = false
	pl.of.single.Leave(pl.key)
	pl.of.inFlight.Give()
	pl.desk.end()
}

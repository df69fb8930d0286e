package caddymodule

import "github.com/stockgate/stockgate/sale"

// place is what an attempt takes until its outcome is known: the single-flight key of its
// buyer and lines, one slot of max_in_flight, and the desk. It is given back before the
// answer is written: a client that does not read it must not keep others out.
type place struct {
	gate *Gate
	desk *desk
	key  string // single-flight key
	held bool
}

// take takes a place, or says why there is none.
func (pl *place) take(g *Gate, p *purchase) *sale.Refusal {
	pl.gate, pl.desk, pl.key = g, p.desk, singleKey(p)
	switch {
	case !g.single.Enter(pl.key):
		return refuseDuplicate
	case g.readers.full() || !g.inFlight.Take():
		g.single.Leave(pl.key)
		return refuseBusy
	case !p.desk.flights.begin():
		g.inFlight.Give()
		g.single.Leave(pl.key)
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
	pl.gate.single.Leave(pl.key)
	pl.gate.inFlight.Give()
	pl.desk.flights.end()
}

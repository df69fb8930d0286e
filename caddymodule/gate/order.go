package gate

import (
	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/store/queue"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// order is an attempt at a gate, and what the gate knows of it beside its judge.
type order struct {
	judge.Case
	gate *Gate
	earlier
	// waiter is told the turn of the order; nil: it does not wait.
	waiter *queue.Waiter
	// try is with which turn the order was sent; 0: at once.
	try int64
}

// earlier is what earlier orders of an attempt have left.
type earlier struct {
	// unbound is a sale in which Redis has no reservation for the attempt; nil: none.
	unbound *edge.Listing
	// bound is the reservation that the attempt already has; nil: none. stored is what the
	// shop answered to it; nil: the shop is asked again.
	bound  *reservation.AlreadyBound
	stored *reservation.StoredAnswer
	// ticket names the attempt's order, which waits for the shop or is there; empty: the client
	// is to hear the answer itself. place is where that order is.
	ticket string
	place  queue.Place
}

// begin begins an attempt.
func (g *Gate) begin(v judge.Visit) *order {
	p := &order{gate: g, Case: judge.Case{Visit: v}}
	p.Earlier = p
	return p
}

// Begin begins an attempt for others than the gate.
func (g *Gate) Begin(v judge.Visit) *judge.Case { return &g.begin(v).Case }

// Forget discards what was found, because the attempt is read again.
func (p *order) Forget() { p.earlier = earlier{} }

// Found is the reservation that the attempt already has; empty: none. answered: the shop's answer to it is kept.
func (p *order) Found() (reservation string, answered bool) {
	if p.bound == nil {
		return "", false
	}
	return p.bound.ID, p.stored != nil
}

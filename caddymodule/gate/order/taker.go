// Package order makes orders of the attempts that the rules let pass: it reserves their stock, and sends them or lets
// them wait. An attempt that repeats an earlier one gets what that one got.
package order

import (
	"net/http"

	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/caddymodule/gate/line"
	"github.com/stockgate/stockgate/filters"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// Taker takes the orders of one gate.
type Taker struct {
	line.Usher
	asking *filters.Slots // bounds the attempts that ask Redis about earlier orders
}

// Open prepares the taker. The judge and its terms are open.
func (t *Taker) Open() {
	t.Usher.Open()
	t.asking = filters.NewSlots(t.MaxInFlight)
}

// Deal is an attempt at a gate, and what the gate knows of it beside its judge.
type Deal struct {
	line.Queued
	taker *Taker
	earlier
}

// earlier is what earlier orders of an attempt have left.
type earlier struct {
	// unbound is a sale in which Redis has no reservation for the attempt; nil: none.
	unbound *edge.Listing
	// bound is the reservation that the attempt already has; nil: none. stored is what the
	// shop answered to it; nil: the shop is asked again.
	bound  *reservation.AlreadyBound
	stored *reservation.StoredAnswer
}

// Begin begins an attempt.
func (t *Taker) Begin(v judge.Visit) *Deal {
	p := &Deal{taker: t, Queued: line.Queued{Case: judge.Case{Visit: v}}}
	p.Earlier = p
	return p
}

// Forget discards what was found, because the attempt is read again.
func (p *Deal) Forget() {
	p.earlier = earlier{}
	p.Queued.Forget()
}

// Found is the reservation that the attempt already has; empty: none. answered: the shop's answer to it is kept.
func (p *Deal) Found() (reservation string, answered bool) {
	if p.bound == nil {
		return "", false
	}
	return p.bound.ID, p.stored != nil
}

// HasAnswer reports whether the client is told the place of its order, or what the shop answered to an earlier one.
func (p *Deal) HasAnswer() bool { return p.Ticket != "" || p.stored != nil }

// Answer tells the client the place of its order, or answers as the shop answered an earlier one.
func (t *Taker) Answer(w http.ResponseWriter, r *http.Request, p *Deal) error {
	if p.Ticket != "" {
		return t.Accept(w, r, &p.Queued)
	}
	return t.replay(w, r, p)
}

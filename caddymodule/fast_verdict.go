package caddymodule

import (
	"net/http"
	"time"

	"github.com/stockgate/stockgate/sale"
)

// foresight is one attempt of which a gate says from memory what becomes of it. It is used
// again for the next one.
type foresight struct {
	attempt  sale.Attempt
	purchase purchase
	over     sale.Refusal
	asked    askedChallenge
	waiter   waiter
	now      time.Time // of the answer
}

// waiter is told when an answer takes time: until the edge has read what others have bound.
type waiter interface {
	BeforeWait()
	// AfterWait returns the time.
	AfterWait() time.Time
}

// reset leaves nothing of one attempt for the next. The attempt's room is used again by who
// reads the next one.
func (s *foresight) reset() {
	s.purchase = purchase{}
	if s.asked.reached {
		s.asked = askedChallenge{}
	}
}

// saleID is the id of the sale that the attempt is about, empty if none was found.
func (s *foresight) saleID() string { return s.purchase.saleID() }

// Foresee says with which refusal the gate would answer a request, as far as memory goes.
// An attempt that is refused has been counted as the gate counts it.
func (g *Gate) Foresee(r *http.Request, body []byte, s *foresight, now time.Time) foreseen {
	s.now = now
	f := g.foresee(r, body, s, now)
	if f.no == nil {
		return f
	}
	if no := g.settleChallenge(s, s.now, f.no); no != nil {
		return foreseen{no: no}
	}
	return f
}

// foreseen is the refusal with which a gate would answer.
type foreseen struct {
	no *sale.Refusal // nil: nobody knows without the gate
	// over is the rate that refuses, wait what it says; nil: none does.
	over *rateHeader
	wait time.Duration
}

// foresee says whether the gate would refuse a request, by its own rules in their
// order, as far as memory goes. An attempt that is refused has been counted by the
// rates; one that goes on to the gate is counted there. The headers that a gate removes
// are gone.
//
// `unavailable` is never foreseen, because the gate may get to know what cannot be asked
// here. But it is the answer where the edge could not read in time what others have bound:
// the gate would wait for the same.
func (g *Gate) foresee(r *http.Request, body []byte, s *foresight, now time.Time) (f foreseen) {
	if f.no = g.reader.Check(r); f.no != nil {
		return f
	}
	if g.MaxBody > 0 && int64(len(body)) > g.MaxBody {
		return f
	}
	p := &s.purchase
	p.attempt, p.body = &s.attempt, body
	no := g.reader.Borrow(p.attempt, r, body, g.env(r, nil, false))
	if no == nil {
		no = g.persons.denied(r, p.attempt, g.log)
	}
	if no != nil {
		if no.Reason != sale.Unavailable {
			f.no = no
		}
		return f
	}
	over, wait := g.rates.foreseeLocal(p.attempt, now)
	if over == nil {
		if f.no = g.foreseeLater(r, s, now); f.no == nil {
			return f
		}
		over, wait = g.rates.countLocal(p.attempt, now)
	}
	if over != nil {
		f.over, f.wait = &over.header, wait
		p.listing = nil // it has not come to its sale
		s.over = sale.Refusal{Reason: sale.RateLimited, RetryAfter: waitSeconds(f.wait)}
		f.no = &s.over
	}
	return f
}

// foreseeLater says what becomes of an attempt that the rates of this edge let pass. nil:
// it goes on, or only the gate knows.
func (g *Gate) foreseeLater(r *http.Request, s *foresight, now time.Time) *sale.Refusal {
	p := &s.purchase
	if no := g.foreseeChallenge(r, s, now); no != nil {
		return no
	}
	if p.named() && !g.foreseeDesk(r, p, now) {
		return nil
	}
	no := g.foreseeSale(r, p, now)
	if no == nil || !p.named() {
		return no
	}
	switch isNew, err := g.foreseeNew(s); {
	case err != nil:
		return refuseUnavailable
	case !isNew:
		return nil
	}
	return no
}

// foreseeNew says that the attempt surely repeats none that has reserved, so that it may
// be refused. It waits until the edge has read what others have bound; an error says that
// it could not be read in time. False: the gate has to ask Redis.
func (g *Gate) foreseeNew(s *foresight) (isNew bool, err error) {
	p := &s.purchase
	s.waiter.BeforeWait()
	defer func() { s.now = s.waiter.AfterWait() }()
	for _, l := range candidates(p.desk.Catalogue(), p.attempt) {
		if isNew, err = p.desk.SurelyNew(l, p.attempt); err != nil || !isNew {
			return false, err
		}
	}
	return true, nil
}

// foreseeDesk finds the desk, if it may surely sell now.
func (g *Gate) foreseeDesk(r *http.Request, p *purchase, now time.Time) bool {
	p.desk = g.app.currentDesk()
	return p.desk != nil && p.desk.ReadyAt(now) == nil && (!p.desk.isLocal() || fromThisMachine(r))
}

// foreseeSale says what becomes of an attempt that all rates let pass. nil: it goes
// on, or nobody knows.
func (g *Gate) foreseeSale(r *http.Request, p *purchase, now time.Time) *sale.Refusal {
	if g.rates.shared > 0 || g.isOther(p.attempt) || !g.foreseeDesk(r, p, now) {
		return nil
	}
	no := g.judge(r, p, now)
	if no == nil {
		no = p.desk.Recall(p.listing, p.lines)
	}
	if no == nil && !g.Check && g.places.isFull() {
		if no = refuseBusy; g.places.isUnderWay(singleKey(p)) {
			no = refuseDuplicate
		}
	}
	if no != nil && no.Reason == sale.Unavailable {
		return nil
	}
	return no
}

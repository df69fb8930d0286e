package judge

import (
	"errors"
	"net/http"
	"time"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/gate/option/pow"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
)

// Foresight is one attempt whose verdict a gate predicts from memory. It is reused for the
// next attempt.
type Foresight struct {
	purchase Case
	asked    pow.Asked
	Waiter   Patience
	// Arrival is that of the attempt. With a Waiting, Foresee does not wait: the attempt is to be
	// foreseen again with the Arrival and Why that it has then.
	Arrival Arrival
	Why     *sale.Refusal
	// Room is what Crowd.AwaitRoom has said, if the attempt has waited for it.
	Room  Room
	now   time.Time // of the answer
	crowd *Crowd
	// over is the rate that refuses, wait its waiting time, and rated the refusal; nil: none refuses.
	over  *refuse.RateAnswers
	wait  time.Duration
	rated sale.Refusal
}

// Arrival and Waiting are those of the edge.
type (
	Arrival = edge.Arrival
	Waiting = edge.Waiting
)

// Crowd is what an attempt had better wait for: so many others of its sale wait for Redis.
type Crowd struct {
	runtime *edgeruntime.Runtime
	listing *edge.Listing
}

// Room reports whether there is room for an attempt that has waited for it.
type Room uint8

const (
	NotAwaited Room = iota
	HasRoom
	HasNoRoom // for as long as the timeout of Redis
)

// AwaitRoom waits until fewer attempts wait for Redis, in the order in which callers came. What
// those have got may leave nothing for the attempt: it is to be foreseen again.
func (c *Crowd) AwaitRoom() Room {
	if c.runtime.AwaitRoom(c.listing) {
		return HasRoom
	}
	return HasNoRoom
}

// Patience is called when an answer takes time: until the edge has read what other edges have
// bound.
type Patience interface {
	// BeforeWait is called before Foresee waits.
	BeforeWait()
	// AfterWait is called with the time when the wait was over.
	AfterWait(time.Time)
}

// Reset clears the attempt. Its memory is reused for the next attempt.
func (s *Foresight) Reset() {
	p := &s.purchase
	p.Visit, p.Requested, p.Judged = Visit{}, Requested{}, Judged{}
	p.Attempt = nil // its memory is that of room
	s.Arrival, s.Why, s.Room = Arrival{}, nil, NotAwaited
	if s.asked.Reached {
		s.asked = pow.Asked{}
	}
}

// SaleID returns the id of the attempt's sale, empty if none was found.
func (s *Foresight) SaleID() string { return s.purchase.SaleID() }

// Foresee returns the refusal with which the gate would answer a request, by its own rules in their
// order, as far as memory tells. A refused attempt has been counted as the gate counts it; one that goes
// on to the gate is counted there. The headers that a gate removes are gone.
//
// `unavailable` is normally not foreseen, because the gate may learn what cannot be asked
// here. It is the answer only if the edge could not read in time what other edges have
// bound: the gate would wait for the same.
func (j *Judge) Foresee(r *http.Request, body []byte, s *Foresight, now time.Time) Foreseen {
	s.now, s.crowd, s.over, s.wait = now, nil, nil, 0
	no := j.filters.Reader.Check(r)
	if no != nil {
		return Foreseen{Refusal: no}
	}
	if j.MaxBody > 0 && int64(len(body)) > j.MaxBody {
		return Foreseen{}
	}
	p := &s.purchase
	p.Began, p.Attempt, p.Body = now, &p.room, body
	if no = j.filters.Reader.Borrow(p.Attempt, r, body, j.env(r, p)); no != nil {
		return foreseen(no)
	}
	for i := range j.rules.rest {
		one := &j.rules.rest[i]
		no, leave := one.foresee(j, r, s)
		switch {
		case no == nil && leave || no != nil && no.Reason == sale.Unavailable:
			return Foreseen{Crowd: s.crowd}
		case no == nil:
			continue
		case one.newOnly && p.Named():
			var later bool
			if no, later = j.unlessNew(s, no); no == nil {
				return Foreseen{Later: later}
			}
		}
		no = j.settle(s, j.rules.rest[:i+1], no)
		return Foreseen{Refusal: no, Over: s.over, Wait: s.wait}
	}
	return Foreseen{}
}

// foreseen is a refusal that needs no settling. Only the gate refuses as unavailable.
func foreseen(no *sale.Refusal) Foreseen {
	if no.Reason == sale.Unavailable {
		return Foreseen{}
	}
	return Foreseen{Refusal: no}
}

// foresee judges an attempt by one rule, from memory.
func (one *rule) foresee(j *Judge, r *http.Request, s *Foresight) (no *sale.Refusal, leave bool) {
	if one.memory != nil {
		return one.memory(j, r, s)
	}
	return one.judge(j, r, &s.purchase)
}

// settle counts an attempt that is refused from memory, by the rules that it has met.
func (j *Judge) settle(s *Foresight, met []rule, no *sale.Refusal) *sale.Refusal {
	for i := range met {
		if met[i].settle != nil {
			no = met[i].settle(j, s, no)
		}
	}
	return no
}

// Foreseen is the refusal with which a gate would answer.
type Foreseen struct {
	Refusal *sale.Refusal // nil: only the gate can decide
	// Over is the rate that refuses, and wait its waiting time; nil: none refuses.
	Over *refuse.RateAnswers
	Wait time.Duration
	// Later: the attempt is to be foreseen again when its Waiting was woken. It was not counted.
	Later bool
	// Crowd: the attempt is to be foreseen again, with the Room that AwaitRoom returns. It was not
	// counted. nil: it need not wait.
	Crowd *Crowd
}

// goesOn is for rules that judge the attempt when it is at the gate.
func (j *Judge) goesOn(*http.Request, *Foresight) (no *sale.Refusal, leave bool) { return nil, false }

// leaves is for rules that only the gate can ask.
func (j *Judge) leaves(*http.Request, *Foresight) (no *sale.Refusal, leave bool) { return nil, true }

// foreseeRates asks the rates of this edge without counting.
func (j *Judge) foreseeRates(_ *http.Request, s *Foresight) (no *sale.Refusal, leave bool) {
	if over, wait := j.filters.Rates.ForeseeLocal(s.purchase.Attempt, s.now); over != nil {
		no = s.exceeds(&over.Header, wait)
	}
	return no, false
}

// settleRates counts the attempt, unless a rate has refused it.
func (j *Judge) settleRates(s *Foresight, no *sale.Refusal) *sale.Refusal {
	if s.over != nil {
		return no
	}
	if over, wait := j.filters.Rates.CountLocal(s.purchase.Attempt, s.purchase.Began); over != nil {
		return s.exceeds(&over.Header, wait)
	}
	return no
}

// exceeds is the refusal of an attempt that exceeds a rate.
func (s *Foresight) exceeds(over *refuse.RateAnswers, wait time.Duration) *sale.Refusal {
	s.purchase.Listing = nil // the sale has not judged it
	s.over, s.wait, s.rated = over, wait, sale.Refusal{Reason: sale.RateLimited, RetryAfter: refuse.WaitSeconds(wait)}
	return &s.rated
}

// foreseeEdge finds the edge runtime, if it can certainly sell now.
func (j *Judge) foreseeEdge(r *http.Request, s *Foresight) (no *sale.Refusal, leave bool) {
	d := j.App.Runtime()
	s.purchase.Runtime = d
	return nil, d == nil || d.ReadyAt(s.now) != nil || d.IsLocal() && !FromThisMachine(r)
}

// foreseeSale is chooseSale at the moment of the answer.
func (j *Judge) foreseeSale(r *http.Request, s *Foresight) (no *sale.Refusal, leave bool) {
	return j.chooseSaleAt(r, &s.purchase, s.now), false
}

// foreseeUnits is unitsGone for an attempt that asks Redis nothing.
func (j *Judge) foreseeUnits(_ *http.Request, s *Foresight) (no *sale.Refusal, leave bool) {
	if j.Enters { // units that are gone are what the attempt waits for
		return nil, false
	}
	return s.purchase.Runtime.Recall(s.purchase.Listing, s.purchase.Attempt, s.purchase.Lines), false
}

// foreseeSlot refuses an attempt that would get no in-flight slot.
func (j *Judge) foreseeSlot(_ *http.Request, s *Foresight) (no *sale.Refusal, leave bool) {
	return j.seller.LacksSlot(&s.purchase), false
}

// foreseeRoom has an attempt wait here while many of its sale wait for Redis: that takes a tenth of
// what it takes in the server. An attempt beside which others wait on its connection goes on.
func (j *Judge) foreseeRoom(_ *http.Request, s *Foresight) (no *sale.Refusal, leave bool) {
	p := &s.purchase
	switch {
	case s.Arrival.Waiting != nil:
	case s.Room == HasNoRoom:
		return refuse.Busy, false
	case s.Room == NotAwaited && p.Runtime.IsCrowded(p.Listing):
		s.crowd = &Crowd{p.Runtime, p.Listing}
		return nil, true
	}
	return nil, false
}

// unlessNew is the refusal of an attempt that certainly repeats no earlier one. nil: the gate has to ask
// Redis, or, later, the attempt is to be foreseen again.
func (j *Judge) unlessNew(s *Foresight, no *sale.Refusal) (_ *sale.Refusal, later bool) {
	// a check that was sent before the refusal was known says nothing of what was bound meanwhile
	if s.Arrival.Waiting == nil {
		s.Arrival.At = time.Time{}
	} else if !isSame(s.Why, no) {
		s.Arrival.At, s.Why = time.Now(), no
	}
	switch isNew, err := j.foreseeNew(s); {
	case errors.Is(err, edge.ErrLater):
		return nil, true
	case err != nil:
		return refuse.Unavailable, false
	case !isNew:
		return nil, false
	}
	return no, false
}

// isSame reports whether an attempt is refused for what it was refused for before it waited. What is
// known of stock changes with each refusal that is made of it.
func isSame(before, no *sale.Refusal) bool {
	return before == no || before != nil && before.Reason == no.Reason && no.Reason != sale.SoldOut && no.Reason != sale.AllHeld
}

// foreseeNew reports whether the attempt certainly repeats no attempt that has reserved, so
// that it may be refused. It waits until the edge has read what other edges have bound, or
// returns ErrLater; another error says that it could not be read in time. False: the gate has
// to ask Redis.
func (j *Judge) foreseeNew(s *Foresight) (isNew bool, err error) {
	p := &s.purchase
	if s.Arrival.Waiting == nil {
		s.Waiter.BeforeWait()
	}
	var later error
	for _, l := range Candidates(p.Runtime.Catalogue(), p.Attempt) {
		isNew, at, err := p.Runtime.SurelyNewAt(l, p.Attempt, &s.Arrival)
		if !at.IsZero() {
			s.now = at
			s.Waiter.AfterWait(at)
		}
		switch {
		case errors.Is(err, edge.ErrLater):
			later = err // the other sales are checked meanwhile
		case err != nil || !isNew:
			return false, err
		}
	}
	return later == nil, later
}

package gate

import (
	"errors"
	"net/http"
	"time"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/edge"
	"github.com/stockgate/stockgate/refuse"
	"github.com/stockgate/stockgate/sale"
)

// Foresight is one attempt whose verdict a gate predicts from memory. It is reused for the
// next attempt.
type Foresight struct {
	attempt  sale.Attempt
	purchase purchase
	over     sale.Refusal
	asked    askedChallenge
	Waiter   Waiter
	// Arrival is that of the attempt. With a Waiting, Foresee does not wait: the attempt is to be
	// foreseen again with the Arrival and Why that it has then.
	Arrival Arrival
	Why     *sale.Refusal
	// Room is what Crowd.AwaitRoom has said, if the attempt has waited for it.
	Room Room
	now  time.Time // of the answer
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

// Room says whether there is room for an attempt that has waited for it.
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

// Waiter is called when an answer takes time: until the edge has read what other edges have
// bound.
type Waiter interface {
	// BeforeWait is called before Foresee waits.
	BeforeWait()
	// AfterWait is called with the time when the wait was over.
	AfterWait(time.Time)
}

// Reset clears the attempt. Its memory is reused for the next attempt.
func (s *Foresight) Reset() {
	s.purchase, s.Arrival, s.Why, s.Room = purchase{}, Arrival{}, nil, NotAwaited
	if s.asked.reached {
		s.asked = askedChallenge{}
	}
}

// SaleID returns the id of the attempt's sale, empty if none was found.
func (s *Foresight) SaleID() string { return s.purchase.saleID() }

// Foresee returns the refusal with which the gate would answer a request, as far as memory
// tells. A refused attempt has been counted as the gate counts it.
func (g *Gate) Foresee(r *http.Request, body []byte, s *Foresight, now time.Time) Foreseen {
	s.now = now
	f := g.foresee(r, body, s, now)
	if f.Refusal == nil {
		return f
	}
	if no := g.settleChallenge(s, s.now, f.Refusal); no != nil {
		return Foreseen{Refusal: no}
	}
	return f
}

// Foreseen is the refusal with which a gate would answer.
type Foreseen struct {
	Refusal *sale.Refusal // nil: only the gate can decide
	// Over is the rate that refuses, and wait its waiting time; nil: none refuses.
	Over *refuse.Rate
	Wait time.Duration
	// Later: the attempt is to be foreseen again when its Waiting was woken. It was not counted.
	Later bool
	// Crowd: the attempt is to be foreseen again, with the Room that AwaitRoom returns. It was not
	// counted. nil: it need not wait.
	Crowd *Crowd
}

// foresee says whether the gate would refuse a request, by its own rules in their order, as
// far as memory tells. The rates have counted a refused attempt; an attempt that goes on to
// the gate is counted there. The headers that a gate removes are gone.
//
// `unavailable` is normally not foreseen, because the gate may learn what cannot be asked
// here. It is the answer only if the edge could not read in time what other edges have
// bound: the gate would wait for the same.
func (g *Gate) foresee(r *http.Request, body []byte, s *Foresight, now time.Time) (f Foreseen) {
	if f.Refusal = g.reader.Check(r); f.Refusal != nil {
		return f
	}
	if g.MaxBody > 0 && int64(len(body)) > g.MaxBody {
		return f
	}
	p := &s.purchase
	p.attempt, p.body = &s.attempt, body
	no := g.reader.Borrow(p.attempt, r, body, g.env(r, nil, false))
	if no == nil {
		no = g.lists.Denied(r, p.attempt, g.log)
	}
	if no != nil {
		if no.Reason != sale.Unavailable {
			f.Refusal = no
		}
		return f
	}
	over, wait := g.rates.ForeseeLocal(p.attempt, now)
	if over == nil {
		if f.Refusal = g.foreseeLater(r, s, now, &f); f.Refusal == nil {
			return f
		}
		over, wait = g.rates.CountLocal(p.attempt, now)
	}
	if over != nil {
		f.Over, f.Wait = &over.Header, wait
		p.listing = nil // the sale has not judged it
		s.over = sale.Refusal{Reason: sale.RateLimited, RetryAfter: refuse.WaitSeconds(f.Wait)}
		f.Refusal = &s.over
	}
	return f
}

// foreseeLater judges an attempt that the rates of this edge let pass. nil: it goes on, or
// only the gate can decide, or f says that it is to be foreseen again.
func (g *Gate) foreseeLater(r *http.Request, s *Foresight, now time.Time, f *Foreseen) *sale.Refusal {
	p := &s.purchase
	if no := g.foreseeChallenge(r, s, now); no != nil {
		return no
	}
	if p.named() && !g.foreseeRuntime(r, p, now) {
		return nil
	}
	no := g.foreseeSale(r, p, now)
	if no == nil && g.waitsForRoom(s) {
		switch {
		case s.Room == HasNoRoom:
			no = refuse.Busy
		case s.Room == NotAwaited && p.runtime.IsCrowded(p.listing):
			f.Crowd = &Crowd{p.runtime, p.listing}
		}
	}
	if no == nil || !p.named() {
		return no
	}
	// a check that was sent before the refusal was known says nothing of what was bound meanwhile
	if s.Arrival.Waiting == nil {
		s.Arrival.At = time.Time{}
	} else if !isSame(s.Why, no) {
		s.Arrival.At, s.Why = time.Now(), no
	}
	switch isNew, err := g.foreseeNew(s); {
	case errors.Is(err, edge.ErrLater):
		f.Later = true
		return nil
	case err != nil:
		return refuse.Unavailable
	case !isNew:
		return nil
	}
	return no
}

// isSame says whether an attempt is refused for what it was refused for before it waited. What is
// known of stock changes with each refusal that is made of it.
func isSame(before, no *sale.Refusal) bool {
	return before == no || before != nil && before.Reason == no.Reason && no.Reason != sale.SoldOut && no.Reason != sale.AllHeld
}

// waitsForRoom reports whether an attempt waits here while many of its sale wait for Redis: that
// takes a tenth of what it takes in the server. An attempt beside which others wait on its connection
// goes on.
func (g *Gate) waitsForRoom(s *Foresight) bool {
	return !g.Check && s.purchase.listing != nil && s.Arrival.Waiting == nil
}

// foreseeNew says whether the attempt certainly repeats no attempt that has reserved, so
// that it may be refused. It waits until the edge has read what other edges have bound, or
// returns ErrLater; another error says that it could not be read in time. False: the gate has
// to ask Redis.
func (g *Gate) foreseeNew(s *Foresight) (isNew bool, err error) {
	p := &s.purchase
	if s.Arrival.Waiting == nil {
		s.Waiter.BeforeWait()
	}
	var later error
	for _, l := range candidates(p.runtime.Catalogue(), p.attempt) {
		isNew, at, err := p.runtime.SurelyNewAt(l, p.attempt, &s.Arrival)
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

// foreseeRuntime finds the edge runtime, if it can certainly sell now.
func (g *Gate) foreseeRuntime(r *http.Request, p *purchase, now time.Time) bool {
	p.runtime = g.app.Runtime()
	return p.runtime != nil && p.runtime.ReadyAt(now) == nil && (!p.runtime.IsLocal() || fromThisMachine(r))
}

// foreseeSale judges an attempt that all rates let pass. nil: it goes on, or only the gate
// can decide.
func (g *Gate) foreseeSale(r *http.Request, p *purchase, now time.Time) *sale.Refusal {
	if g.rates.HasShared() || g.isUnlisted(p.attempt) || !g.foreseeRuntime(r, p, now) {
		return nil
	}
	no := g.judge(r, p, now)
	if no == nil {
		no = p.runtime.Recall(p.listing, p.lines)
	}
	if no == nil && !g.Check && g.places.IsFull() {
		if no = refuse.Busy; g.places.IsUnderWay(singleKey(p)) {
			no = refuse.Duplicate
		}
	}
	if no != nil && no.Reason == sale.Unavailable {
		return nil
	}
	return no
}

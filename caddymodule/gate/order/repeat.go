package order

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/forward"
	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/caddymodule/gate/sending"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

const replayedHeader = "Stockgate-Replayed"

var refuseKeyReused = sale.Refuse(sale.KeyReused)

// Find looks for what an earlier attempt with the same idempotency key or ref has left. Redis is
// asked only if something may be bound, as far as the edge has read.
func (p *Deal) Find(r *http.Request) (no *sale.Refusal, ends bool) {
	for _, l := range judge.Candidates(p.Runtime.Catalogue(), p.Attempt) {
		if p.Runtime.MayRepeat(l, p.Attempt) {
			if no := p.taker.lookUp(r, p, l); no != nil || p.bound != nil {
				return no, true
			}
		}
	}
	return nil, false
}

// Unless is the refusal of an attempt, unless it has the answer of an earlier one.
func (p *Deal) Unless(r *http.Request, no *sale.Refusal) *sale.Refusal {
	if earlier := p.taker.repeatsUnread(r, p, no); earlier != nil || p.bound != nil {
		delete(p.Out, refuse.RateLimitHeader)
		delete(p.Out, refuse.RatePolicyHeader)
		return earlier
	}
	return no
}

// repeatsUnread looks again before the attempt is refused for another reason: another edge
// may have bound its key or ref, and this edge may not have read that yet. no is the
// refusal. If it cannot be read, the attempt is refused as unavailable.
func (t *Taker) repeatsUnread(r *http.Request, p *Deal, no *sale.Refusal) *sale.Refusal {
	if !p.Named() || no.Reason == sale.Unavailable {
		return nil
	}
	for _, l := range judge.Candidates(p.Runtime.Catalogue(), p.Attempt) {
		if p.unbound == l {
			continue // it has no reservation there
		}
		switch isNew, err := p.Runtime.SurelyNew(l, p.Attempt); {
		case err != nil:
			return refuse.Unavailable
		case isNew:
			continue
		}
		if earlier := t.lookUp(r, p, l); earlier != nil || p.bound != nil {
			return earlier
		}
	}
	return nil
}

// lookUp asks Redis whether the attempt is a repeat in a sale. It has a bound of its own,
// so that it takes no capacity from attempts that reserve.
func (t *Taker) lookUp(r *http.Request, p *Deal, l *edge.Listing) *sale.Refusal {
	if !t.asking.Take() {
		return refuse.Busy
	}
	defer t.asking.Give()
	lines := judge.LinesIn(l.Sale, p.Attempt)
	b, err := p.Runtime.Lookup(context.WithoutCancel(r.Context()), l, p.Attempt, lines)
	if err != nil {
		if c := t.Log().Check(zap.DebugLevel, "redis did not say what an idempotency key or ref has got"); c != nil {
			c.Write(zap.Error(err))
		}
		return refuse.Unavailable
	}
	if b == nil {
		p.unbound = l
		return nil
	}
	p.Listing, p.Lines = l, lines
	return t.judgeBound(r, p, b)
}

// judgeBound decides on an attempt whose key, ref or lines already have a reservation: a
// refusal, the stored answer, or forwarding it again.
func (t *Taker) judgeBound(r *http.Request, p *Deal, b *reservation.AlreadyBound) *sale.Refusal {
	id := b.ID
	if !b.Same {
		id = "" // it may belong to another buyer
	}
	switch sold := b.State == record.Confirmed || b.State == record.Unbacked; {
	case b.By == "ref" && b.State == record.Held && t.swaps(p.Attempt, b.Same):
		p.InPlaceOf, p.HeldIn = b.ID, p.SaleID()
		return nil
	case b.By == "key" && !b.Same:
		return refuseKeyReused
	case b.By == "key" && t.Terms.Queue != nil && (b.State == record.Waiting || b.State == record.Held && t.Terms.Mode() != record.ModeBackend):
		return t.tellPlace(r, p, b)
	case b.State == record.Waiting && b.By != "key" && t.LeadsBack(p.Attempt):
		return t.cartWaits(r, p, b)
	case b.State == record.InDoubt:
		return sending.InDoubt(id)
	case b.By == "ref" && sold && b.Same:
		p.bound = b
		return nil
	case b.By == "ref" && sold:
		return &sale.Refusal{Reason: sale.AlreadyOrdered}
	// With outcome backend, the hold remains open after the shop has answered.
	case b.By == "key" && (sold || b.State == record.Held && t.Terms.Mode() == record.ModeBackend):
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), p.Runtime.Store.Shard().Timeout())
		defer cancel()
		stored, err := p.Runtime.Store.StoredAnswer(ctx, p.Listing.Sale.ID, b.ID)
		switch {
		case err != nil:
			return refuse.Unavailable
		case stored != nil:
			p.bound, p.stored = b, stored
			return nil
		case sold:
			return &sale.Refusal{Reason: sale.AlreadyOrdered, Reservation: id}
		}
	}
	return refuse.Duplicate
}

// cartWaits decides on an attempt of a buyer who has an order that waits, for the same lines or the same cart. The same
// order leads to its place. Where its cart has changed, it would not be sent any more: it makes room for the new one.
func (t *Taker) cartWaits(r *http.Request, p *Deal, b *reservation.AlreadyBound) *sale.Refusal {
	ctx := context.WithoutCancel(r.Context())
	if b.By == reservation.BySingle {
		same, err := p.Runtime.Store.ReservationIn(ctx, p.SaleID(), b.ID)
		switch {
		case err != nil:
			return refuse.Unavailable
		case same.Ref != p.Attempt.Ref:
			return refuse.Duplicate // another cart's, and perhaps another client's
		}
	}
	switch {
	case b.Same && p.Remembered: // the cart is looked up now
		p.bound = b
		return nil
	case b.Same:
		return t.tellPlace(r, p, b)
	case p.Remembered || p.Runtime.Queue().Cancel(ctx, p.SaleID(), b.ID, string(sale.CartChanged)) != nil:
		return refuse.Duplicate
	}
	return nil
}

// tellPlace tells the client of a repeat where the order of its key or cart stands.
func (t *Taker) tellPlace(r *http.Request, p *Deal, b *reservation.AlreadyBound) *sale.Refusal {
	if no := t.Tell(context.WithoutCancel(r.Context()), &p.Queued, b.ID); no != nil {
		return no
	}
	p.bound = b
	return nil
}

// swaps reports whether an attempt takes the place of the hold of its ref: the buyer has changed
// the cart, or comes to pay for it.
func (t *Taker) swaps(a *sale.Attempt, same bool) bool {
	return (t.Terms.Continue || t.Terms.Mode() == record.ModeBackend && !same) && !a.RefShared && a.Key == ""
}

// replay answers as the shop did the first time.
func (t *Taker) replay(w http.ResponseWriter, r *http.Request, p *Deal) error {
	p.Publish(r, "replayed", p.bound.ID)
	meter.CountAttempt(p.SaleID(), "replayed", "")
	h, a := w.Header(), p.stored
	h.Set(forward.ReservationHeader, p.bound.ID)
	h.Set(replayedHeader, "true")
	h["Cache-Control"] = refuse.NoStore
	if a.ContentType != "" {
		h.Set("Content-Type", a.ContentType)
	}
	if a.Location != "" {
		h.Set("Location", a.Location)
	}
	if len(a.Body) > 0 {
		h.Set("Content-Length", strconv.Itoa(len(a.Body)))
	}
	w.WriteHeader(a.Status)
	if len(a.Body) > 0 && r.Method != http.MethodHead {
		_, _ = w.Write(a.Body) // a client that has left needs no answer
	}
	return nil
}

// forwardAgain forwards a sold order once more, for a shop that answers the same order in the same
// way, with the token of its reservation and a new expiry time. Nothing is reserved or
// charged. The number of repeats is bounded for each reservation, because each one costs
// the shop work.
func (t *Taker) forwardAgain(r *http.Request, p *Deal, pl *forward.InFlightSlot) sending.Takeoff {
	if no := t.Terms.Repeated.Take(p.Out, p.bound.ID, time.Now()); no != nil {
		return sending.Refused(no)
	}
	now := p.Listing.Now()
	hold := reservation.Hold{
		ID: p.bound.ID, Sale: p.SaleID(), State: p.bound.State, Created: now, Exp: now.Add(t.Terms.Hold.HoldFor - t.Terms.Hold.Margin),
		Epoch: p.bound.Epoch, Lines: p.Lines, Ref: p.Attempt.Ref,
	}
	signed, err := t.Sign(&p.Case, &hold)
	if err != nil {
		return sending.Refused(refuse.Unavailable)
	}
	p.Publish(r, "repeated", hold.ID)
	f := &forward.Forwarding{Rules: t.Terms.Outcomes, MaxAnswer: t.Terms.AnswerLimit(), Log: t.Log(), Slot: pl, Hold: hold, Token: signed, Body: p.Body, Repl: p.Repl, Again: true}
	return sending.Takeoff{Way: sending.IsForwarded, Forwarding: f, Timeout: t.TimeToForward(&hold, time.Now())}
}

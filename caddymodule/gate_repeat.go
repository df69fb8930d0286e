package caddymodule

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/reservation"
	"github.com/stockgate/stockgate/sale"
)

const (
	replayedHeader = "Stockgate-Replayed"
	// inDoubtWait is in seconds: a doubt does not end by itself.
	inDoubtWait = 10
)

// repeats looks for what an earlier attempt with the same idempotency key or ref has
// left, before anything else judges this one: whoever has bought must not hear that
// the sale has ended or that he asks too often. Redis is asked only if the edge's
// view says that something may be bound.
func (g *Gate) repeats(r *http.Request, p *purchase) *sale.Refusal {
	if p.attempt.Key == "" && p.attempt.Ref == "" {
		return nil
	}
	if p.desk = g.openDesk(r, p.trial); p.desk == nil {
		p.unasked = true
		return nil
	}
	asking := false
	for _, l := range candidates(p.desk.Catalogue(), p.attempt) {
		if !p.desk.MayRepeat(l, p.attempt) {
			continue
		}
		// Who only asks takes no room from those who buy, and cannot ask without bound.
		if !asking {
			if !g.asking.Take() {
				return refuseBusy
			}
			defer g.asking.Give()
			asking = true
		}
		lines := linesIn(l.Sale, p.attempt)
		b, err := p.desk.Lookup(context.WithoutCancel(r.Context()), l, p.attempt, lines)
		if err != nil {
			if c := g.log.Check(zap.DebugLevel, "redis did not say what an idempotency key or ref has got"); c != nil {
				c.Write(zap.Error(err))
			}
			return refuseUnavailable
		}
		if b != nil {
			p.listing, p.lines = l, lines
			return g.judgeBound(r, p, b)
		}
	}
	return nil
}

// candidates are the sales in which an attempt may have been made before: ended and
// closed ones too.
func candidates(c *reservation.Catalogue, a *sale.Attempt) []*reservation.Listing {
	if a.Sale == "" {
		return c.Listing(a.Lines[0].SKU)
	}
	if l, ok := c.Sale(a.Sale); ok {
		return []*reservation.Listing{l}
	}
	return nil
}

// linesIn are the attempt's lines as the sale would hold them, whether or not it
// would today: its bounds may have changed since.
func linesIn(s *sale.Sale, a *sale.Attempt) []sale.Line {
	if lines, no := s.Resolve(a); no == nil {
		return lines
	}
	lines := make([]sale.Line, len(a.Lines))
	for i, l := range a.Lines {
		lines[i] = l
		if item, ok := s.Item(l.SKU); !ok || len(item.Regions) == 0 {
			lines[i].Region = ""
		}
	}
	return lines
}

// judgeBound says what an attempt gets whose key, ref or lines have a reservation
// already: a refusal, the stored answer, or the way to the shop again.
func (g *Gate) judgeBound(r *http.Request, p *purchase, b *reservation.Bound) *sale.Refusal {
	id := b.ID
	if !b.Same {
		id = "" // it may be somebody else's
	}
	switch sold := b.State == reservation.Confirmed || b.State == reservation.Unbacked; {
	case b.By == "key" && !b.Same:
		return refuseKeyReused
	case b.State == reservation.InDoubt:
		return &sale.Refusal{Reason: sale.InDoubt, RetryAfter: inDoubtWait, Reservation: id}
	case b.By == "ref" && sold && b.Same:
		p.bound = b
		return nil
	case b.By == "ref" && sold:
		return &sale.Refusal{Reason: sale.AlreadyOrdered}
	// The hold of an outcome that comes later goes on when the shop has answered.
	case b.By == "key" && (sold || b.State == reservation.Held && g.mode() == reservation.Backend):
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), p.desk.Timeout())
		defer cancel()
		stored, err := p.desk.StoredAnswer(ctx, p.listing.Sale.ID, b.ID)
		switch {
		case err != nil:
			return refuseUnavailable
		case stored != nil:
			p.bound, p.stored = b, stored
			return nil
		case sold:
			return &sale.Refusal{Reason: sale.AlreadyOrdered, Reservation: id}
		}
	}
	return refuseDuplicate
}

// replay answers as the shop did the first time.
func (g *Gate) replay(w http.ResponseWriter, r *http.Request, p *purchase) error {
	p.publish(r, "replayed", p.bound.ID)
	countAttempt(p.saleID(), "replayed", "")
	h, a := w.Header(), p.stored
	h.Set(reservationHeader, p.bound.ID)
	h.Set(replayedHeader, "true")
	h["Cache-Control"] = noStore
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
		_, _ = w.Write(a.Body) // who has left needs no answer
	}
	return nil
}

// again forwards an order that is sold once more, for a shop that answers the same
// order the same way: with the token of its reservation, whose time is a new one.
// Nothing is reserved or charged.
func (g *Gate) again(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, p *purchase) error {
	now := p.listing.Now()
	hold := reservation.Hold{
		ID: p.bound.ID, Sale: p.saleID(), State: p.bound.State, Created: now, Exp: now.Add(g.terms.HoldFor - g.terms.Margin),
		Epoch: p.bound.Epoch, Lines: p.lines, Ref: p.attempt.Ref,
	}
	signed, err := g.sign(p, &hold)
	if err != nil {
		return g.refuse(w, r, hold.Sale, refuseUnavailable)
	}
	p.publish(r, "repeated", hold.ID)
	f := &flight{gate: g, desk: p.desk, hold: hold, token: signed, body: p.body, repl: p.repl, again: true}
	return f.forward(w, r, next, g.timeToForward(&hold, time.Now()))
}

// Package sending prepares orders whose stock is held for the shop: it signs their tokens, and bounds how many are at the shop.
package sending

import (
	"context"
	"net/http"
	"time"

	"github.com/stockgate/stockgate/caddymodule/forward"
	"github.com/stockgate/stockgate/caddymodule/gate/asking"
	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/caddymodule/gate/selling"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/filters"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

const defaultMaxInFlight = 256

// Carrier prepares the orders of one gate for its shop, to which package forward takes them.
type Carrier struct {
	*judge.Judge
	Terms     *selling.Terms
	Slots     forward.Slots
	inquirer  *asking.Inquirer // nil: the outcome is not asked
	bypassing *filters.Slots   // bounds the orders that are at the shop during a bypass
}

// Bind gives the carrier the judge and the terms of its gate.
func (c *Carrier) Bind(j *judge.Judge, terms *selling.Terms) { c.Judge, c.Terms = j, terms }

// Open prepares in-flight slots, and what asks the shop how orders ended. The judge and its terms are open.
func (c *Carrier) Open() {
	if c.MaxInFlight == 0 {
		c.MaxInFlight = defaultMaxInFlight
	}
	waiting, atShop := 0, c.MaxInFlight
	if q := c.Terms.Queue; q != nil {
		waiting, atShop = q.Most, q.AtOnce
	}
	c.Slots.Open(waiting+atShop, atShop, c.Log())
	c.bypassing = filters.NewSlots(atShop)
	c.inquirer = asking.New(c.Terms, c.Log())
}

// KeepConns keeps its connection in the context of each request, so that a client that does not read the answer can be
// cut off.
func (c *Carrier) KeepConns() {
	if c.Server() != nil {
		c.Server().RegisterConnContext(forward.WithConn)
	}
}

// Prepare prepares an attempt that has stock for the shop. One that comes too late for its token is released. asked
// is when its stock was asked for.
func (c *Carrier) Prepare(r *http.Request, p *judge.Case, pl *forward.InFlightSlot, hold reservation.Hold, asked time.Time) Takeoff {
	timeout := c.TimeToForward(&hold, asked)
	if timeout <= 0 {
		c.Unsent(r, p, hold)
		return Refused(refuse.Unavailable)
	}
	signed, err := c.Sign(p, &hold)
	if err != nil {
		c.Unsent(r, p, hold)
		return Refused(judge.RefuseTooLong)
	}
	p.Publish(r, "reserved", hold.ID)
	f := &forward.Forwarding{Rules: c.Terms.Outcomes, MaxAnswer: c.Terms.AnswerLimit(), Log: c.Log(), Slot: pl, Began: p.Began, Hold: hold, Token: signed, Body: p.Body, Repl: p.Repl}
	if c.inquirer != nil {
		f.Asker = c.inquirer.About(r, p, &f.Hold, asked)
	}
	if p.Attempt.Key != "" && r.Method != http.MethodHead {
		f.Copy = new(forward.Copy)
		f.KeepCopy = c.KeepCopy(p)
	}
	if c.Terms.Queue != nil {
		f.Queued = true
		if p.Swapped() == "" { // else the token of the hold that it replaces is still good for its units
			f.Later = c.Terms.Later
		}
		f.Ended = func() { p.Runtime.Queue().Freed(hold.Sale) }
	}
	return Takeoff{Way: IsForwarded, Forwarding: f, Timeout: timeout}
}

// KeepCopy is how long the shop's answer to an attempt with an idempotency key is kept.
func (c *Carrier) KeepCopy(p *judge.Case) time.Duration {
	// a TTL only limits Redis's memory: the binding lives as long as the sale
	return max(c.Terms.Hold.KeyTTL, p.Listing.Sale.EndsAt.Sub(p.Listing.Now()))
}

// Sign makes the token of a hold.
func (c *Carrier) Sign(p *judge.Case, hold *reservation.Hold) (string, error) {
	claims := p.Listing.Sale.ClaimsOf(p.Attempt, hold.Lines)
	claims.ID, claims.IssuedAt, claims.ExpiresAt, claims.Epoch, claims.Sale = hold.ID, hold.Created.Unix(), hold.Exp.Unix(), hold.Epoch, hold.Sale
	return c.App.Keys().Signer().Sign(claims)
}

// TimeToForward returns how long the shop may take for a hold that was requested at that
// time: until its token expires, which says full seconds. 0 or less: it must not be sent.
func (c *Carrier) TimeToForward(hold *reservation.Hold, asked time.Time) time.Duration {
	timeout := hold.Exp.Truncate(time.Second).Sub(hold.Created) - time.Since(asked)
	if c.Terms.MostAtShop > 0 {
		timeout = min(timeout, c.Terms.MostAtShop)
	}
	return timeout
}

// Unsent releases a reservation that will not be forwarded.
func (c *Carrier) Unsent(r *http.Request, p *judge.Case, hold reservation.Hold) {
	meter.CountAttempt(hold.Sale, "released", "")
	// what Redis cannot be told now is reported later
	_, _ = p.Runtime.ReleaseEventually(context.WithoutCancel(r.Context()), hold.Sale, hold.ID, reservation.SourceUnsent, "unsent")
}

// GoesToShop is called when an order goes to the shop, which may change its cart: the edge forgets the cart, and lets
// the next request of the session in when the forwarding has ended.
func (c *Carrier) GoesToShop(p *judge.Case, f *forward.Forwarding) {
	c.ForgetCart(p)
	if turn, ended := p.Turn, f.Ended; turn != nil {
		f.Ended = func() {
			turn.End()
			if ended != nil {
				ended()
			}
		}
	}
}

package line

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/caddymodule/internal/timing"
	"github.com/stockgate/stockgate/filters/scope"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/queue"
)

// The cart of an order that waits may change meanwhile: its session has no turn while it waits. So the edge
// that has the turn of the order takes the turn of its session too, looks the cart up once more, and sends the order
// only if the cart is what stock is held for.

const (
	// notNowFor is how long an edge keeps at least the turn of an order that cannot be sent now, so that it
	// does not ask a shop all the time that is away.
	notNowFor = 250 * time.Millisecond
)

var refuseCartChanged = sale.Refuse(sale.CartChanged)

// verifies reports whether orders that wait are looked at once more before they are sent.
func (u *Usher) verifies() bool { return u.Terms.Lookup != nil || u.TakesTurns() || u.asksClaims() }

// asksClaims reports whether `outcome ask` names an order by a claim of the buyer's token.
func (u *Usher) asksClaims() bool {
	return slices.ContainsFunc(u.Terms.Asked.Names(), func(name string) bool { return strings.HasPrefix(name, "jwt.") })
}

// verify takes the turn of an order's session and looks its cart up. It returns nil if the cart is what stock
// is held for, and p then has the turn. then is the attempt for which it is held.
func (u *Usher) verify(r *http.Request, p *judge.Case, then *sale.Attempt, saleID string) *sale.Refusal {
	// no other edge has the turn of the order until then
	ctx, cancel := context.WithTimeout(r.Context(), timing.Turn.Now()*5/6)
	defer cancel()
	if u.TakesTurns() {
		if no, _ := u.TakeTurn(r.WithContext(ctx), p); no != nil {
			return no
		}
	}
	if u.Terms.Lookup == nil {
		return nil
	}
	no := u.ReadCart(r.WithContext(ctx), p, nil)
	switch {
	case no == nil && difference(p.Attempt, then, saleID) == "":
		return nil
	case no != nil && (isLater(no) || no.Reason == sale.NoCart || no.Reason == sale.NoBuyer):
		return no
	}
	return refuseCartChanged
}

// isLater reports whether an order that must not be sent now for that reason may be sent later: the shop has not
// said what is in its cart, or another request of its session is under way.
func isLater(no *sale.Refusal) bool {
	return no.Reason == sale.Unavailable || no.Reason == sale.Busy || no.Reason == sale.Pending
}

// verifyOpen verifies an order whose request is open and whose turn has come. It returns nil if the order may be
// sent.
func (u *Usher) verifyOpen(r *http.Request, p *judge.Case, t queue.Turn) *sale.Refusal {
	now := &judge.Case{Visit: p.Visit, Requested: p.Requested}
	now.Purpose = judge.Sending
	began := time.Now()
	no := u.verify(r, now, p.Attempt, t.Sale)
	if no == nil {
		p.Document, p.Session = now.Document, now.Session
		return nil
	}
	now.EndTurn(r)
	if isLater(no) {
		u.stepBack(r.Context(), p, t, began, true)
	}
	return no
}

// verifyStored is verifyOpen for an order that is sent without its request. One that must not be sent at all
// is released.
func (u *Usher) verifyStored(r *http.Request, p *judge.Case, t queue.Turn, o *queue.Order) bool {
	began := time.Now()
	now := &judge.Case{
		Visit:     judge.Visit{Purpose: judge.Sending, Began: p.Began, Repl: p.Repl, Out: make(http.Header), AsOf: o.At},
		Requested: judge.Requested{Scope: scope.Attempt},
	}
	no, what := u.readStored(r, now)
	if no == nil && what == "" {
		no = u.verify(r, now, &o.Attempt, t.Sale)
	}
	if no == nil && what == "" {
		p.Claims, p.Document, p.Session = now.Claims, now.Document, now.Session
		return true
	}
	now.EndTurn(r)
	ctx, q := context.WithoutCancel(r.Context()), p.Runtime.Queue()
	switch {
	case no != nil && isLater(no):
		u.stepBack(ctx, p, t, began, false)
	case what != "" || u.Terms.Lookup != nil && o.Reads != u.prints.reads: // it may be this gate that reads another cart in it
		if what == "" {
			what = string(no.Reason)
		}
		u.disown(ctx, p, t, o, what)
	case q.Cancel(ctx, t.Sale, t.ID, string(no.Reason)) == nil:
		meter.CountAttempt(t.Sale, "refused", no.Reason)
	}
	return false
}

// readStored reads the request of an order before its cart is looked up, or asked about by a claim. what says what the gate cannot read as it
// did when stock was held for the order.
func (u *Usher) readStored(r *http.Request, p *judge.Case) (no *sale.Refusal, what string) {
	if u.Terms.Lookup == nil && !u.asksClaims() {
		return nil, ""
	}
	no, err := u.InScope(r, p)
	if no == nil && err == nil && p.Scope == scope.Attempt {
		no, err = u.ReadRequest(r, p)
	}
	switch {
	case err != nil:
		return nil, "body"
	case no != nil && isLater(no):
		return no, ""
	case no != nil:
		return nil, string(no.Reason)
	case p.Scope != scope.Attempt:
		return nil, "operation"
	}
	return nil, ""
}

// stepBack lets orders go first that came soon after one that cannot be sent now. ctx ends when the client of
// an open request leaves.
func (u *Usher) stepBack(ctx context.Context, p *judge.Case, t queue.Turn, began time.Time, open bool) {
	timer := time.NewTimer(notNowFor - time.Since(began))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	if err := p.Runtime.Queue().StepBack(context.WithoutCancel(ctx), t, open); err != nil { // the turn ends by itself
		u.Log().Debug("redis was not told that an order cannot be sent now", zap.String("reservation", t.ID), zap.Error(err))
	}
}

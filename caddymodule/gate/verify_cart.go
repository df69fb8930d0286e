package gate

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/forward"
	"github.com/stockgate/stockgate/caddymodule/gate/option/inquiry"
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
	// sessionPatience is how long an order whose turn has come waits for the requests of its session. Its
	// place at the shop is kept for it so long.
	sessionPatience = 500 * time.Millisecond
	// notNowFor is how long an edge keeps at least the turn of an order that cannot be sent now, so that it
	// does not ask a shop all the time that is away.
	notNowFor = 250 * time.Millisecond
)

var refuseCartChanged = sale.Refuse(sale.CartChanged)

// provisionVerify prepares the lookups of orders that wait. They have slots of their own, which a rush
// cannot take: at_once bounds them.
func (g *Gate) provisionVerify() (err error) {
	if g.lookup == nil {
		return nil
	}
	if g.prints.reads, err = readsPrint(g); err != nil {
		return err
	}
	g.refIsLookedUp = len(g.Ref) > 0 && (g.lookup.ByRef() || !slices.ContainsFunc(g.Ref, func(expr string) bool { return !strings.HasPrefix(expr, "{lookup.") }))
	spec := *g.Lookup
	spec.AtOnce, spec.Queue = g.Queue.AtOnce, 0
	g.verifying, err = spec.Compile("the lookup", "jwt.")
	return err
}

// readsPrint is the print of the options that say what an order is.
func readsPrint(g *Gate) (string, error) {
	l := g.Lookup
	text, err := json.Marshal([]any{g.Options, g.Sale, g.JWT, g.Buyer, g.Identities, g.Region, g.Lines, g.LinesFrom, g.OtherItems, g.Ref, l.Method, l.URL, l.Body})
	return printOf(string(text)), err
}

// lookupFor is the question to the shop about the cart of an attempt.
func (j *Judge) lookupFor(p *purchase) *inquiry.Inquiry {
	if p.purpose == sending {
		return j.gate.verifying
	}
	return j.lookup
}

// verifies reports whether orders that wait are looked at once more before they are sent.
func (g *Gate) verifies() bool { return g.lookup != nil || g.takesTurns() || g.asksClaims() }

// asksClaims reports whether `outcome ask` names an order by a claim of the buyer's token.
func (g *Gate) asksClaims() bool {
	return slices.ContainsFunc(g.ask.Names(), func(name string) bool { return strings.HasPrefix(name, "jwt.") })
}

// verify takes the turn of an order's session and looks its cart up. It returns nil if the cart is what stock
// is held for, and p then has the turn. then is the attempt for which it is held.
func (g *Gate) verify(r *http.Request, p *purchase, then *sale.Attempt, saleID string) *sale.Refusal {
	// no other edge has the turn of the order until then
	ctx, cancel := context.WithTimeout(r.Context(), timing.Turn.Now()*5/6)
	defer cancel()
	if g.takesTurns() {
		patient, cancel := context.WithTimeout(ctx, sessionPatience)
		defer cancel()
		if no, _ := g.takeTurn(r.WithContext(patient), p); no != nil {
			return no
		}
	}
	if g.lookup == nil {
		return nil
	}
	no := g.readCart(r.WithContext(ctx), p, nil)
	switch {
	case no == nil && difference(p.attempt, then, saleID) == "":
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
func (g *Gate) verifyOpen(r *http.Request, p *purchase, t queue.Turn) *sale.Refusal {
	now := &purchase{visit: p.visit, sent: p.sent}
	now.purpose = sending
	began := time.Now()
	no := g.verify(r, now, p.attempt, t.Sale)
	if no == nil {
		p.document, p.keys, p.turn = now.document, now.keys, now.turn
		return nil
	}
	now.endTurn(r)
	if isLater(no) {
		g.stepBack(r.Context(), p, t, began, true)
	}
	return no
}

// verifyStored is verifyOpen for an order that is sent without its request. One that must not be sent at all
// is released.
func (g *Gate) verifyStored(r *http.Request, p *purchase, t queue.Turn, o *queue.Order) bool {
	began := time.Now()
	now := &purchase{visit: visit{purpose: sending, began: p.began, repl: p.repl, out: make(http.Header), asOf: o.At}, sent: sent{scope: scope.Attempt}}
	no, what := g.readStored(r, now)
	if no == nil && what == "" {
		no = g.verify(r, now, &o.Attempt, t.Sale)
	}
	if no == nil && what == "" {
		p.claims, p.document, p.keys, p.turn = now.claims, now.document, now.keys, now.turn
		return true
	}
	now.endTurn(r)
	ctx, q := context.WithoutCancel(r.Context()), p.runtime.Queue()
	switch {
	case no != nil && isLater(no):
		g.stepBack(ctx, p, t, began, false)
	case what != "" || g.lookup != nil && o.Reads != g.prints.reads: // it may be this gate that reads another cart in it
		if what == "" {
			what = string(no.Reason)
		}
		g.disown(ctx, p, t, o, what)
	case q.Cancel(ctx, t.Sale, t.ID, string(no.Reason)) == nil:
		meter.CountAttempt(t.Sale, "refused", no.Reason)
	}
	return false
}

// readStored reads the request of an order before its cart is looked up, or asked about by a claim. what says what the gate cannot read as it
// did when stock was held for the order.
func (g *Gate) readStored(r *http.Request, p *purchase) (no *sale.Refusal, what string) {
	if g.lookup == nil && !g.asksClaims() {
		return nil, ""
	}
	no, err := g.inScope(r, p)
	if no == nil && err == nil && p.scope == scope.Attempt {
		no, err = g.readRequest(r, p)
	}
	switch {
	case err != nil:
		return nil, "body"
	case no != nil && isLater(no):
		return no, ""
	case no != nil:
		return nil, string(no.Reason)
	case p.scope != scope.Attempt:
		return nil, "operation"
	}
	return nil, ""
}

// stepBack lets orders go first that came soon after one that cannot be sent now. ctx ends when the client of
// an open request leaves.
func (g *Gate) stepBack(ctx context.Context, p *purchase, t queue.Turn, began time.Time, open bool) {
	timer := time.NewTimer(notNowFor - time.Since(began))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	if err := p.runtime.Queue().StepBack(context.WithoutCancel(ctx), t, open); err != nil { // the turn ends by itself
		g.log.Debug("redis was not told that an order cannot be sent now", zap.String("reservation", t.ID), zap.Error(err))
	}
}

// endTurnWith lets the next request of the session in when a forwarding has ended.
func (p *purchase) endTurnWith(f *forward.Forwarding) {
	if turn, ended := p.turn, f.Ended; turn != nil {
		f.Ended = func() {
			turn.End()
			if ended != nil {
				ended()
			}
		}
	}
}

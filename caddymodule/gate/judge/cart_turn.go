package judge

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/gate/option/inquiry"
	"github.com/stockgate/stockgate/caddymodule/gate/option/session"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/filters/scope"
	"github.com/stockgate/stockgate/internal/sale"
)

// With `one_at_a_time {lookup.…}` a request has the turn of its cart too, whose id the shop tells. A request takes the
// turn of its own credentials first, and then the turn of its cart: all requests wait in this order, so that no two wait
// for each other.

// SessionPatience is how long an order whose turn has come waits for the requests of its session. Its place at the shop
// is kept for it so long.
const SessionPatience = 500 * time.Millisecond

// mostCartTurns is for how many carts a request waits, one after the other, where its session gets another cart
// meanwhile.
const mostCartTurns = 3

// passAlone lets a request that is no attempt wait for its turn.
func (j *Judge) passAlone(r *http.Request, p *Case) *sale.Refusal {
	no, _ := j.TakeTurn(r, p)
	if no != nil || len(j.filters.Credentials.Looked()) == 0 || !j.filters.Credentials.MayChange(r) || !j.waits(r, p) {
		return no
	}
	if len(p.Keys) == 0 && !inquiry.HasCredential(r) { // the shop would make a session for a stranger
		return nil
	}
	took, unnamed, no := j.lookUpAlone(r, p)
	switch {
	case no != nil && (no.Reason == sale.NoCart || no.Reason == sale.NoBuyer):
		return nil // it has no cart that it could change
	case no != nil:
		return no
	}
	meter.CountLookup("answered", took)
	j.heard.HeardAgain(j.log, j.filters.Lookup.Host())
	if j.noCartID.note(unnamed != "") {
		j.log.Warn("the shop named no cart for any of 200 requests, which did not wait for each other therefore: does one_at_a_time read the right place?", zap.String("answer", unnamed))
	}
	return nil
}

// lookUpAlone looks the cart up. With a credential in the cart it does so until the request has the turn of the very
// cart that the shop names: no other request may change that one until the turn ends. unnamed says why the cart has
// no turn; empty: it has one, or needs none.
func (j *Judge) lookUpAlone(r *http.Request, p *Case) (took time.Duration, unnamed string, no *sale.Refusal) {
	if len(j.filters.Credentials.Looked()) == 0 {
		took, no = j.lookUpCart(r, p)
		return took, "", no
	}
	var turn *session.Exclusion // of the cart that the shop has named before
	var has []session.Key
	defer func() { turn.End() }()
	for range mostCartTurns + 1 {
		if took, no = j.lookUpCart(r, p); no != nil {
			return took, "", no
		}
		keys, unnamed, no := j.cartKeys(p, took)
		if no != nil || unnamed != "" || p.dryRun() {
			return took, unnamed, no
		}
		if keys = lacking(r, keys); !slices.ContainsFunc(keys, func(k session.Key) bool { return !slices.Contains(has, k) }) {
			p.Turn, turn = p.Turn.With(turn), nil
			hasTurnOf(r, has)
			return took, "", nil
		}
		meter.CountLookup("answered", took)
		turn.End()
		if turn, no = j.takeCart(r, p, keys); no != nil {
			return 0, "", no
		}
		has = keys
	}
	return 0, "", RefusePending
}

// cartKeys returns the credentials in the cart that the shop has told. unnamed says why there are none. An attempt
// is read first, because it may have no cart, and is refused if that has no id.
func (j *Judge) cartKeys(p *Case, took time.Duration) (keys []session.Key, unnamed string, no *sale.Refusal) {
	paths := j.filters.Credentials.Looked()
	ids, fault := inquiry.CartIDs(p.Document, paths)
	if fault != "" && p.Scope != scope.Attempt {
		meter.CountLookup(string(sale.Unavailable), took)
		return nil, "", j.unanswered(fault)
	}
	if keys = j.filters.Credentials.CartKeys(ids); len(keys) == 0 {
		unnamed = cmp.Or(fault, "lookup."+paths[0]+": it is not there")
	}
	return keys, unnamed, nil
}

// takeCart waits for the turn of a cart.
func (j *Judge) takeCart(r *http.Request, p *Case, keys []session.Key) (*session.Exclusion, *sale.Refusal) {
	ctx := r.Context()
	if p.Purpose == Sending {
		patient, cancel := context.WithTimeout(ctx, SessionPatience)
		defer cancel()
		ctx = patient
	}
	return j.take(ctx, r, keys)
}

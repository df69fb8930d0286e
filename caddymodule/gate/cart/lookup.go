package cart

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/gate/option/inquiry"
	"github.com/stockgate/stockgate/caddymodule/gate/option/session"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/internal/sale"
)

// With `one_at_a_time {lookup.…}` a request has the turn of its cart too, whose id the shop tells. A request takes the
// turn of its own credentials first, and then the turn of its cart: all requests wait in this order, so that no two wait
// for each other.

// mostCartTurns is for how many carts a request waits, one after the other, where its session gets another cart
// meanwhile.
const mostCartTurns = 3

// Contents is what the shop has said about a cart.
type Contents struct {
	Document []byte
	// Took is how long it took; 0: it is remembered.
	Took time.Duration
	// Unnamed says why the cart has no turn; empty: it has one, or needs none.
	Unnamed string
}

// PassAlone lets a request that is no attempt wait for its turn.
func (c *Clerk) PassAlone(r *http.Request, v Visitor) *sale.Refusal {
	no := c.TakeTurn(r, v)
	if no != nil || len(c.filters.Credentials.Looked()) == 0 || !c.filters.Credentials.MayChange(r) || !c.waits(r, v) {
		return no
	}
	if len(v.Keys) == 0 && !inquiry.HasCredential(r) { // the shop would make a session for a stranger
		return nil
	}
	told, no := c.LookUp(r, v)
	switch {
	case no != nil && (no.Reason == sale.NoCart || no.Reason == sale.NoBuyer):
		return nil // it has no cart that it could change
	case no != nil:
		return no
	}
	meter.CountLookup("answered", told.Took)
	c.heard.HeardAgain(c.log, c.filters.Lookup.Host())
	if c.noID.Note(told.Unnamed != "") {
		c.log.Warn("the shop named no cart for any of 200 requests, which did not wait for each other therefore: does one_at_a_time read the right place?", zap.String("answer", told.Unnamed))
	}
	return nil
}

// LookUp asks the shop for the cart of a request. With a credential in the cart it does so until the request has the
// turn of the very cart that the shop names: no other request may change that one until the turn ends.
func (c *Clerk) LookUp(r *http.Request, v Visitor) (told Contents, no *sale.Refusal) {
	if len(c.filters.Credentials.Looked()) == 0 {
		return c.ask(r, v)
	}
	var turn *session.Exclusion // of the cart that the shop has named before
	var has []session.Key
	defer func() { turn.End() }()
	for range mostCartTurns + 1 {
		if told, no = c.ask(r, v); no != nil {
			return told, no
		}
		var keys []session.Key
		keys, told.Unnamed, no = c.cartKeys(v, told)
		if no != nil || told.Unnamed != "" || v.DryRun {
			return told, no
		}
		if keys = lacking(r, keys); !slices.ContainsFunc(keys, func(k session.Key) bool { return !slices.Contains(has, k) }) {
			v.Turn, turn = v.Turn.With(turn), nil
			hasTurnOf(r, has)
			return told, nil
		}
		meter.CountLookup("answered", told.Took)
		turn.End()
		if turn, no = c.take(r, v, keys); no != nil {
			return Contents{}, no
		}
		has = keys
	}
	return Contents{}, refuse.Pending
}

// asks returns what asks the shop about the cart of a request.
func (c *Clerk) asks(v Visitor) *inquiry.Inquiry {
	if v.HasWaited {
		return cmp.Or(c.Verifying, c.filters.Lookup)
	}
	return c.filters.Lookup
}

// ask asks the shop for the cart of a request, and remembers what it says of an attempt's.
func (c *Clerk) ask(r *http.Request, v Visitor) (told Contents, no *sale.Refusal) {
	began, lookup := time.Now(), c.filters.Lookup
	values := lookup.Told(map[string][]byte{"jwt": v.Claims})
	values["ref"] = v.Ref
	answer, err := c.asks(v).Ask(r.Context(), inquiry.BuyerOf(r), func(name string) string { return values[name] })
	no, why := inquiry.Refusal(r.Context(), answer, err, c.filters.Operations != nil && c.filters.Operations.ReadsGraphQL())
	if why != "" {
		no = c.Unanswered(why)
	}
	if errors.Is(err, inquiry.ErrNoValue) && lookup.ByRef() && !slices.ContainsFunc(lookup.Names(), func(name string) bool { return name != "ref" && values[name] == "" }) {
		no = sale.Refuse(sale.NoCart) // there is no cart of this name
	}
	told.Took = max(time.Since(began), 1)
	if no != nil {
		meter.CountLookup(string(no.Reason), told.Took)
		return told, no
	}
	if told.Document = answer.Body; v.IsAttempt && !v.DryRun {
		c.carts.Remember(v.Keys, v.question(r), answer.Body, time.Now())
	}
	return told, nil
}

// cartKeys returns the credentials in the cart that the shop has told. unnamed says why there are none. An attempt
// is read first, because it may have no cart, and is refused if that has no id.
func (c *Clerk) cartKeys(v Visitor, told Contents) (keys []session.Key, unnamed string, no *sale.Refusal) {
	paths := c.filters.Credentials.Looked()
	ids, fault := inquiry.CartIDs(told.Document, paths)
	if fault != "" && !v.IsAttempt {
		meter.CountLookup(string(sale.Unavailable), told.Took)
		return nil, "", c.Unanswered(fault)
	}
	if keys = c.filters.Credentials.CartKeys(ids); len(keys) == 0 {
		unnamed = cmp.Or(fault, "lookup."+paths[0]+": it is not there")
	}
	return keys, unnamed, nil
}

// Unanswered refuses a request whose cart the shop did not show, and logs why.
func (c *Clerk) Unanswered(why string) *sale.Refusal {
	c.heard.Lost(c.log, c.filters.Lookup.Host(), why)
	return refuse.Unavailable
}

// Count counts a lookup that the shop has answered, and says in the log where the answer is no cart. unread is the fault
// in it; empty: none. word is how the lookup ended, a label of the metric.
func (c *Clerk) Count(told Contents, word, unread string) {
	if meter.CountLookup(word, told.Took); word != string(sale.Unavailable) {
		c.heard.Heard(c.log, c.filters.Lookup.Host(), unread)
	}
}

package cart

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/gate/option/session"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/internal/sale"
)

// sessionPatience is how long an order whose turn has come waits for the requests of its session. Its place at the shop
// is kept for it so long.
const sessionPatience = 500 * time.Millisecond

// turnVar is the variable of a request that has the credentials whose turn it has, a *heldTurns: another
// gate in its route must not wait for them. The variable stays when the turn ends: a dial of reverse_proxy that goes on in
// the background reads the map of variables.
const turnVar = "stockgate.turn"

type heldTurns struct{ keys []session.Key }

// heldBy returns the credentials whose turn a request has.
func heldBy(r *http.Request) []session.Key {
	if held, _ := caddyhttp.GetVar(r.Context(), turnVar).(*heldTurns); held != nil {
		return held.keys
	}
	return nil
}

// Session is what a request has of its session.
type Session struct {
	// Keys are its credentials.
	Keys []session.Key
	// Turn is what the request has while it is the only one of its session, or of its cart; nil: it has none.
	Turn *session.Exclusion
}

// EndTurn lets the next request of the session to the shop.
func (s *Session) EndTurn(r *http.Request) {
	if s.Turn != nil {
		s.Turn.End()
		if held, _ := caddyhttp.GetVar(r.Context(), turnVar).(*heldTurns); held != nil { // a judge around this one goes on
			held.keys = slices.DeleteFunc(held.keys, s.Turn.Has)
		}
		s.Turn = nil
	}
}

// TakeTurn waits until no other request of the session is at the shop.
func (c *Clerk) TakeTurn(r *http.Request, v Visitor) (no *sale.Refusal) {
	if v.Turn != nil || !c.filters.Credentials.MayChange(r) {
		return nil
	}
	var odd error
	v.Keys, odd = c.filters.Credentials.Keys(r, v.Repl)
	if !c.waits(r, v) {
		return nil
	}
	if odd != nil {
		return &sale.Refusal{Reason: sale.Malformed, Detail: odd.Error()}
	}
	missing := lacking(r, v.Keys)
	if len(missing) == 0 {
		return nil
	}
	if v.Turn, no = c.take(r, v, missing); no == nil {
		hasTurnOf(r, missing)
	}
	return no
}

// waits reports whether a request waits for others. A cart that is looked up for an attempt must not change,
// whatever is excepted.
func (c *Clerk) waits(r *http.Request, v Visitor) bool {
	lookedUp := c.filters.Lookup != nil && v.IsAttempt
	return !v.DryRun && (lookedUp || !c.filters.Credentials.Excepts(r, c.alsoQuery))
}

// lacking returns the credentials of which neither this judge nor one around it has the turn.
func lacking(r *http.Request, keys []session.Key) []session.Key {
	held := heldBy(r)
	return slices.DeleteFunc(slices.Clone(keys), func(k session.Key) bool { return slices.Contains(held, k) })
}

// hasTurnOf notes credentials whose turn the request has now.
func hasTurnOf(r *http.Request, keys []session.Key) {
	held, _ := caddyhttp.GetVar(r.Context(), turnVar).(*heldTurns)
	if held == nil {
		held = new(heldTurns)
		caddyhttp.SetVar(r.Context(), turnVar, held)
	}
	held.keys = append(slices.Clone(held.keys), keys...)
}

// take waits for the turn of credentials.
func (c *Clerk) take(r *http.Request, v Visitor, keys []session.Key) (*session.Exclusion, *sale.Refusal) {
	ctx := r.Context()
	if v.HasWaited {
		patient, cancel := context.WithTimeout(ctx, sessionPatience)
		defer cancel()
		ctx = patient
	}
	client, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	turn, shared, err := session.Take(ctx, keys, client, c.edges())
	if shared && session.WarnShared() {
		c.log.Warn("clients of several addresses wait for one credential of one_at_a_time: is it an API key of the shop, and not that of a session?",
			zap.Strings("credentials", c.setup.OneAtATime.Credentials))
	}
	switch {
	case errors.Is(err, session.ErrPending):
		return nil, refuse.Pending
	case err != nil: // the client has left
		return nil, refuse.Unavailable
	}
	return turn, nil
}

// edges is where the edges agree on turns; nil: this one alone has them.
func (c *Clerk) edges() session.Edges {
	if !c.setup.OneAtATime.Shared {
		return nil
	}
	if d := c.setup.App.Runtime(); d != nil {
		return d
	}
	return session.NoEdges{}
}

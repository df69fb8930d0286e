package judge

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/gate/option/session"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/filters/scope"
	"github.com/stockgate/stockgate/internal/sale"
)

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

// TakeTurn waits until no other request of the session is at the shop.
func (j *Judge) TakeTurn(r *http.Request, p *Case) (no *sale.Refusal, ends bool) {
	if p.Turn != nil || !j.filters.Credentials.MayChange(r) {
		return nil, false
	}
	var odd error
	p.Keys, odd = j.filters.Credentials.Keys(r, p.Repl)
	if !j.waits(r, p) {
		return nil, false
	}
	if odd != nil {
		return &sale.Refusal{Reason: sale.Malformed, Detail: odd.Error()}, false
	}
	missing := lacking(r, p.Keys)
	if len(missing) == 0 {
		return nil, false
	}
	if p.Turn, no = j.take(r.Context(), r, missing); no == nil {
		hasTurnOf(r, missing)
	}
	return no, false
}

// waits reports whether a request waits for others. A cart that is looked up for an attempt must not change,
// whatever is excepted.
func (j *Judge) waits(r *http.Request, p *Case) bool {
	lookedUp := j.filters.Lookup != nil && p.Scope == scope.Attempt
	return !p.dryRun() && (lookedUp || !j.filters.Credentials.Excepts(r, j.guarded.AlsoQuery))
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

// take waits for the turn of credentials until ctx ends.
func (j *Judge) take(ctx context.Context, r *http.Request, keys []session.Key) (*session.Exclusion, *sale.Refusal) {
	client, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	turn, shared, err := session.Take(ctx, keys, client, j.edges())
	if shared && session.WarnShared() {
		j.log.Warn("clients of several addresses wait for one credential of one_at_a_time: is it an API key of the shop, and not that of a session?",
			zap.Strings("credentials", j.OneAtATime.Credentials))
	}
	switch {
	case errors.Is(err, session.ErrPending):
		return nil, RefusePending
	case err != nil: // the client has left
		return nil, refuse.Unavailable
	}
	return turn, nil
}

// edges is where the edges agree on turns; nil: this one alone has them.
func (j *Judge) edges() session.Edges {
	if !j.OneAtATime.Shared {
		return nil
	}
	if d := j.App.Runtime(); d != nil {
		return d
	}
	return session.NoEdges{}
}

// EndTurn lets the next request of the session to the shop.
func (p *Case) EndTurn(r *http.Request) {
	if p.Turn != nil {
		p.Turn.End()
		if held, _ := caddyhttp.GetVar(r.Context(), turnVar).(*heldTurns); held != nil { // a judge around this one goes on
			held.keys = slices.DeleteFunc(held.keys, p.Turn.Has)
		}
		p.Turn = nil
	}
}

package gate

import (
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

// turnVar is the variable of a request that has the credentials whose turn it has: another
// gate in its route must not wait for them.
const turnVar = "stockgate.turn"

// takeTurn waits until no other request of the session is at the shop.
func (j *Judge) takeTurn(r *http.Request, p *purchase) (no *sale.Refusal, ends bool) {
	if p.turn != nil || !j.credentials.MayChange(r) {
		return nil, false
	}
	var odd error
	p.keys, odd = j.credentials.Keys(r, p.repl)
	// a cart that is looked up must not change, whatever is excepted
	lookedUp := j.lookup != nil && p.scope == scope.Attempt
	if p.dryRun() || !lookedUp && j.credentials.Excepts(r, j.guarded.AlsoQuery) {
		return nil, false
	}
	if odd != nil {
		return &sale.Refusal{Reason: sale.Malformed, Detail: odd.Error()}, false
	}
	held, _ := caddyhttp.GetVar(r.Context(), turnVar).([]session.Key)
	missing := slices.DeleteFunc(slices.Clone(p.keys), func(k session.Key) bool { return slices.Contains(held, k) })
	if len(missing) == 0 {
		return nil, false
	}
	client, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	turn, shared, err := session.Take(r.Context(), missing, client, j.edges())
	if shared && session.WarnShared() {
		j.log.Warn("clients of several addresses wait for one credential of one_at_a_time: is it an API key of the shop, and not that of a session?",
			zap.Strings("credentials", j.OneAtATime.Credentials))
	}
	switch {
	case errors.Is(err, session.ErrPending):
		return refusePending, false
	case err != nil: // the client has left
		return refuse.Unavailable, false
	}
	p.turn = turn
	caddyhttp.SetVar(r.Context(), turnVar, append(slices.Clone(held), missing...))
	return nil, false
}

// edges is where the edges agree on turns; nil: this one alone has them.
func (j *Judge) edges() session.Edges {
	if !j.OneAtATime.Shared {
		return nil
	}
	if d := j.app.Runtime(); d != nil {
		return d
	}
	return session.NoEdges{}
}

// endTurn lets the next request of the session to the shop.
func (p *purchase) endTurn(r *http.Request) {
	if p.turn != nil {
		p.turn.End()
		p.turn = nil
		caddyhttp.SetVar(r.Context(), turnVar, nil)
	}
}

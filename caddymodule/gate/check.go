package gate

import (
	"errors"
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/caddymodule/internal/reply"
)

// pass hands on a request without a reservation, because the gate only checks or an item is
// unlisted. The request is unchanged, has no token, and still ends with its client.
func (g *Gate) pass(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, p *purchase) error {
	meter.CountAttempt(p.saleID(), "passed", "")
	reply.Publish(r, p.repl, reply.Placeholders{Verdict: "passed", Sale: p.saleID()})
	return next.ServeHTTP(w, r)
}

// checkConflict reports options that a gate that only checks cannot use.
func (g *Gate) checkConflict() error {
	for _, one := range []struct {
		there bool
		name  string
	}{
		{len(g.Ref) > 0, "ref"},
		{g.Repeats != nil, "repeats"},
		{len(g.Idempotency) > 0, "idempotency"},
		{g.IdempotencyTTL != 0, "idempotency_ttl"},
		{g.Outcome != "", "outcome"},
		{len(g.Answers) > 0, "@name"},
		{len(g.Rules) > 0, "confirm or release"},
		{g.InDoubt != nil, "in_doubt"},
		{g.HoldFor != 0, "hold_for"},
		{g.ForwardTimeout != 0, "forward_timeout"},
		{g.MaxInFlight != 0, "max_in_flight"},
	} {
		if one.there {
			return errors.New("check reserves nothing, so it takes no " + one.name + ": put that into the gate of the order route")
		}
	}
	return nil
}

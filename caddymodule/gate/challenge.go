package gate

import (
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/pow"
	"github.com/stockgate/stockgate/challenge"
	"github.com/stockgate/stockgate/sale"
)

// challenged counts the attempt, and refuses it if it needs a solution and has none. It
// uses memory only; the sale comes from what the edge remembers.
func (g *Gate) challenged(r *http.Request, p *purchase) *sale.Refusal {
	if g.challenge.Challenger == nil || p.dryRun {
		return nil
	}
	now, keys := time.Now(), g.app.ChallengeKeys()
	scope := g.scopeOf(r, p.attempt, now)
	bits := g.challenge.Judge(now, keys, scope, g.challenge.Solution(r.Header))
	if bits == 0 {
		return nil
	}
	var room [pow.MaxTask]byte
	return &sale.Refusal{Reason: sale.Challenge, Challenge: string(challenge.AppendTask(room[:0], now, &keys[0], scope, bits))}
}

// scopeOf returns what a task for the attempt is bound to.
func (g *Gate) scopeOf(r *http.Request, a *sale.Attempt, now time.Time) challenge.Scope {
	ip, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	return challenge.Scope{Gate: g.challenge.Scope, Sale: g.likelySale(a, now), Address: ip}
}

// likelySale returns the sale that an attempt names, or else the first sale that lists its
// first item, preferably an open one; empty: this edge knows none.
func (g *Gate) likelySale(a *sale.Attempt, now time.Time) string {
	d := g.app.Runtime()
	if a.Sale != "" || d == nil {
		return a.Sale
	}
	likely := ""
	for _, l := range d.Catalogue().Listing(a.Lines[0].SKU) {
		if l.RefusalAt(now) == nil {
			return l.Sale.ID
		}
		if likely == "" {
			likely = l.Sale.ID
		}
	}
	return likely
}

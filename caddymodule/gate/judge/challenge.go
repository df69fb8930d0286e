package judge

import (
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/internal/sale"
)

// challenged counts the attempt, and refuses it if it needs a solution and has none. It
// uses memory only; the sale comes from what the edge remembers.
func (j *Judge) challenged(r *http.Request, p *Case) (no *sale.Refusal, ends bool) {
	now := time.Now()
	if no = j.filters.Challenge.Refuse(now, j.App.Keys().Challenge(), r.Header, j.likelySale(p.Attempt, now), clientAddress(r)); no != nil {
		meter.CountChallenge(j.filters.Challenge.Gate)
	}
	return no, false
}

// clientAddress is the address that Caddy trusts to be the client's; empty: it knows none.
func clientAddress(r *http.Request) string {
	ip, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	return ip
}

// likelySale returns the sale that an attempt names, or else the first sale that lists its
// first item, preferably an open one; empty: this edge knows none.
func (j *Judge) likelySale(a *sale.Attempt, now time.Time) string {
	d := j.App.Runtime()
	if a.Sale != "" || d == nil || len(a.Lines) == 0 {
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

// foreseeChallenge is challenged for an attempt that the gate may still count itself: it
// counts nothing and spends no solution.
func (j *Judge) foreseeChallenge(r *http.Request, s *Foresight) (no *sale.Refusal, leave bool) {
	return j.filters.Challenge.Foresee(&s.asked, s.now, j.App.Keys().Challenge(), r.Header, j.likelySale(s.purchase.Attempt, s.now), clientAddress(r)), false
}

// settleChallenge counts an attempt that is refused from memory, and spends its solution, as challenged
// would have done. It returns another refusal if the solution has been spent in the meantime; else no.
func (j *Judge) settleChallenge(s *Foresight, no *sale.Refusal) *sale.Refusal {
	if no.Reason == sale.Challenge {
		j.filters.Challenge.Count(s.now)
		meter.CountChallenge(j.filters.Challenge.Gate)
		return no
	}
	late := j.filters.Challenge.Settle(&s.asked, s.now, j.App.Keys().Challenge())
	if late == nil {
		return no
	}
	meter.CountChallenge(j.filters.Challenge.Gate)
	s.purchase.Listing, s.over, s.wait = nil, nil, 0 // neither the sale nor a rate refuses it
	return late
}

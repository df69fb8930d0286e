package gate

import (
	"net/http"
	"time"
	"unsafe"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/gate/option/pow"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/filters/challenge"
	"github.com/stockgate/stockgate/internal/sale"
)

// challenged counts the attempt, and refuses it if it needs a solution and has none. It
// uses memory only; the sale comes from what the edge remembers.
func (j *Judge) challenged(r *http.Request, p *purchase) (no *sale.Refusal, ends bool) {
	now, keys := time.Now(), j.app.ChallengeKeys()
	scope := j.scopeOf(r, p.attempt, now)
	bits := j.challenge.Judge(now, keys, scope, j.challenge.Solution(r.Header))
	if bits == 0 {
		return nil, false
	}
	meter.CountChallenge(j.challenge.Gate)
	var room [pow.MaxTask]byte
	return &sale.Refusal{Reason: sale.Challenge, Challenge: string(challenge.AppendTask(room[:0], now, &keys[0], scope, bits))}, false
}

// scopeOf returns what a task for the attempt is bound to.
func (j *Judge) scopeOf(r *http.Request, a *sale.Attempt, now time.Time) challenge.TaskScope {
	ip, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	return challenge.TaskScope{Gate: j.challenge.Scope, Sale: j.likelySale(a, now), Address: ip}
}

// likelySale returns the sale that an attempt names, or else the first sale that lists its
// first item, preferably an open one; empty: this edge knows none.
func (j *Judge) likelySale(a *sale.Attempt, now time.Time) string {
	d := j.app.Runtime()
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

// askedChallenge is what a fast refusal knows about the gate's challenge.
type askedChallenge struct {
	// reached: the attempt has reached the challenge, and counts if it is refused here.
	reached  bool
	scope    challenge.TaskScope
	solution string
	task     [pow.MaxTask]byte
	refusal  sale.Refusal
}

// foreseeChallenge is challenged for an attempt that the gate may still count itself: it
// counts nothing and spends no solution.
func (j *Judge) foreseeChallenge(r *http.Request, s *Foresight) (no *sale.Refusal, leave bool) {
	a := &s.asked
	a.reached, a.scope, a.solution = true, j.scopeOf(r, s.purchase.attempt, s.now), j.challenge.Solution(r.Header)
	keys := j.app.ChallengeKeys()
	return a.refuse(j.challenge.Foresee(s.now, keys, a.scope, a.solution), keys, s.now), false
}

// settleChallenge counts an attempt that is refused from memory, and spends its solution, as challenged
// would have done. It returns another refusal if the solution has been spent in the meantime; else no.
func (j *Judge) settleChallenge(s *Foresight, no *sale.Refusal) *sale.Refusal {
	a := &s.asked
	if no.Reason == sale.Challenge {
		j.challenge.Count(s.now)
		meter.CountChallenge(j.challenge.Gate)
		return no
	}
	keys := j.app.ChallengeKeys()
	late := a.refuse(j.challenge.Judge(s.now, keys, a.scope, a.solution), keys, s.now)
	if late == nil {
		return no
	}
	meter.CountChallenge(j.challenge.Gate)
	s.purchase.listing, s.over, s.wait = nil, nil, 0 // neither the sale nor a rate refuses it
	return late
}

// refuse makes the refusal in the memory of a. nil: no bits are required.
func (a *askedChallenge) refuse(bits int, keys []challenge.TaskKey, now time.Time) *sale.Refusal {
	if bits == 0 {
		return nil
	}
	task := challenge.AppendTask(a.task[:0], now, &keys[0], a.scope, bits)
	a.refusal = sale.Refusal{Reason: sale.Challenge, Challenge: unsafe.String(&task[0], len(task))}
	return &a.refusal
}

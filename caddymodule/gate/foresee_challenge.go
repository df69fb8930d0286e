package gate

import (
	"net/http"
	"time"
	"unsafe"

	"github.com/stockgate/stockgate/caddymodule/pow"
	"github.com/stockgate/stockgate/challenge"
	"github.com/stockgate/stockgate/sale"
)

// askedChallenge is what a fast refusal knows about the gate's challenge.
type askedChallenge struct {
	// reached: the attempt has reached the challenge, and counts if it is refused here.
	reached  bool
	scope    challenge.Scope
	solution string
	task     [pow.MaxTask]byte
	refusal  sale.Refusal
}

// foreseeChallenge is challenged for an attempt that the gate may still count itself: it
// counts nothing and spends no solution.
func (g *Gate) foreseeChallenge(r *http.Request, s *Foresight, now time.Time) *sale.Refusal {
	if g.challenge.Challenger == nil {
		return nil
	}
	a := &s.asked
	a.reached, a.scope, a.solution = true, g.scopeOf(r, s.purchase.attempt, now), g.challenge.Solution(r.Header)
	keys := g.app.ChallengeKeys()
	return a.refuse(g.challenge.Foresee(now, keys, a.scope, a.solution), keys, now)
}

// settleChallenge counts an attempt that is refused here with refusal no, and spends its
// solution, as the gate would have done. It returns another refusal if the solution has
// been spent in the meantime; nil: no stands.
func (g *Gate) settleChallenge(s *Foresight, now time.Time, no *sale.Refusal) *sale.Refusal {
	a := &s.asked
	switch {
	case !a.reached:
		return nil
	case no.Reason == sale.Challenge:
		g.challenge.Count(now)
		return nil
	}
	keys := g.app.ChallengeKeys()
	late := a.refuse(g.challenge.Judge(now, keys, a.scope, a.solution), keys, now)
	if late != nil {
		s.purchase.listing = nil // the sale has not judged it
	}
	return late
}

// refuse makes the refusal in the memory of a. nil: no bits are required.
func (a *askedChallenge) refuse(bits int, keys []challenge.Key, now time.Time) *sale.Refusal {
	if bits == 0 {
		return nil
	}
	task := challenge.AppendTask(a.task[:0], now, &keys[0], a.scope, bits)
	a.refusal = sale.Refusal{Reason: sale.Challenge, Challenge: unsafe.String(&task[0], len(task))}
	return &a.refusal
}

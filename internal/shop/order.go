package shop

import (
	"errors"
	"log/slog"
	"net/http"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/token"
)

// answer is what the order route says. Code is 0 for an order, else the reason.
type answer struct {
	Status      int    `json:"-"`
	Code        int    `json:"code"`
	Msg         string `json:"msg,omitempty"`
	OrderNo     string `json:"order_no,omitempty"`
	Reservation string `json:"reservation,omitempty"`
}

// of fills in what an answer says about the order, if it is about one.
func (a answer) of(jti string, no int64) answer {
	if a.Status == http.StatusCreated {
		a.OrderNo, a.Reservation = orderNo(no), jti
	}
	return a
}

func (a answer) write(w http.ResponseWriter) { writeJSON(w, a.Status, a) }

// refuse is the answer to a token that is not accepted, at present or at all.
func refuse(err error) answer {
	if errors.Is(err, token.ErrKeysUnavailable) {
		return answer{Status: http.StatusServiceUnavailable, Code: 503, Msg: err.Error()}
	}
	return answer{Status: http.StatusForbidden, Code: 403, Msg: err.Error()}
}

func broken(err error) answer {
	slog.Error("shop: database", "error", err)
	return answer{Status: http.StatusInternalServerError, Code: 500, Msg: "the shop's database failed"}
}

// purchase is one order as it was asked for.
type purchase struct {
	jti   string
	buyer string
	lines []sale.Line
}

// serveOrder handles one order: read it, check its token, decide once, answer.
// Misbehaviour, if any, happens before and after the decision.
func (s *Shop) serveOrder(w http.ResponseWriter, r *http.Request) {
	s.counts.attempts.Add(1)
	plan, err := s.plan(r)
	if err != nil {
		answer{Status: http.StatusBadRequest, Code: 400, Msg: err.Error()}.write(w)
		return
	}
	lines, err := readLines(w, r)
	if err != nil {
		answer{Status: http.StatusBadRequest, Code: 400, Msg: err.Error()}.write(w)
		return
	}
	p, refusal := s.check(r, lines)
	s.counts.token(p.jti)
	if refusal == nil || p.jti != "" {
		if !s.before(w, r, plan) {
			return
		}
		// What counts is the time at which the order is written, not that at which the
		// token arrived.
		if plan.delay > 0 {
			p, refusal = s.check(r, lines)
		}
	}
	if refusal != nil && p.jti == "" {
		s.counts.untrusted.Add(1)
		refusal.write(w)
		return
	}
	verdict := answer{Status: http.StatusCreated}
	switch {
	case refusal != nil:
		verdict = *refusal
	case plan.refuse != nil:
		verdict = *plan.refuse
	}
	stands, err := s.decide(r, p, verdict)
	if err != nil {
		broken(err).write(w)
		return
	}
	if stands.OrderNo == "" || s.after(w, r, plan) {
		stands.write(w)
	}
}

// check returns the purchase, and a refusal if it may not be sold. A purchase
// without jti in a shop that verifies belongs to no reservation: its token proves
// nothing.
func (s *Shop) check(r *http.Request, lines []sale.Line) (purchase, *answer) {
	users := r.Header.Values("X-User-Id")
	if len(users) > 1 {
		return purchase{}, &answer{Status: http.StatusBadRequest, Code: 400, Msg: "more than one X-User-Id"}
	}
	p := purchase{lines: lines, buyer: r.Header.Get("X-User-Id")}
	if s.verifier == nil {
		p.jti = peek(r)
		if p.buyer == "" {
			return p, &answer{Status: http.StatusUnauthorized, Code: 401, Msg: "no X-User-Id"}
		}
		return p, nil
	}
	signed, err := token.FromRequest(r)
	if err != nil {
		refusal := refuse(err)
		return p, &refusal
	}
	// Without the header the order belongs to the token's buyer.
	claims, err := s.verifier.VerifyContext(r.Context(), signed, token.Expect{Subject: p.buyer, AnySubject: p.buyer == "", Lines: lines})
	if claims != nil {
		p.jti, p.buyer = claims.ID, claims.Subject
	}
	if errors.Is(err, token.ErrSubject) {
		// Another buyer's reservation: its answer is not for this buyer, whose mistake
		// does not affect it.
		p.jti = ""
	}
	if err != nil {
		refusal := refuse(err)
		return p, &refusal
	}
	return p, nil
}

// decide stores the decision, unless the id has been decided before.
func (s *Shop) decide(r *http.Request, p purchase, verdict answer) (answer, error) {
	if s.verifier == nil && verdict.Status != http.StatusCreated {
		return verdict, nil
	}
	stands, _, err := s.store.decide(r.Context(), decision{
		jti:      p.jti,
		verified: s.verifier != nil,
		answer:   verdict,
		buyer:    p.buyer,
		lines:    p.lines,
	})
	return stands, err
}

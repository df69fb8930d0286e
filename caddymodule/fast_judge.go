package caddymodule

import (
	"slices"
	"strings"

	"github.com/stockgate/stockgate/attempt"
	"github.com/stockgate/stockgate/fastpath"
	"github.com/stockgate/stockgate/sale"
)

// Concerns says whether a request leads to a gate that may be refused for here.
func (p *fastPlan) Concerns(f *fastpath.Request) bool {
	m, ok := f.Memo.(*fastMemo)
	path, query, _ := strings.Cut(f.Target, "?")
	if query != "" && p.readsQuery(query) {
		return false
	}
	if ok && m.k != nil && m.k.kept && m.k.is(f.Method, f.Host, path) {
		return true
	}
	k := p.wayOf(f, path)
	if !ok {
		if k == nil {
			return false
		}
		m = new(fastMemo)
		f.Memo = m
	}
	m.k = k
	return k != nil
}

// readsQuery says whether a query may matter to what a guard refuses: what is known of a
// way is known of its path alone.
func (p *fastPlan) readsQuery(query string) bool {
	if strings.IndexByte(query, '#') >= 0 || strings.Contains(query, "_method") {
		return true
	}
	return slices.ContainsFunc(p.gates, func(g *Gate) bool { return g.Routes().namesQueries() })
}

// Judge refuses a request in the place of its gate, if the gate would.
func (p *fastPlan) Judge(out []byte, f *fastpath.Request) ([]byte, bool) {
	m := f.Memo.(*fastMemo)
	k := m.k
	g := k.way.gate
	s := takeScratch()
	defer s.giveBack()
	s.lay(f, k)
	r := &s.request
	if guard := k.way.guard; guard != nil {
		if why := k.way.why; why != "" {
			out, a := guard.Refuser().appendAnswer(out, &sale.Refusal{Reason: sale.Malformed, Detail: why}, nil, 0, r.Method, f.Now)
			return out, countFastGuard(a)
		}
	}
	if s.strip {
		s.stripped(k.way.guard, g)
	}
	now := f.Now
	if g.asksIP() {
		m.client(s, p.server, now)
	}
	s.out = out
	v := g.Foresee(r, f.Body, &s.foresight, now)
	out, now = s.out, f.Now // it may have waited
	if v.no == nil {
		return out, false
	}
	out, a := g.Refuser().appendAnswer(out, v.no, v.over, v.wait, r.Method, now)
	return out, g.countFast(a, s.foresight.saleID())
}

// stripped removes what guard and gate remove.
func (s *fastScratch) stripped(guard *Guard, g *Gate) {
	if guard != nil {
		guard.strip(&s.request)
	}
	stripReserved(&s.request)
	if !g.Check {
		attempt.StripMethodOverride(s.request.Header)
	}
}

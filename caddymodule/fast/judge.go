package fast

import (
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/caddymodule/gate/waitlist"
	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/internal/fastpath"
	"github.com/stockgate/stockgate/internal/sale"
)

// Concerns reports whether a request leads to a gate whose refusals are written here.
func (p *RoutePlan) Concerns(f *fastpath.Request) (concerns bool) {
	defer func() {
		if fault := recover(); fault != nil {
			logPanic(fault)
			concerns = false
		}
	}()
	if p.strictSNI && f.TLS != nil && !isServerName(f) {
		return false // Caddy answers 421
	}
	m, ok := f.Memo.(*memo)
	path, query, _ := strings.Cut(f.Target, "?")
	if query != "" && p.readsQuery(query) {
		return false
	}
	decides := query != "" && p.matchesQueries()
	if ok && m.k != nil && m.k.kept && !decides && m.k.is(f.Method, f.Host, path) {
		return true
	}
	k := p.wayOf(f, path, decides)
	if !ok {
		if k == nil {
			return false
		}
		m = new(memo)
		f.Memo = m
	}
	m.k = k
	return k != nil
}

// isServerName reports whether a request is for the server that the client has named in the
// handshake, as Caddy compares the two.
func isServerName(f *fastpath.Request) bool {
	host, _, err := net.SplitHostPort(f.Host)
	if err != nil {
		host = f.Host
	}
	return strings.EqualFold(f.TLS.ServerName, host)
}

// readsQuery reports whether a query may change what a guard refuses. The route cache knows
// paths only.
func (p *RoutePlan) readsQuery(query string) bool {
	if strings.IndexByte(query, '#') >= 0 || attempt.OverridesMethod(nil, query) {
		return true
	}
	return slices.ContainsFunc(p.judges, func(j *judge.Judge) bool { return j.Routes().NamesQueries() })
}

// matchesQueries reports whether a query may decide where a request leads. The route cache knows
// paths only.
func (p *RoutePlan) matchesQueries() bool {
	return slices.ContainsFunc(p.judges, func(j *judge.Judge) bool { return j.Routes().MatchesQueries() }) ||
		slices.ContainsFunc(p.guards, func(g *guard.Guard) bool { return g.Routes().MatchesQueries() })
}

// Judge refuses a request for its gate, if the gate would refuse it, or tells where a person stands on a waiting list. Where too many attempts wait
// for Redis, the connection waits until there is room. A request at which a module panics is left to
// Caddy, as any that is not refused.
func (p *RoutePlan) Judge(out []byte, f *fastpath.Request) (answer []byte, ok bool) {
	m := f.Memo.(*memo)
	defer func() {
		m.room = judge.NotAwaited
		if fault := recover(); fault != nil {
			logPanic(fault)
			answer, ok = out, false
		}
	}()
	if m.room == judge.NotAwaited {
		m.began = f.Now
	}
	answer, ok, crowd := p.judge(out, f, m)
	if crowd != nil {
		f.Await(func() { m.room = crowd.AwaitRoom() })
	}
	return answer, ok
}

// logPanic logs that a module panicked at a request, which is left to Caddy: over HTTP/2 no server
// recovers here, and the process would end.
func logPanic(fault any) {
	caddy.Log().Named("caddy.listeners.stockgate").Error("a panic while a request was judged; the request goes on to its handlers", zap.Any("fault", fault), zap.ByteString("stack", debug.Stack()))
}

// judge judges a request. With a crowd it is to be judged again.
func (p *RoutePlan) judge(out []byte, f *fastpath.Request, m *memo) ([]byte, bool, *judge.Crowd) {
	k := m.k
	j := k.destination.judge
	s := takeScratch()
	defer s.giveBack()
	s.lay(f, k)
	r := &s.request
	if guard := k.destination.guard; guard != nil {
		if why := k.destination.why; why != "" {
			out = f.Room(out)
			from := len(out)
			out, a := guard.Refuser().AppendAnswer(out, &sale.Refusal{Reason: sale.Malformed, Detail: why}, nil, 0, r, f.Now)
			if !judge.CountFastGuard(a) {
				return out, false, nil
			}
			out = p.announce(out, from)
			p.record(f, j, out[from:], a.Status, f.Now)
			return out, true, nil
		}
	}
	if k.destination.places != nil {
		out, ok := p.tellPlace(out, f, s, k)
		return out, ok, nil
	}
	if j.IsBypassed() {
		return out, false, nil
	}
	if s.strip {
		s.stripped(k.destination.guard, j)
	}
	now := f.Now
	if j.AsksIP() {
		m.client(s, p.server, now)
	}
	s.out = out
	s.foresight.Arrival = judge.Arrival{At: f.Since, Waiting: m.waits(f)}
	s.foresight.Why, _ = f.Why.(*sale.Refusal)
	s.foresight.Room = m.room
	v := j.Foresee(r, f.Body, &s.foresight, now)
	out, now = s.out, f.Now // Foresee may have waited
	if v.Refusal == nil {
		if v.Later {
			f.Postpone(s.foresight.Arrival.At, s.foresight.Why)
		}
		return out, false, v.Crowd
	}
	out = f.Room(out)
	from := len(out)
	out, a := j.Refuser().AppendAnswer(out, v.Refusal, v.Over, v.Wait, r, now)
	if !j.CountFast(a, s.foresight.SaleID(), m.began) {
		return out, false, nil
	}
	out = p.announce(out, from)
	p.record(f, j, out[from:], a.Status, m.began)
	return out, true, nil
}

// tellPlace answers where a person stands on a waiting list, unless the client asks for more.
func (p *RoutePlan) tellPlace(out []byte, f *fastpath.Request, s *scratch, k *cachedRoute) ([]byte, bool) {
	for name, value := range f.Fields {
		if waitlist.AsksMore(name, value) {
			return out, false
		}
	}
	out = f.Room(out)
	from := len(out)
	out, ok := k.destination.places.AppendPlace(out, &s.request, f.Now)
	if !ok {
		return out, false
	}
	out = p.announce(out, from)
	p.record(f, k.destination.judge, out[from:], http.StatusOK, f.Now)
	return out, true
}

// stripped removes the headers that guard and gate remove.
func (s *scratch) stripped(before *guard.Guard, j *judge.Judge) {
	if before != nil {
		before.Strip(&s.request)
	}
	guard.StripReserved(&s.request)
	if !j.OnlyChecks() {
		attempt.StripMethodOverride(s.request.Header)
	}
}

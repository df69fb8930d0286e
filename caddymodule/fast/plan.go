package fast

import (
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/gate"
	"github.com/stockgate/stockgate/caddymodule/gate/check"
	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/caddymodule/gate/waitlist"
	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/caddymodule/internal/accesslog"
	"github.com/stockgate/stockgate/caddymodule/status"
	"github.com/stockgate/stockgate/filters/attempt"
)

// RoutePlan is a server's routes as far as they decide which gate a request reaches, and
// which handlers come before it. Matchers are Caddy's own objects, evaluated in Caddy's order.
type RoutePlan struct {
	server *caddyhttp.Server
	steps  []planStep
	judges []*judge.Judge // of the gates and checks that can be reached
	guards []*guard.Guard
	known  routeCache
	altSvc []byte // a header field of each answer; nil: none
	// strictSNI: a request over TLS must be for the server that the handshake has named.
	strictSNI bool
	access    *accesslog.Log // nil: refusals are not logged
}

// planStep is a route.
type planStep struct {
	sets     [][]matcher // one of them must match; none: always
	opaque   string      // a matcher that cannot be evaluated here; empty: all can
	group    string
	terminal bool
	acts     []planAct
}

// planAct is a handler of a route. One of its fields is set.
type planAct struct {
	guard *guard.Guard
	judge *judge.Judge // of a gate, a stockgate_check or a stockgate_waitlist
	// places is the stockgate_waitlist that has the judge; nil: another handler has it.
	places *waitlist.WaitlistHandler
	status *status.Status
	steps  []planStep // a subroute's
	sub    bool
	// other is the module of any other handler; ends: it never calls the next one.
	other string
	ends  bool
}

// Compile compiles the routes of a server that is ready to start.
func Compile(s *caddyhttp.Server) *RoutePlan {
	p := &RoutePlan{server: s, strictSNI: s.StrictSNIHost != nil && *s.StrictSNIHost}
	p.altSvc, _ = altSvc(s)
	p.steps = p.compile(s.Routes, nil)
	p.reach(p.steps, blocksNone)
	return p
}

// compile compiles routes. invoked are the named routes around them.
func (p *RoutePlan) compile(routes caddyhttp.RouteList, invoked []string) []planStep {
	steps := make([]planStep, 0, len(routes))
	for i := range routes {
		r := &routes[i]
		s := planStep{group: r.Group, terminal: r.Terminal}
		s.sets, s.opaque = matchersOf(r.MatcherSets)
		for _, h := range r.Handlers {
			if act, counts := p.act(h, invoked); counts {
				s.acts = append(s.acts, act)
			}
		}
		steps = append(steps, s)
	}
	return steps
}

// act compiles a handler. false: it changes nothing that a fast refusal depends on.
func (p *RoutePlan) act(h caddyhttp.MiddlewareHandler, invoked []string) (planAct, bool) {
	switch h := h.(type) {
	case *guard.Guard:
		p.guards = append(p.guards, h)
		return planAct{guard: h}, true
	case *gate.Gate:
		return planAct{judge: &h.Judge}, true
	case *check.Check:
		return planAct{judge: &h.Judge}, true
	case *waitlist.WaitlistHandler:
		return planAct{judge: &h.Judge, places: h}, true
	case *status.Status:
		return planAct{status: h}, true
	case *caddyhttp.Subroute:
		return planAct{sub: true, steps: p.compile(h.Routes, invoked)}, true
	case *caddyhttp.Invoke:
		if route := p.server.NamedRoutes[h.Name]; route != nil && !slices.Contains(invoked, h.Name) {
			return planAct{sub: true, steps: p.compile(caddyhttp.RouteList{*route}, append(slices.Clone(invoked), h.Name))}, true
		}
	}
	if vars, ok := h.(*caddyhttp.VarsMiddleware); ok && !setsClientIP(*vars) {
		return planAct{}, false
	}
	name := "a handler that is not known"
	if m, ok := h.(caddy.Module); ok {
		name = string(m.CaddyModule().ID)
	}
	return planAct{other: name, ends: slices.Contains(endingHandlers, name)}, !slices.Contains(harmlessHandlers, name)
}

// harmlessHandlers set placeholders, which a gate with fast refusals does not read, and
// choose what is logged.
var harmlessHandlers = []string{"http.handlers.map", "http.handlers.log_append"}

// setsClientIP reports whether variables may change a client's IP.
func setsClientIP(vars caddyhttp.VarsMiddleware) bool {
	for name := range vars {
		if name == caddyhttp.ClientIPVarKey || guard.HasPlaceholder(name) {
			return true
		}
	}
	return false
}

// endingHandlers answer every request themselves.
var endingHandlers = []string{
	"http.handlers.static_response", "http.handlers.reverse_proxy", "http.handlers.error",
}

// What stands before a position in the routes: nothing, handlers that `fast_refusals force`
// skips, or a handler that no request can pass here.
const (
	blocksNone = iota
	blocksUnlessForced
	blocksAll
)

// reach notes the gates that requests can reach. before is what stands before these routes.
// It returns what stands before the routes that follow, for a request that every route
// without a matcher has handled.
func (p *RoutePlan) reach(steps []planStep, before int) int {
	for i := range steps {
		s := &steps[i]
		if s.opaque != "" {
			before = max(before, s.blocks())
			continue
		}
		inner := before
		for _, a := range s.acts {
			switch {
			case a.judge != nil && a.judge.FastRefusals != nil && (inner == blocksNone || inner == blocksUnlessForced && a.judge.FastRefusals.Force):
				p.judges = append(p.judges, a.judge)
			case a.sub:
				inner = p.reach(a.steps, inner)
			case a.other != "" && a.ends:
				inner = blocksAll
			case a.other != "":
				inner = max(inner, blocksUnlessForced)
			}
		}
		if len(s.sets) == 0 { // a request that does not match skips it
			before = inner
		}
	}
	return before
}

// blocks returns what a route whose matcher cannot be evaluated means for all that follows.
func (s *planStep) blocks() int {
	switch {
	case s.terminal || slices.ContainsFunc(s.acts, func(a planAct) bool { return a.sub || a.judge != nil }):
		return blocksAll
	case len(s.acts) > 0:
		return blocksUnlessForced
	}
	return blocksNone
}

// Reaches reports whether requests can reach a gate, so that its refusals may be written here.
func (p *RoutePlan) Reaches(j *judge.Judge) bool { return slices.Contains(p.judges, j) }

// Obstacle says what stands before a gate that Reaches does not report.
func (p *RoutePlan) Obstacle(j *judge.Judge) string {
	var before []string
	var look func(steps []planStep) bool
	look = func(steps []planStep) bool {
		for i := range steps {
			s := &steps[i]
			if s.opaque != "" {
				before = append(before, "the matcher "+s.opaque)
			}
			outside := len(before)
			for _, a := range s.acts {
				switch {
				case a.judge == j:
					return true
				case a.sub:
					if look(a.steps) {
						return true
					}
				case a.other != "":
					before = append(before, a.other)
				}
			}
			if s.opaque != "" { // the matcher precedes only what is in its route
				before = before[:outside]
			}
		}
		return false
	}
	if !look(p.steps) {
		return "it stands behind a handler whose routes are not known here"
	}
	slices.Sort(before)
	return "what stands before it can change the answer: " + strings.Join(slices.Compact(before), ", ") +
		"; move it behind the gate, or write `fast_refusals force`"
}

// routeDestination is where a request leads: to a gate, or to the HTTP server.
type routeDestination struct {
	judge *judge.Judge // nil: the HTTP server
	// places answers the request, which asks where a person stands; nil: the judge may refuse it.
	places *waitlist.WaitlistHandler
	// guard is the last one before the gate; nil: there is none. why is the reason if it refuses.
	guard *guard.Guard
	why   string
}

// walk is one request on its way through the plan.
type walk struct {
	groups      []string // groups that have matched
	vague       []string // groups of which it is not known whether they have matched
	skipped     bool     // a handler that runs before the gate was skipped
	headers     bool     // a matcher or guard has read headers or query
	destination routeDestination
}

// walk follows the routes as Caddy does. It returns false where the request has reached its
// destination, w.destination, and true where it continues with the routes that follow.
func (w *walk) walk(steps []planStep, r *http.Request) bool {
	for i := range steps {
		s := &steps[i]
		switch {
		case s.group != "" && slices.Contains(w.groups, s.group):
			continue
		case s.group != "" && slices.Contains(w.vague, s.group):
			return false
		case s.opaque != "":
			if s.blocks() == blocksAll {
				return false
			}
			if s.group != "" {
				w.vague = append(w.vague, s.group)
			}
			w.skipped = w.skipped || s.blocks() == blocksUnlessForced
			continue
		}
		if matches, err := w.match(s.sets, r); err != nil {
			return false
		} else if !matches {
			continue
		}
		if s.group != "" {
			w.groups = append(w.groups, s.group)
		}
		for j := range s.acts {
			if !w.act(&s.acts[j], r) {
				return false
			}
		}
		if s.terminal {
			return false
		}
	}
	return true
}

// act takes a request through a handler. It returns false where the request goes no further.
func (w *walk) act(a *planAct, r *http.Request) bool {
	switch {
	case a.guard != nil:
		a.guard.Strip(r)
		if w.destination.why == "" {
			if why, closed := w.refusedBy(a.guard.Routes(), r); why != "" && (w.skipped || closed) {
				return false
			} else if w.destination.guard = a.guard; why != "" {
				w.destination.why = why
			}
		}
	case a.status != nil:
		return !a.status.Answers(r)
	case a.judge != nil:
		if w.destination.guard == nil {
			if why, _ := w.refusedBy(a.judge.Routes(), r); why != "" {
				return false
			}
		}
		if a.judge.FastRefusals != nil && (!w.skipped || a.judge.FastRefusals.Force) {
			w.lead(a, r.Method)
		}
		return false
	case a.sub:
		return w.walk(a.steps, r)
	case a.ends:
		return false
	default:
		w.skipped = true
	}
	return true
}

// lead notes that a request leads to a judge. A stockgate_waitlist judges those who enter, and tells those who ask.
func (w *walk) lead(a *planAct, method string) {
	switch {
	case a.places == nil || method == http.MethodPost:
		w.destination.judge = a.judge
	case method == http.MethodGet || method == http.MethodHead:
		w.destination.judge, w.destination.places = a.judge, a.places
	}
}

// refusedBy says why a guard, or a gate without a guard, refuses a request. closed: it is for a closed
// door, whose answer the guard has.
func (w *walk) refusedBy(s *guard.Routes, r *http.Request) (why string, closed bool) {
	why, door, deep := s.Refuses(r)
	w.headers = w.headers || deep && !s.IsPlain() || r.Method != http.MethodGet && attempt.OverridesMethod(r.Header, "")
	return why, door != nil
}

package guard

import (
	"net/http"
	"slices"
	"sync"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/rewrite"

	"github.com/stockgate/stockgate/filters/route"
)

// Routes are the routes of a server that lead to gates. They tell which gates a request
// would reach if its target were another one. The matchers are Caddy's own objects. The
// routes are compiled on first use, because handlers behind a guard are provisioned after
// it.
type Routes struct {
	server http.Handler // a *caddyhttp.Server: see judge.HTTPServer; nil: there is none
	doors  []*Door      // of the guard
	once   sync.Once
	steps  []gateStep
	// methods has, for each way to a gate, the methods with which a request can take it;
	// nil: any.
	methods [][]string
	remade  bool // a rewrite changes methods
	// closed has, for each closed door, the methods to which it is closed; nil: any.
	closed [][]string
	// sees are the shapes, besides odd ones, that some gate's matcher does not normalize: a
	// server may normalize them.
	sees route.Shape
	// slashless: a matcher requires a trailing slash, which a server may not require.
	slashless bool
	// queries are the parameters that some server takes for a path (also_query).
	queries []queryRoute
	// matched is the number of query matchers.
	matched int
	// leaves: matchers or rewrites may set placeholders of a request.
	leaves bool
	// plain: the way depends only on method, host and path.
	plain bool
}

// queryRoute is a parameter with which a request may reach the routes of gates.
type queryRoute struct {
	path  route.QueryPath
	gates []*Gate
}

// gateStep is a route.
type gateStep struct {
	sets     caddyhttp.MatcherSets
	loose    [][]looseMatcher // the same, for readings
	group    string
	terminal bool
	door     bool // a closed door: only readings come to it
	acts     []gateAct
}

// gateAct is what a handler does on the way. One of its fields is set.
type gateAct struct {
	gate    *gateVisit
	rewrite *rewrite.Rewrite
	steps   []gateStep // a subroute's
}

// gateVisit is a gate at a place in the routes.
type gateVisit struct {
	*Gate
	// reads: the matchers before it name GET or HEAD.
	reads bool
}

// Of sets the server that the routes belong to, before first use; nil: there are none.
func (s *Routes) Of(server http.Handler) { s.server = server }

// serverOf returns the server of routes; nil: there is none.
func serverOf(s *Routes) *caddyhttp.Server {
	server, _ := s.server.(*caddyhttp.Server)
	return server
}

// ready compiles the routes once.
func (s *Routes) ready() *Routes {
	s.once.Do(func() {
		s.plain = true
		server := serverOf(s)
		if server == nil {
			return
		}
		s.steps, _ = compile(s, server.Routes, nil, nil)
		s.steps = append(s.doorSteps(s.doors), s.steps...)
	})
	return s
}

// NamesQueries reports whether some server takes a query parameter for a path.
func (s *Routes) NamesQueries() bool { return len(s.ready().queries) > 0 }

// MatchesQueries reports whether the way to a gate may depend on a query.
func (s *Routes) MatchesQueries() bool { return s.ready().matched > 0 }

// IsPlain reports whether the way to a gate depends only on method, host and path. The routes
// must be compiled.
func (s *Routes) IsPlain() bool { return s.plain }

// compile compiles routes, and reports whether they contain a gate or a rewrite: all others
// may be left out. methods are those that the matchers around them admit, nil: any; invoked
// are the named routes around them.
func compile(s *Routes, routes caddyhttp.RouteList, methods, invoked []string) (steps []gateStep, matters bool) {
	for i := range routes {
		r := &routes[i]
		inside := bothMethods(methods, setMethods(r.MatcherSets))
		step := gateStep{sets: r.MatcherSets, group: r.Group, terminal: r.Terminal}
		for _, h := range r.Handlers {
			s.act(&step, h, inside, invoked)
		}
		if len(step.acts) == 0 && step.group == "" && !step.terminal {
			continue
		}
		step.loose = s.loosen(r.MatcherSets)
		matters = matters || len(step.acts) > 0
		steps = append(steps, step)
	}
	if !matters {
		return nil, false
	}
	return steps, true
}

// act adds what a handler does to its step.
func (s *Routes) act(step *gateStep, h caddyhttp.MiddlewareHandler, methods, invoked []string) {
	switch h := h.(type) {
	case Handler:
		if h.Guarded().Shadow {
			return
		}
		s.methods = append(s.methods, methods)
		for _, path := range h.Guarded().AlsoQuery {
			s.addQuery(path, h.Guarded())
		}
		step.acts = append(step.acts, gateAct{gate: &gateVisit{h.Guarded(), slices.ContainsFunc(methods, isRead)}})
	case *rewrite.Rewrite:
		s.plain, s.leaves, s.remade = false, true, s.remade || h.Method != ""
		step.acts = append(step.acts, gateAct{rewrite: h})
	case *caddyhttp.Subroute:
		if steps, matters := compile(s, h.Routes, methods, invoked); matters {
			step.acts = append(step.acts, gateAct{steps: steps})
		}
	case *caddyhttp.Invoke:
		named := serverOf(s).NamedRoutes[h.Name]
		if named == nil || slices.Contains(invoked, h.Name) {
			return
		}
		around := append(slices.Clone(invoked), h.Name)
		if steps, matters := compile(s, caddyhttp.RouteList{*named}, methods, around); matters {
			step.acts = append(step.acts, gateAct{steps: steps})
		}
	}
}

// addQuery notes that a gate has named a parameter.
func (s *Routes) addQuery(path route.QueryPath, g *Gate) {
	i := slices.IndexFunc(s.queries, func(q queryRoute) bool { return q.path == path })
	if i < 0 {
		i = len(s.queries)
		s.queries = append(s.queries, queryRoute{path: path})
	}
	s.queries[i].gates = append(s.queries[i].gates, g)
}

// setMethods returns the methods that matcher sets admit; nil: any.
func setMethods(sets caddyhttp.MatcherSets) []string {
	var all []string
	for _, set := range sets {
		var in []string
		for _, m := range set {
			if m, ok := m.(*caddyhttp.MatchMethod); ok {
				in = *m
			}
		}
		if in == nil {
			return nil
		}
		all = append(all, in...)
	}
	return all
}

// bothMethods returns the methods that are in both; nil is any.
func bothMethods(a, b []string) []string {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	both := []string{}
	for _, m := range a {
		if slices.Contains(b, m) {
			both = append(both, m)
		}
	}
	return both
}

// admits reports whether a request with this method can reach any gate.
func (s *Routes) admits(method string) bool {
	for _, some := range s.methods {
		if s.remade || some == nil || slices.Contains(some, method) {
			return true
		}
	}
	return false
}

// question is one question: which gates does a request reach?
type question struct {
	loose bool // as some server may read it, not as Caddy does
	// emptyEnd: a route around matches only because a * at the end of its path stands for nothing.
	emptyEnd bool
	groups   []string
	gates    []*Gate
}

// walk follows the routes as Caddy does, past gates and past handlers that would answer,
// because another reading need not meet them. Where a route may match or not, both count: what is
// in it, and what follows. false: a route has ended the way.
func (v *question) walk(steps []gateStep, r *reading) bool {
	for i := range steps {
		s := &steps[i]
		if s.group != "" && slices.Contains(v.groups, s.group) || s.door && !v.loose {
			continue
		}
		matches := v.matches(s, r)
		if matches == no {
			continue
		}
		if s.group != "" && matches == yes {
			v.groups = append(v.groups, s.group)
		}
		around := v.emptyEnd
		v.emptyEnd = around || v.loose && r.emptyEnd
		goesOn := v.enter(s, r) && !s.terminal
		v.emptyEnd = around
		if !goesOn && matches == yes {
			return false
		}
	}
	return true
}

// enter takes a request through the handlers of a route. false: one of them has ended the way.
func (v *question) enter(s *gateStep, r *reading) bool {
	for i := range s.acts {
		switch a := &s.acts[i]; {
		case a.gate != nil:
			if !v.emptyEnd || !a.gate.passesPrefix(r, a.gate.reads) {
				v.gates = append(v.gates, a.gate.Gate)
			}
		case a.rewrite != nil:
			a.rewrite.Rewrite(r.Request, replacerOf(r.Request))
		case !v.walk(a.steps, r):
			return false
		}
	}
	return true
}

// matches asks the matchers of a route. An error makes Caddy answer, and is no match.
func (v *question) matches(s *gateStep, r *reading) matched {
	if !v.loose {
		ok, err := s.sets.AnyMatchWithError(r.Request)
		return answerOf(ok && err == nil)
	}
	return looseMatch(s.loose, r)
}

package guard

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/intercept"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/rewrite"
)

// exits has the gates of a server with the upstreams behind them, for the second check. It
// leaves out gates that only check, stockgate_check, and gates in shadow: no request has to meet one.
type exits struct {
	server *caddyhttp.Server
	once   sync.Once
	gates  []*exitGate
	// look has what the gates' matchers ignore.
	look Routes
}

// exitGate is a gate, with what a request for its route looks like when it leaves.
type exitGate struct {
	gate    *Gate
	guard   *Guard   // the door is closed only to requests that this guard has let pass; nil: it is no door
	methods []string // nil: any
	// chain has the matchers on the way to the gate, without hosts, unless a rewrite comes
	// after them; with exits_as it has only these paths. targeted: some of them match the path or the query.
	chain    [][][]looseMatcher
	targeted bool
	// dials are the upstreams behind the gate; anywhere: some of them are not known in
	// advance.
	dials    []string
	anywhere bool
}

// ready compiles the gates once, when all routes are provisioned.
func (e *exits) ready() *exits {
	e.once.Do(func() {
		if e.server == nil {
			return
		}
		e.look.server = e.server
		for site := range sites(e.server.Routes) {
			w := exitWalk{exits: e}
			w.routes(site, exitGate{}, nil)
			e.gates = append(e.gates, w.gates...)
		}
		e.gates = slices.DeleteFunc(e.gates, func(g *exitGate) bool {
			return g.gate.Check || g.gate.Shadow || !g.targeted || len(g.dials) == 0 && !g.anywhere
		})
	})
	return e
}

// sites splits a server's routes where requests go no further.
func sites(routes caddyhttp.RouteList) iter.Seq[caddyhttp.RouteList] {
	return func(yield func(caddyhttp.RouteList) bool) {
		from := 0
		for i := range routes {
			if routes[i].Terminal || i == len(routes)-1 {
				if !yield(routes[from : i+1]) {
					return
				}
				from = i + 1
			}
		}
	}
}

// ExitPaths prepares the paths of exits_as.
func ExitPaths(paths []string) (*caddyhttp.MatchPath, error) {
	for _, path := range paths {
		if !strings.HasPrefix(path, "/") || HasPlaceholder(path) {
			return nil, fmt.Errorf("exits_as: %q is no path: write it as the shop gets it, such as /api/order", path)
		}
	}
	m := caddyhttp.MatchPath(slices.Clone(paths))
	return &m, m.Provision(caddy.Context{})
}

// exitWalk walks the routes of one site, in the order in which they run.
type exitWalk struct {
	exits *exits
	gates []*exitGate // the gates before this point
}

// routes walks routes. at is what a request has met on its way. It reports whether a request
// may have another URL or method after them.
func (w *exitWalk) routes(routes caddyhttp.RouteList, at exitGate, invoked []string) (rewritten bool) {
	for i := range routes {
		r := &routes[i]
		inside := at
		inside.methods = bothMethods(at.methods, setMethods(r.MatcherSets))
		inside.add(w.exits, r.MatcherSets)
		for _, h := range r.Handlers {
			if w.handler(h, inside, invoked) {
				rewritten = true
				inside.forget()
				at.forget() // the matchers around these routes saw the URL before the rewrite
			}
		}
	}
	return rewritten
}

// forget drops the conditions on a URL that a rewrite has changed.
func (g *exitGate) forget() { g.chain, g.targeted, g.methods = nil, false, nil }

// add appends the matchers of a route to the chain.
func (g *exitGate) add(e *exits, sets caddyhttp.MatcherSets) {
	if len(sets) == 0 {
		return
	}
	var level [][]looseMatcher
	for _, set := range sets {
		var ms []looseMatcher
		for _, m := range set {
			switch m.(type) {
			case *caddyhttp.MatchHost: // another site may send to the same upstream
				continue
			case *caddyhttp.MatchMethod, *caddyhttp.MatchHeader:
			default:
				g.targeted = true
			}
			ms = append(ms, e.look.loosenOne(m))
		}
		level = append(level, ms)
	}
	g.chain = append(slices.Clone(g.chain), level)
}

// handler walks a handler, and reports whether it may change the URL or method.
func (w *exitWalk) handler(h caddyhttp.MiddlewareHandler, at exitGate, invoked []string) (rewrites bool) {
	switch h := h.(type) {
	case *Guard:
		w.doors(h, at)
	case Handler:
		at.gate = h.Guarded()
		if at.gate.ExitsAs != nil {
			at.chain, at.targeted = [][][]looseMatcher{{{w.exits.look.loosenOne(at.gate.ExitsAs)}}}, true
		}
		w.gates = append(w.gates, &at)
	case *rewrite.Rewrite:
		return true
	case *caddyhttp.Subroute:
		return w.routes(h.Routes, at, invoked)
	case *caddyhttp.Invoke:
		if named := w.exits.server.NamedRoutes[h.Name]; named != nil && !slices.Contains(invoked, h.Name) {
			return w.routes(caddyhttp.RouteList{*named}, at, append(slices.Clone(invoked), h.Name))
		}
	case *reverseproxy.Handler:
		w.proxy(h)
		w.answers(h.HandleResponse, at, invoked)
	case *intercept.Intercept:
		w.answers(h.HandleResponse, at, invoked)
	}
	return false
}

// doors notes the doors that a guard closes, also to requests that are rewritten behind it.
func (w *exitWalk) doors(h *Guard, at exitGate) {
	for _, d := range h.Close {
		closed := at
		closed.gate, closed.guard = &d.gate, h
		closed.methods = bothMethods(at.methods, setMethods(d.sets))
		closed.add(w.exits, d.sets)
		w.gates = append(w.gates, &closed)
	}
}

func (w *exitWalk) answers(handlers []caddyhttp.ResponseHandler, at exitGate, invoked []string) {
	for i := range handlers {
		w.routes(handlers[i].Routes, at, invoked)
	}
}

// proxy notes the upstreams to which requests can go behind the gates before it.
func (w *exitWalk) proxy(h *reverseproxy.Handler) {
	for _, g := range w.gates {
		g.anywhere = g.anywhere || h.DynamicUpstreams != nil
		for _, u := range h.Upstreams {
			addr, err := caddy.ParseNetworkAddress(u.Dial)
			if err != nil || HasPlaceholder(u.Dial) || addr.PortRangeSize() != 1 && !addr.IsUnixNetwork() {
				g.anywhere = true
				continue
			}
			g.dials = append(g.dials, dialName(addr.Network, addr.JoinHostPort(0)))
		}
	}
}

func dialName(network, address string) string { return network + " " + address }

package guard

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"

	"github.com/stockgate/stockgate/filters/route"
)

// around returns the gate for whose route a request is, when it leaves for an upstream;
// nil: there is none. cgi: the upstream also reads the target that the client sent.
func (e *exits) around(r *http.Request, cgi bool) *Gate {
	if !e.ready().concerns(r, cgi) {
		return nil
	}
	targets := []target{{r.Method, r.URL.RequestURI(), r.URL}}
	if asked := targetOf(r); cgi && asked.text != targets[0].text {
		targets = append(targets, target{r.Method, asked.text, asked.url})
	}
	var double *reading
	for _, t := range targets {
		path, query, shape, why := route.Check(t.method, t.text)
		if why != "" || path == "*" {
			continue // no server takes it for a route, or the guard has refused it
		}
		var room [4]string
		methods, complete := readMethods(room[:0], r, t.method, query)
		for _, g := range e.gates {
			if g.guard != nil && g.guard != guardOf(r) || !g.isBefore(r) || complete && !g.admitsAny(methods) {
				continue
			}
			if complete && double == nil {
				double = e.look.standIn(r)
			}
			if (!complete || g.isFor(double, t, methods, path, query, shape)) && !g.isBypassed() {
				return g.gate
			}
		}
	}
	return nil
}

// isBypassed reports whether orders pass without having met the gate.
func (g *exitGate) isBypassed() bool { return g.gate.Bypassed != nil && g.gate.Bypassed() }

// concerns reports whether a request may be for the route of any gate, by its method and its
// upstream.
func (e *exits) concerns(r *http.Request, cgi bool) bool {
	if len(e.gates) == 0 {
		return false
	}
	var room [4]string
	methods, complete := readMethods(room[:0], r, r.Method, r.URL.RawQuery)
	if asked := targetOf(r).url.RawQuery; cgi && complete && asked != r.URL.RawQuery {
		methods, complete = readMethods(methods, r, r.Method, asked)
	}
	return slices.ContainsFunc(e.gates, func(g *exitGate) bool { return (!complete || g.admitsAny(methods)) && g.isBefore(r) })
}

func (g *exitGate) admitsAny(methods []string) bool {
	return g.methods == nil || slices.ContainsFunc(methods, func(m string) bool { return slices.Contains(g.methods, m) })
}

// isBefore reports whether the request goes to an upstream that is behind the gate.
func (g *exitGate) isBefore(r *http.Request) bool {
	if g.anywhere {
		return true
	}
	to, ok := reverseproxy.GetDialInfo(r.Context())
	return !ok || slices.Contains(g.dials, dialName(to.Network, to.Address))
}

// isFor reports whether a reading of the target is for the gate's route.
func (g *exitGate) isFor(double *reading, t target, methods []string, path, query string, shape route.Shape) bool {
	readings, complete := []string{decodedPath(t.url, path), route.OtherSlash(decodedPath(t.url, path))}, true
	if shape&route.Odd != 0 {
		if readings, complete = route.Readings(path); !complete {
			return true
		}
	}
	for _, m := range methods {
		for _, reading := range readings {
			double.Method, double.URL = m, &url.URL{Path: reading, RawQuery: query}
			if g.takes(double) {
				return true
			}
		}
	}
	return false
}

// takes reports whether a reading may be an order for the gate.
func (g *exitGate) takes(r *reading) bool {
	if g.methods != nil && !slices.Contains(g.methods, r.Method) || g.methods == nil && g.gate.passesOptions(r) {
		return false
	}
	emptyEnd := false
	for _, level := range g.chain {
		if looseMatch(level, r) == no {
			return false
		}
		emptyEnd = emptyEnd || r.emptyEnd
	}
	return !emptyEnd || !g.gate.passesPrefix(r, slices.ContainsFunc(g.methods, isRead))
}

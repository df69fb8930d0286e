package guard

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/filters/route"
)

const (
	whyRoute = "another server could read it as a gated route"
	// whyQuery is for a query in which Caddy finds nothing and other servers may find anything.
	whyQuery = "the query is not well-formed, and another server could read a gated route in it"
	whyMany  = "there are too many ways to read the path"
	// whyMethods is for a request that asks for more methods than an ordinary one.
	whyMethods = "it asks for too many methods instead of its own"
	// whyNamed is for a request that has parameters of also_query more often than an ordinary one.
	whyNamed = "it has parameters that name a route too often"

	// maxNamed is how often one request may have parameters of also_query. Ordinary requests
	// have one.
	maxNamed = 8
	// maxNamedReadings bounds the readings of all of them together: twice as many as one path
	// may have.
	maxNamedReadings = 320
)

// Refuses says why a request is refused before it reaches any route; empty: it is not
// refused. A request is refused if no server should get its method or target, or if some
// server could read it as a request for a gated route although it does not reach that gate
// here, or as one for a closed door. If all servers read the target alike and no door is closed to the
// method, this costs one scan. door is the one that is closed; nil: it is another reason. deep: matchers
// were asked.
func (s *Routes) Refuses(r *http.Request) (why string, door *Gate, deep bool) {
	asked := targetOf(r)
	path, query, shape, why := route.Check(asked.method, asked.text)
	if why != "" || strangeURL(r, asked.url) {
		if why == "" {
			why = "the target has a foreign authority"
		}
		return why, nil, false
	}
	s.ready()
	if len(s.methods) == 0 {
		return "", nil, false
	}
	var room [4]string
	methods, complete := readMethods(room[:0], r, asked.method, query)
	if !complete {
		return whyMethods, nil, false
	}
	methods = slices.DeleteFunc(methods, func(m string) bool { return !s.admits(m) })
	if len(methods) == 0 || path == "*" {
		return "", nil, false
	}
	if shape&(route.Odd|s.sees) == 0 && !s.slashless && methods[0] == asked.method && len(methods) == 1 && !s.routesBy(query) {
		if !s.closes(asked.method) {
			return "", nil, false
		}
		why, door = s.searchDoors(s.standIn(r), asked, path)
		return why, door, true
	}
	why, door = s.search(r, asked, methods, path, query, shape)
	return why, door, true
}

// Passage says how far a request has come, for the second check when it leaves for an
// upstream.
type Passage uint8

const (
	passageGuarded Passage = 1 + iota // a guard has let it pass
	passageDecided                    // a gate has let it pass: with a reservation, or because it needs none
)

// passageVar is the variable of a request that has its Passage or, once a gate has decided, its *decision.
const passageVar = "stockgate.passage"

// decision is the Passage of a request on which a gate has decided. It is behind a pointer, because it may be taken back when
// the request has been at the shop: a dial of reverse_proxy that goes on in the background reads the map of variables.
type decision struct{ passage atomic.Uint32 }

func noteGuarded(r *http.Request) {
	if vars, ok := r.Context().Value(caddyhttp.VarsCtxKey).(map[string]any); ok {
		vars[passageVar] = passageGuarded
	}
}

// Decide notes that a gate lets a request pass: with a reservation, or because it needs none. takeBack undoes it, for
// error routes: they may forward the request, and no gate has decided on that.
func Decide(r *http.Request) (takeBack func()) {
	vars, ok := r.Context().Value(caddyhttp.VarsCtxKey).(map[string]any)
	if !ok {
		return func() {}
	}
	before := PassageOf(r)
	d, _ := vars[passageVar].(*decision)
	if d == nil {
		d = new(decision)
		vars[passageVar] = d
	}
	d.passage.Store(uint32(passageDecided))
	return func() { d.passage.Store(uint32(before)) }
}

// PassageOf says how far a request has come; 0: it has met neither guard nor gate.
func PassageOf(r *http.Request) Passage {
	vars, _ := r.Context().Value(caddyhttp.VarsCtxKey).(map[string]any)
	switch p := vars[passageVar].(type) {
	case Passage:
		return p
	case *decision:
		return Passage(p.passage.Load())
	}
	return 0
}

// guardVar is the variable of a request that has the guard with closed doors that has let it pass.
const guardVar = "stockgate.guard"

func noteGuard(r *http.Request, g *Guard) {
	if vars, ok := r.Context().Value(caddyhttp.VarsCtxKey).(map[string]any); ok {
		vars[guardVar] = g
	}
}

func guardOf(r *http.Request) *Guard {
	vars, _ := r.Context().Value(caddyhttp.VarsCtxKey).(map[string]any)
	g, _ := vars[guardVar].(*Guard)
	return g
}

// target is what the client requested: rewrites may have changed the request since.
type target struct {
	method, text string
	url          *url.URL
}

func targetOf(r *http.Request) target {
	t := target{r.Method, r.RequestURI, r.URL}
	if orig, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		t = target{orig.Method, orig.RequestURI, orig.URL}
	}
	if t.text == "" { // the request did not come over a connection
		t.text = t.url.RequestURI()
	}
	return t
}

// strangeURL reports whether net/http has read a part of a target that is neither its path nor
// its query, or a host that differs from that of its authority.
func strangeURL(r *http.Request, u *url.URL) bool {
	if u.Opaque != "" || u.User != nil || u.Fragment != "" {
		return true
	}
	hosts, ok := r.Header["Host"] // HTTP/2 can have both
	return ok && !slices.Equal(hosts, []string{r.Host})
}

// readMethods appends the methods that some server may read in a request, its own first.
// false: there are too many.
func readMethods(methods []string, r *http.Request, method, query string) (all []string, complete bool) {
	methods = append(methods, method)
	switch method {
	case http.MethodGet:
		return methods, true
	case http.MethodHead: // frameworks answer it by what they do for GET, and drop the body
		return append(methods, http.MethodGet), true
	case http.MethodConnect: // a websocket in HTTP/2 is a GET in HTTP/1.1 (RFC 8441)
		return append(methods, http.MethodGet), true
	}
	if up := strings.ToUpper(method); up != method {
		methods = append(methods, up)
	}
	return attempt.OverriddenMethods(methods, r.Header, query)
}

// routesBy reports whether a query may name a route, or decide which way a request takes.
func (s *Routes) routesBy(query string) bool {
	return query != "" && (len(s.queries) > 0 || s.matched > 0)
}

// search asks the gates' matchers about all readings.
func (s *Routes) search(r *http.Request, asked target, methods []string, path, query string, shape route.Shape) (why string, door *Gate) {
	double := s.standIn(r)
	here := s.visited(double, asked.method, *asked.url, false)
	readings := []string{decodedPath(asked.url, path), route.OtherSlash(decodedPath(asked.url, path))}
	if shape&route.Odd != 0 {
		all, complete := route.Readings(path)
		if !complete {
			return whyMany, nil
		}
		readings = all
	}
	for _, m := range methods {
		for _, reading := range readings {
			if g := s.leads(double, m, url.URL{Path: reading, RawQuery: query}, here); g != nil {
				return s.whyNot(g, query)
			}
		}
	}
	if query != "" && len(s.queries) > 0 {
		return s.searchQuery(double, methods, query, here)
	}
	return "", nil
}

// whyNot says why a request that leads to a gate or a closed door is refused.
func (s *Routes) whyNot(g *Gate, query string) (why string, door *Gate) {
	switch {
	case g.door:
		return whyClosed, g
	case s.matched > 0 && !parses(query):
		return whyQuery, nil
	}
	return whyRoute, nil
}

// decodedPath returns the path of a target that all servers read alike.
func decodedPath(u *url.URL, raw string) string {
	if strings.IndexByte(raw, '%') < 0 {
		return raw
	}
	return u.Path
}

// searchQuery asks about paths in query parameters that gates have named.
func (s *Routes) searchQuery(double *reading, methods []string, query string, here []*Gate) (why string, door *Gate) {
	named, readings := 0, 0
	for p := route.ParamsOf(query); p.Next(); {
		counted := false
		for i := range s.queries {
			q := &s.queries[i]
			if !q.path.Named(p.Name) {
				continue
			}
			if !counted {
				named, counted = named+1, true
			}
			if named > maxNamed {
				return whyNamed, nil
			}
			all, complete := q.path.Readings(p.Value)
			if readings += len(all); !complete || readings > maxNamedReadings {
				return whyMany, nil
			}
			if g := s.namesGate(double, q, methods, all, query, here); g != nil {
				return s.whyNot(g, query)
			}
		}
	}
	return "", nil
}

// namesGate returns a gate that has named the parameter, and that a reading reaches and the
// request itself does not; nil: there is none.
func (s *Routes) namesGate(double *reading, q *queryRoute, methods, readings []string, query string, here []*Gate) *Gate {
	for _, m := range methods {
		for _, reading := range readings {
			for _, g := range s.visited(double, m, url.URL{Path: reading, RawQuery: query}, true) {
				if slices.Contains(q.gates, g) && !slices.Contains(here, g) {
					return g
				}
			}
		}
	}
	return nil
}

// leads returns a gate that a reading reaches and the request itself does not; nil: there is none.
func (s *Routes) leads(double *reading, method string, u url.URL, here []*Gate) *Gate {
	for _, g := range s.visited(double, method, u, true) {
		if !slices.Contains(here, g) {
			return g
		}
	}
	return nil
}

// visited returns the gates that a request with this method and URL reaches.
func (s *Routes) visited(double *reading, method string, u url.URL, loose bool) []*Gate {
	double.Method, double.URL = method, &u
	if s.leaves { // only matchers of other modules and rewrites look at it
		double.RequestURI = u.RequestURI()
	}
	v := question{loose: loose}
	v.walk(s.steps, double)
	return v.gates
}

// standIn returns a request of the same client that is only for matchers: without the body,
// and with its own placeholders and variables if matchers change them.
func (s *Routes) standIn(r *http.Request) *reading {
	double := r.WithContext(r.Context())
	double.Body, double.GetBody, double.URL = http.NoBody, nil, new(url.URL)
	if s.leaves {
		double = caddyhttp.PrepareRequest(double, caddy.NewReplacer(), nil, serverOf(s))
	}
	return &reading{Request: double, answers: make([]queryAnswer, s.matched), asked: r.Method, bare: r.ContentLength == 0, left: maxNamedReadings}
}

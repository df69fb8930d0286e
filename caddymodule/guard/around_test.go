package guard_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/guard"
)

// maxNamed is how often one request may have parameters of also_query, maxNamedReadings how often all of them together
// may be read.
const maxNamed, maxNamedReadings = 8, 320

// Why a guard refuses a request.
const (
	whyRoute = "another server could read it as a gated route"
	whyQuery = "the query is not well-formed, and another server could read a gated route in it"
	whyMany  = "there are too many ways to read the path"
	whyNamed = "it has parameters that name a route too often"
)

// routeGate is a gate that only guards know.
type routeGate struct {
	caddyhttp.MiddlewareHandler
	guarded guard.Gate
}

func (g *routeGate) Guarded() *guard.Gate { return &g.guarded }

// counter is a matcher that counts how often it is asked.
type counter struct{ asked int }

func (c *counter) MatchWithError(*http.Request) (bool, error) {
	c.asked++
	return false, nil
}

// routesOf are the routes to one gate for POST at /api/order, which names the parameters.
func routesOf(t *testing.T, more []any, names ...string) *guard.Routes {
	t.Helper()
	path := &caddyhttp.MatchPath{"/api/order"}
	if err := path.Provision(caddy.Context{}); err != nil {
		t.Fatal(err)
	}
	set := caddyhttp.MatcherSet{&caddyhttp.MatchMethod{http.MethodPost}}
	for _, m := range append(more, path) {
		set = append(set, m)
	}
	paths, err := guard.QueryPaths(names)
	if err != nil {
		t.Fatal(err)
	}
	gate := &routeGate{guarded: guard.Gate{AlsoQuery: paths}}
	s := new(guard.Routes)
	s.Of(&caddyhttp.Server{Routes: caddyhttp.RouteList{{
		MatcherSets: caddyhttp.MatcherSets{set}, Handlers: []caddyhttp.MiddlewareHandler{gate},
	}}})
	return s
}

// posted is a request to another route with that query.
func posted(query string) *http.Request {
	w := httptest.NewRecorder()
	return caddyhttp.PrepareRequest(httptest.NewRequest(http.MethodPost, "/other?"+query, nil), caddy.NewReplacer(), w, nil)
}

// manyReadings is a value in which servers may read about a hundred paths.
const manyReadings = "a.php/x%3Bb//c%252f/.%255c"

// How much a request makes the guard do has a bound, however often it names a route.
func TestNamedParametersAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		query string
		why   string
	}{
		"once":              {"s=" + manyReadings, ""},
		"as often as may":   {strings.Repeat("s=shoes&", maxNamed), ""},
		"too often":         {strings.Repeat("s=shoes&", maxNamed+1), whyNamed},
		"other names":       {strings.Repeat("x=shoes&", 100), ""},
		"empty":             {strings.Repeat("s&", maxNamed+1), whyNamed},
		"many, other names": {strings.Repeat("x="+manyReadings+"&", 500), ""},
		"too many readings": {strings.Repeat("s="+manyReadings+"&", maxNamed), whyMany},
		"a whole target":    {strings.Repeat("s="+manyReadings+"&", 540), whyMany},
		"by semicolons":     {"s=" + strings.Repeat("x;s=", 4000), whyNamed},
	} {
		asks := new(counter)
		if why, _, _ := routesOf(t, []any{asks}, "rest_route", "s").Refuses(posted(c.query)); why != c.why {
			t.Errorf("%s: %q, want %q", name, why, c.why)
		}
		if most := 2*maxNamedReadings + 10; asks.asked > most { // a matcher that sees case is asked about the lower case too
			t.Errorf("%s: a matcher is asked %d times, more than %d", name, asks.asked, most)
		}
	}
}

// How often a request has a parameter of a query matcher, and what may be read in it, has the same bounds.
func TestMatchedParametersAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		query string
		why   string
	}{
		"once":               {"s=" + manyReadings, ""},
		"as often as may":    {strings.Repeat("s=shoes&", maxNamed), ""},
		"too often":          {strings.Repeat("s=shoes&", maxNamed+1), whyRoute},
		"other names":        {strings.Repeat("x=shoes&", 100), ""},
		"too many readings":  {strings.Repeat("s="+manyReadings+"&", maxNamed), whyRoute},
		"a whole target":     {strings.Repeat("s="+manyReadings+"&", 540), whyRoute},
		"cannot be parsed":   {"x=%zz", whyQuery},
		"one of many values": {"s=x&s=order", ""}, // it comes to the gate
		"another spelling":   {"+s=Order", whyRoute},
	} {
		s := routesOf(t, []any{&caddyhttp.MatchQuery{"s": {"order"}}})
		r := posted(c.query)
		r.RequestURI, r.URL.Path = "/api/order?"+c.query, "/api/order"
		orig := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request)
		orig.URL.Path, orig.RequestURI = r.URL.Path, r.RequestURI
		r = r.WithContext(context.WithValue(r.Context(), caddyhttp.OriginalRequestCtxKey, orig))
		if why, _, _ := s.Refuses(r); why != c.why {
			t.Errorf("%s: %q, want %q", name, why, c.why)
		}
	}
}

// What a reading costs does not grow with the query beside it.
func TestReadingsDoNotCopyTheQuery(t *testing.T) {
	s := routesOf(t, nil, "s")
	const filler = 256 << 10
	r := posted("s=" + manyReadings + "&x=" + strings.Repeat("y", filler))
	s.Refuses(r)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	why, _, _ := s.Refuses(r)
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; why != "" || got > 4*filler {
		t.Errorf("%q, and %d bytes are allocated", why, got)
	}
}

package guard

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/filters/route"
)

// reading is a request as some server may read it, about which matchers are asked.
type reading struct {
	*http.Request
	// answers are those of the query matchers, each about the last query that it was asked about:
	// the readings of one request mostly have the same one.
	answers []queryAnswer
	// asked is the method of the request itself; bare: it has no body.
	asked string
	bare  bool
	// emptyEnd: the matchers asked last match only because a * at the end of a path stands for nothing.
	emptyEnd bool
	// left is how many readings of values may still be made for this request.
	left int
}

// queryAnswer is what a query matcher says about a query.
type queryAnswer struct {
	known bool
	query string
	matched
}

// parses reports whether Caddy can parse a query. It finds no parameter in any other.
func parses(query string) bool {
	_, err := url.ParseQuery(query)
	return err == nil
}

// loosenQuery prepares a query matcher for readings.
func (s *Routes) loosenQuery(m *caddyhttp.MatchQuery) looseMatcher {
	at := s.matched
	s.matched++
	return func(r *reading) matched {
		last := &r.answers[at]
		if query := r.URL.RawQuery; !last.known || last.query != query {
			*last = queryAnswer{true, query, r.answer(*m, query)}
		}
		return last.matched
	}
}

// answer reports whether servers may read in a query what a matcher wants. It is maybe where Caddy
// cannot parse the query, where it has a wanted parameter in another spelling or several times with
// other values, and where there are too many readings.
func (r *reading) answer(m caddyhttp.MatchQuery, query string) matched {
	if len(m) == 0 { // it wants an empty query
		return answerOf(len(r.URL.Query()) == 0)
	}
	if !parses(query) {
		return maybe
	}
	repl := replacerOf(r.Request)
	all := yes
	for name, values := range m {
		all = min(all, r.named(query, repl.ReplaceAll(name, ""), values, repl))
	}
	return all
}

// named is answer for one of the matcher's names.
func (r *reading) named(query, name string, values []string, repl *caddy.Replacer) matched {
	wanted := make([]string, len(values))
	for i, value := range values {
		wanted[i] = repl.ReplaceAll(value, "")
	}
	every := slices.Contains(wanted, "*")
	found, sure, count := false, true, 0
	for p := route.ParamsOf(query); p.Next(); {
		if !route.SameParam(p.Name, name) {
			continue
		}
		if count++; count > maxNamed {
			return maybe
		}
		exact := every || slices.Contains(wanted, p.Value)
		found = found || exact || r.mayBe(p.Value, wanted)
		sure = sure && exact && p.Name == name
	}
	switch {
	case !found:
		return no
	case sure:
		return yes
	}
	return maybe
}

// mayBe reports whether some server may read one of the wanted values in a parameter's value.
func (r *reading) mayBe(value string, wanted []string) bool {
	all, complete := route.ValueReadings(value)
	if r.left -= len(all); !complete || r.left < 0 {
		return true
	}
	return slices.ContainsFunc(all, func(reading string) bool {
		return slices.ContainsFunc(wanted, func(want string) bool { return route.SameValue(reading, want) })
	})
}

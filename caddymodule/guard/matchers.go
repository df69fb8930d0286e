package guard

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/filters/route"
)

// matched reports whether a matcher matches a reading of a request.
type matched uint8

// The answers are in their order: of all that must match, the least counts; of several of which one
// must match, the greatest.
const (
	no    matched = iota
	maybe         // servers differ
	yes
)

func answerOf(matches bool) matched {
	if matches {
		return yes
	}
	return no
}

// looseMatcher asks one of Caddy's matchers about a reading, ignoring case.
type looseMatcher func(*reading) matched

// looseMatch reports whether one of the sets matches; without sets it always does. It notes in the
// reading whether those that match do so only by the empty end of a path.
func looseMatch(sets [][]looseMatcher, r *reading) matched {
	r.emptyEnd = false
	if len(sets) == 0 {
		return yes
	}
	best, emptyEnds := no, true
	for _, set := range sets {
		r.emptyEnd = false
		all := yes
		for _, m := range set {
			if all = min(all, m(r)); all == no {
				break
			}
		}
		best = max(best, all)
		emptyEnds = emptyEnds && (all == no || r.emptyEnd)
	}
	r.emptyEnd = best != no && emptyEnds
	return best
}

// loosen prepares the matchers of a route for readings, and notes what they ignore.
func (s *Routes) loosen(sets caddyhttp.MatcherSets) [][]looseMatcher {
	loose := make([][]looseMatcher, 0, len(sets))
	for _, set := range sets {
		ms := make([]looseMatcher, 0, len(set))
		for _, m := range set {
			ms = append(ms, s.loosenOne(m))
		}
		loose = append(loose, ms)
	}
	return loose
}

func (s *Routes) loosenOne(m any) looseMatcher {
	ask := asker(m)
	switch m := m.(type) {
	case *caddyhttp.MatchPath: // Caddy ignores the case of paths
		s.sees |= route.Slash
		for _, pattern := range *m {
			short, slash := strings.CutSuffix(pattern, "/")
			s.slashless = s.slashless || slash && !slices.Contains(*m, short)
			s.plain = s.plain && !HasPlaceholder(pattern)
		}
		return loosenPath(*m, ask)
	case *caddyhttp.MatchMethod, *caddyhttp.MatchHost:
		return ask
	case *caddyhttp.MatchHeader:
		s.plain = false
		return ask
	case *caddyhttp.MatchQuery:
		s.plain = false
		return s.loosenQuery(m)
	case *caddyhttp.MatchPathRE:
		s.sees |= route.Slash | route.Upper
		s.slashless = true
		re, err := regexp.Compile("(?i)" + m.Pattern)
		if err != nil { // Caddy has compiled it without (?i)
			return anyCase(ask)
		}
		return func(r *reading) matched {
			return answerOf(re.MatchString(r.URL.Path) || re.MatchString(caddyhttp.CleanPath(r.URL.Path, true)))
		}
	}
	// expression, not, and matchers of other modules may look at anything
	s.sees |= route.Slash | route.Upper
	s.slashless, s.plain, s.leaves = true, false, true
	if not, ok := m.(*caddyhttp.MatchNot); ok {
		return s.loosenNot(not)
	}
	return anyCase(ask)
}

// loosenNot prepares a negation. It does not match a reading if the matchers inside match any spelling of it
// with other slashes or in another case. It may match where servers differ on the matchers inside.
func (s *Routes) loosenNot(m *caddyhttp.MatchNot) looseMatcher {
	inside := s.loosen(m.MatcherSets)
	return func(r *reading) matched {
		emptyEnd, path, raw := r.emptyEnd, r.URL.Path, r.URL.RawPath
		best := no
		for _, spelling := range route.Spellings(path) {
			r.URL.Path, r.URL.RawPath = spelling, ""
			best = max(best, looseMatch(inside, r))
		}
		r.emptyEnd, r.URL.Path, r.URL.RawPath = emptyEnd, path, raw
		return yes - best
	}
}

// asker asks one matcher. An error makes Caddy answer, and is no match.
func asker(m any) looseMatcher {
	set := caddyhttp.MatcherSet{m}
	return func(r *reading) matched {
		ok, err := set.MatchWithError(r.Request)
		return answerOf(ok && err == nil)
	}
}

// anyCase asks about a path and about the same path in lower case.
func anyCase(ask looseMatcher) looseMatcher {
	return func(r *reading) matched {
		if ask(r) == yes {
			return yes
		}
		path, raw := r.URL.Path, r.URL.RawPath
		small := strings.ToLower(path)
		if small == path {
			return no
		}
		r.URL.Path, r.URL.RawPath = small, ""
		answer := ask(r)
		r.URL.Path, r.URL.RawPath = path, raw
		return answer
	}
}

// HasPlaceholder reports whether a matcher's text may contain a placeholder.
func HasPlaceholder(text string) bool { return strings.Contains(text, "{") }

func replacerOf(r *http.Request) *caddy.Replacer {
	repl, _ := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	return repl
}

package guard

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/route"
)

// looseMatcher asks one of Caddy's matchers about a reading, ignoring case.
type looseMatcher func(r *http.Request) bool

// looseMatch says whether one of the sets matches; without sets it always does.
func looseMatch(sets [][]looseMatcher, r *http.Request) bool {
next:
	for _, set := range sets {
		for _, m := range set {
			if !m(r) {
				continue next
			}
		}
		return true
	}
	return len(sets) == 0
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
		return ask
	case *caddyhttp.MatchMethod, *caddyhttp.MatchHost:
		return ask
	case *caddyhttp.MatchHeader, *caddyhttp.MatchQuery:
		s.plain = false
		return ask
	case *caddyhttp.MatchPathRE:
		s.sees |= route.Slash | route.Upper
		s.slashless = true
		re, err := regexp.Compile("(?i)" + m.Pattern)
		if err != nil { // Caddy has compiled it without (?i)
			return anyCase(ask)
		}
		return func(r *http.Request) bool {
			return re.MatchString(r.URL.Path) || re.MatchString(caddyhttp.CleanPath(r.URL.Path, true))
		}
	}
	// expression, not, and matchers of other modules may look at anything
	s.sees |= route.Slash | route.Upper
	s.slashless, s.plain, s.leaves = true, false, true
	return anyCase(ask)
}

// asker asks one matcher. An error makes Caddy answer, and is no match.
func asker(m any) looseMatcher {
	set := caddyhttp.MatcherSet{m}
	return func(r *http.Request) bool {
		ok, err := set.MatchWithError(r)
		return ok && err == nil
	}
}

// anyCase asks about a path and about the same path in lower case.
func anyCase(ask looseMatcher) looseMatcher {
	return func(r *http.Request) bool {
		if ask(r) {
			return true
		}
		path, raw := r.URL.Path, r.URL.RawPath
		small := strings.ToLower(path)
		if small == path {
			return false
		}
		r.URL.Path, r.URL.RawPath = small, ""
		ok := ask(r)
		r.URL.Path, r.URL.RawPath = path, raw
		return ok
	}
}

// HasPlaceholder says whether a matcher's text may contain a placeholder.
func HasPlaceholder(text string) bool { return strings.Contains(text, "{") }

func replacerOf(r *http.Request) *caddy.Replacer {
	repl, _ := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	return repl
}

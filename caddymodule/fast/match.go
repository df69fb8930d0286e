package fast

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/guard"
)

// matcher is one of Caddy's matchers that can be evaluated at the connection.
type matcher struct {
	caddyhttp.RequestMatcherWithError
	// headers says that it reads more than method, host and path.
	headers bool
}

// matchersOf prepares the matcher sets of a route. opaque is a matcher that cannot
// be evaluated here; empty: all can.
func matchersOf(sets caddyhttp.MatcherSets) (out [][]matcher, opaque string) {
	for _, set := range sets {
		ms := make([]matcher, 0, len(set))
		for _, m := range set {
			name, values, headers := matcherTexts(m)
			if name == "" {
				return nil, matcherName(m)
			}
			if slices.ContainsFunc(values, guard.HasPlaceholder) {
				return nil, name + " with a placeholder"
			}
			ms = append(ms, matcher{m.(caddyhttp.RequestMatcherWithError), headers})
		}
		out = append(out, ms)
	}
	return out, ""
}

// matcherTexts returns the name of a matcher and all texts of its configuration. The name is
// empty for a matcher that is not known here.
func matcherTexts(m any) (name string, texts []string, headers bool) {
	switch m := m.(type) {
	case *caddyhttp.MatchHost:
		return "host", *m, false
	case *caddyhttp.MatchPath:
		return "path", *m, false
	case *caddyhttp.MatchMethod:
		return "method", *m, false
	case *caddyhttp.MatchHeader:
		return "header", flat(*m), true
	case *caddyhttp.MatchQuery:
		return "query", flat(*m), true
	}
	return "", nil, false
}

func flat[M ~map[string][]string](m M) (texts []string) {
	for name, values := range m {
		texts = append(append(texts, name), values...)
	}
	return texts
}

func matcherName(m any) string {
	if module, ok := m.(caddy.Module); ok {
		return strings.TrimPrefix(string(module.CaddyModule().ID), "http.matchers.")
	}
	return fmt.Sprintf("%T", m)
}

// match evaluates the sets of a route. It returns the error that Caddy would answer with.
func (w *walk) match(sets [][]matcher, r *http.Request) (bool, error) {
	for _, set := range sets {
		all := true
		for _, m := range set {
			w.headers = w.headers || m.headers
			matches, err := m.MatchWithError(r)
			if err != nil {
				return false, err
			}
			if !matches {
				all = false
				break
			}
		}
		if all {
			return true, nil
		}
	}
	return len(sets) == 0, nil
}

package guard

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/internal/matchers"
)

// A pattern such as /checkout/* does not match /checkout, and many servers take that for /checkout/. This
// file says what the guard makes of it.

const (
	// PATTERN is the pattern, PREFIX what comes before its /*.
	refusedPrefix = "the gate's path PATTERN does not match PREFIX, which many servers take for PREFIX/: what may be an order there is refused as malformed; " +
		"if orders come to PREFIX too, write `path PREFIX PATTERN`, and if other requests do, leave them out with `not path PREFIX`"
	passedPrefix = "the check's path PATTERN does not match PREFIX: a change there does not wait for an order of the same session; if carts change there too, write `path PREFIX PATTERN`"
)

// Prefixes warns about the paths that end before the * of a gate's patterns.
type Prefixes struct {
	// Check: a stockgate_check makes changes wait at these paths.
	Check bool
}

// In returns the warnings about the matchers of a gate, as JSON.
func (p Prefixes) In(set caddy.ModuleMap) []string {
	var paths caddyhttp.MatchPath
	if json.Unmarshal(set["path"], &paths) != nil || paths.Provision(caddy.Context{}) != nil {
		return nil // Caddy reports what is wrong with it
	}
	return p.warnings(paths)
}

// Around returns the warnings about the path matcher that is nearest to a module that is being provisioned.
func (p Prefixes) Around(ctx caddy.Context) []string {
	server, _ := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	for _, set := range slices.Backward(matchers.Around(ctx, server)) {
		for _, m := range set {
			if paths, ok := m.(*caddyhttp.MatchPath); ok {
				return p.warnings(*paths)
			}
		}
	}
	return nil
}

func (p Prefixes) warnings(paths caddyhttp.MatchPath) (warnings []string) {
	text := refusedPrefix
	if p.Check {
		text = passedPrefix
	}
	for _, pattern := range paths {
		prefix, ok := openPrefix(pattern)
		short := strings.TrimSuffix(prefix, "/")
		if ok && !slices.ContainsFunc(paths, func(other string) bool { return matchesShort(other, short) }) {
			warnings = append(warnings, strings.NewReplacer("PATTERN", pattern, "PREFIX", short).Replace(text))
		}
	}
	return warnings
}

// matchesShort reports whether a pattern without other wildcards than a * at its end matches a path.
func matchesShort(pattern, path string) bool {
	start, open := strings.CutSuffix(pattern, "*")
	return pattern == path || open && strings.HasPrefix(path, start)
}

// loosenPath prepares a path matcher. Where a reading has nothing in the place of the * of a pattern that
// ends in /*, and no other pattern matches it, the end of the path is empty.
func loosenPath(patterns caddyhttp.MatchPath, ask looseMatcher) looseMatcher {
	without := make(map[string]looseMatcher) // the other patterns, by the path before a *
	for _, pattern := range patterns {
		if prefix, ok := openPrefix(pattern); ok {
			others := slices.DeleteFunc(slices.Clone(patterns), func(other string) bool { return other == pattern })
			without[prefix] = asker(&others)
		}
	}
	if len(without) == 0 {
		return ask
	}
	return func(r *reading) matched {
		answer := ask(r)
		if answer == no {
			return no
		}
		if others := without[strings.ToLower(caddyhttp.CleanPath(r.URL.Path, true))]; others != nil {
			r.emptyEnd = others(r) == no
		}
		return answer
	}
}

// openPrefix returns what comes before the * of a pattern that ends in /* and has no other wildcard.
func openPrefix(pattern string) (prefix string, ok bool) {
	prefix, ok = strings.CutSuffix(pattern, "*")
	return strings.ToLower(prefix), ok && len(prefix) > 1 && strings.HasSuffix(prefix, "/") && !strings.ContainsAny(prefix, `*?[\{%`)
}

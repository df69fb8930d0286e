package option

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/caddymodule/internal/directive"
)

// checkFast says why a gate cannot be refused for at the connection. at is where the gate
// is.
func checkFast(h httpcaddyfile.Helper, at *caddyfile.Dispenser, s *Setup, matchers caddy.ModuleMap) error {
	if s.FastRefusals == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(matchers)) {
		if !slices.Contains(fastMatcherNames, name) {
			return at.Errf("fast_refusals: the gate's matcher %s cannot be evaluated at the connection: there are host, method, path, header and query", name)
		}
		if placeholderIn(matchers[name]) {
			return at.Errf("fast_refusals: the gate's matcher %s has a placeholder, which cannot be evaluated at the connection", name)
		}
	}
	if err := s.fastConflict(); err != nil {
		return at.WrapErr(err)
	}
	if s.FastRefusals.Force {
		return nil
	}
	block := directive.BlockOf(&h)
	if block == nil {
		return nil
	}
	order, _ := h.Option("order").([]string)
	l := directiveLookup{order: order, name: at.Val(), file: at.File(), line: at.Line()}
	segments := block.Segments
	if block.IsNamedRoute && len(segments) > 0 {
		segments = inside(segments[0])
	}
	if name := l.before(segments, block.IsNamedRoute); name != "" {
		return at.Errf("fast_refusals: the directive %s runs before this gate, and would not run on a fast refusal: move it behind the gate, or write `fast_refusals force`", name)
	}
	return nil
}

// placeholderIn looks for a placeholder in a matcher's configuration.
func placeholderIn(raw json.RawMessage) bool {
	var v any
	return json.Unmarshal(raw, &v) != nil || holds(v)
}

func holds(v any) bool {
	switch v := v.(type) {
	case string:
		return guard.HasPlaceholder(v)
	case []any:
		return slices.ContainsFunc(v, holds)
	case map[string]any:
		for name, one := range v {
			if guard.HasPlaceholder(name) || holds(one) {
				return true
			}
		}
	}
	return false
}

// directiveLookup finds what runs before a gate, from the tokens of its site.
type directiveLookup struct {
	order []string // of the directives, if the operator has changed it
	name  string   // of the gate's directive
	file  string   // where the gate is
	line  int
}

// before returns a directive that runs before the gate and is not known to be harmless;
// empty: none. It is a directive of the block, or of a block inside it that has the gate.
// literal: the block's directives run in the order in which they are written.
func (l *directiveLookup) before(block []caddyfile.Segment, literal bool) string {
	for i, s := range block {
		if !l.has(s) {
			continue
		}
		for j, other := range block {
			name := other.Directive()
			if j == i || harmlessDirective(name) {
				continue
			}
			if literal && j < i || !literal && l.runsBefore(name, s.Directive()) {
				return name
			}
		}
		if s.Directive() == l.name {
			return ""
		}
		return l.before(inside(s), s.Directive() == "route")
	}
	return ""
}

// has reports whether the gate is in a segment.
func (l *directiveLookup) has(s caddyfile.Segment) bool {
	return slices.ContainsFunc(s, func(t caddyfile.Token) bool { return t.Text == l.name && t.File == l.file && t.Line == l.line })
}

// runsBefore compares two directives. For directives that are not Caddy's own, only the
// operator's order tells where they run.
func (l *directiveLookup) runsBefore(name, than string) bool {
	if i, j := slices.Index(l.order, name), slices.Index(l.order, than); i >= 0 && j >= 0 {
		return i < j
	}
	return slices.Contains(earlyDirectives, name)
}

// earlyDirectives are Caddy's own directives that run before a gate and before the blocks
// that may contain one.
var earlyDirectives = []string{
	"tracing", "header", "request_body", "timeouts", "redir", "method", "rewrite", "uri", "try_files",
	"basicauth", "basic_auth", "forward_auth", "request_header", "encode", "push", "intercept", "templates",
}

// harmlessDirective reports whether a directive has no effect on a fast refusal: it sets
// variables, chooses what is logged, is no handler, or has routes of its own, which are
// followed.
func harmlessDirective(name string) bool {
	return name == "" || name[0] == '@' || slices.Contains([]string{
		"map", "vars", "fs", "root", "log", "log_append", "skip_log", "log_skip", "log_name", "log_level", "copy_response_headers",
		"stockgate_guard", "stockgate_status", "stockgate_check", "stockgate_waitlist", "stockgate", "invoke", "handle", "handle_path", "handle_errors", "route", "tls", "bind",
	}, name)
}

// inside returns the directives in a directive's block. If Caddy has taken a matcher out of
// the tokens, a surplus brace is left.
func inside(s caddyfile.Segment) []caddyfile.Segment {
	depth, from := 0, -1
	for i, t := range s {
		switch t.Text {
		case "{":
			if depth++; from < 0 {
				from = i
			}
		case "}":
			if depth--; depth == 0 {
				return directive.Subdirectives(append(slices.Clone(s[:1]), s[from:i+1]...))
			}
		}
	}
	return nil
}

// fastMatcherNames are the matchers that can be evaluated at the connection.
var fastMatcherNames = []string{"host", "method", "path", "header", "query"}

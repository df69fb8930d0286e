package route

import "strings"

// Params are the parameters that servers may read in a query, decoded: the pairs between `&`
// and, of a pair with a semicolon, also what stands between its semicolons. Escapes that are
// broken stay as they are.
type Params struct {
	Name, Value string
	rest, parts string
}

// ParamsOf reads a query: for p := ParamsOf(query); p.Next(); { … }.
func ParamsOf(query string) Params { return Params{rest: query} }

// Next reads the next parameter. false: there is none.
func (p *Params) Next() bool {
	for p.rest != "" || p.parts != "" {
		var pair string
		if p.parts != "" {
			pair, p.parts, _ = strings.Cut(p.parts, ";")
		} else if pair, p.rest, _ = strings.Cut(p.rest, "&"); strings.IndexByte(pair, ';') >= 0 {
			p.parts = pair
		}
		if pair != "" {
			p.Name, p.Value = splitParam(pair)
			return true
		}
	}
	return false
}

func splitParam(pair string) (name, value string) {
	name, value, _ = strings.Cut(pair, "=")
	return decodeParam(name), decodeParam(value)
}

// decodeParam decodes escapes and plus signs once.
func decodeParam(s string) string {
	return decode(strings.ReplaceAll(s, "+", " "))
}

// ParamForms are the texts of a parameter's name from which servers make its own name, by
// PHPName or as they are: all of it; what is before a bracket, where PHP begins an array; and
// what is before its brackets and dots, where Rack, qs and others begin one.
func ParamForms(name string) [3]string {
	php, _, _ := strings.Cut(name, "[")
	base := strings.TrimLeft(name, "[]. \t\r\n")
	if i := strings.IndexAny(base, "[]."); i >= 0 {
		base = base[:i]
	}
	return [3]string{name, php, strings.TrimRight(base, "] \t\r\n")}
}

// SameParam reports whether some server takes a parameter's name for the wanted one: by ignoring
// case, by PHP's mapping of names, or by reading an array.
func SameParam(name, want string) bool {
	var room, wanted [64]byte
	php := PHPName(wanted[:0], want)
	for _, form := range ParamForms(name) {
		if SameFold(PHPName(room[:0], form), php) {
			return true
		}
	}
	return false
}

// QueryPath is a query parameter that a server takes for a path: rest_route, or
// rest_route=/wp-json where the server reads its value below a prefix.
type QueryPath struct{ name, prefix string }

// ParseQueryPath reads NAME or NAME=PREFIX. false: it is neither.
func ParseQueryPath(text string) (p QueryPath, ok bool) {
	name, prefix, prefixed := strings.Cut(text, "=")
	ok = name != "" && (!prefixed || strings.HasPrefix(prefix, "/") && ShapeOf(prefix)&Odd == 0 && strings.IndexByte(prefix, '%') < 0)
	return QueryPath{name, strings.TrimRight(prefix, "/")}, ok
}

// Named reports whether some server takes a parameter's name for that of p.
func (p QueryPath) Named(name string) bool { return SameParam(name, p.name) }

// Readings are the paths that servers may read in the parameter's value. false: there are too
// many.
func (p QueryPath) Readings(value string) (all []string, complete bool) {
	all, complete = ValueReadings(value)
	if p.prefix != "" {
		for i, reading := range all {
			all[i] = p.prefix + leadingSlash(reading)
		}
	}
	return all, complete
}

// ValueReadings are the paths that servers may read in a parameter's value, where they take it for
// a route. false: there are too many.
func ValueReadings(value string) (all []string, complete bool) {
	return Readings("/" + strings.TrimLeft(strings.TrimSpace(value), "/"))
}

// SameValue reports whether a server with a reading of ValueReadings finds what another wants: without
// regard to case, and for a route of several steps to anything but letters, digits, underscores and
// slashes, which OpenCart drops from it.
func SameValue(reading, want string) bool {
	path := "/" + strings.TrimLeft(want, "/")
	return SameFold(reading, path) || strings.Contains(want, "/") && SameFold(routeWord(reading), routeWord(path))
}

func routeWord(path string) string {
	kept := strings.Map(func(r rune) rune {
		if r == '/' || r == '_' || '0' <= r && r <= '9' || 'a' <= r|0x20 && r|0x20 <= 'z' {
			return r
		}
		return -1
	}, path)
	return strings.TrimRight(mergeSlashes(kept), "/")
}

package route

import (
	"iter"
	"strings"
)

// Params yields the parameters that servers may read in a query, decoded: the pairs between `&`
// and, of a pair with a semicolon, also what stands between its semicolons. Escapes that are
// broken stay as they are.
func Params(query string) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for pair := range strings.SplitSeq(query, "&") {
			if pair == "" {
				continue
			}
			if !yield(splitParam(pair)) {
				return
			}
			if strings.IndexByte(pair, ';') < 0 {
				continue
			}
			for part := range strings.SplitSeq(pair, ";") {
				if part != "" && !yield(splitParam(part)) {
					return
				}
			}
		}
	}
}

func splitParam(pair string) (name, value string) {
	name, value, _ = strings.Cut(pair, "=")
	return decodeParam(name), decodeParam(value)
}

// decodeParam decodes escapes and plus signs once.
func decodeParam(s string) string {
	return decode(strings.ReplaceAll(s, "+", " "))
}

// ParamBase is the name before its brackets and dots: PHP, Rack, qs and others read what
// follows as a step into an array.
func ParamBase(name string) string {
	base := strings.TrimLeft(name, "[]. \t\r\n")
	if i := strings.IndexAny(base, "[]."); i >= 0 {
		base = base[:i]
	}
	return strings.TrimRight(base, "] \t\r\n")
}

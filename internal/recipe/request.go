package recipe

import (
	"fmt"
	"slices"
	"strings"
)

// request is a kind of requests: a method and a path, in which * is any segment; at a GraphQL server also the
// field of a mutation, and perhaps the values of an argument. It is written in one line, with spaces.
type request struct {
	Method, Path    string
	Field, Argument string
	Values          []string
}

// UnmarshalText reads POST /path [field [argument value...]].
func (q *request) UnmarshalText(text []byte) error {
	words := strings.Fields(string(text))
	if len(words) < 2 || !strings.HasPrefix(words[1], "/") || len(words) == 4 {
		return fmt.Errorf("%q is no request: write METHOD /path [field [argument value...]]", text)
	}
	q.Method, q.Path = words[0], words[1]
	if len(words) > 2 {
		q.Field = words[2]
	}
	if len(words) > 4 {
		q.Argument, q.Values = words[3], words[4:]
	}
	return nil
}

// Sent is a request that a client has sent.
type Sent struct {
	Method    string
	Path      []string // its segments
	Field     string   // of a GraphQL mutation
	Arguments map[string]any
}

// is reports whether a request is of this kind. None is of the zero kind.
func (q request) is(s Sent) bool {
	return q.Method != "" && q.Method == s.Method && s.isAt(q.Path) && q.isField(s)
}

// isAtAnyPath reports the same of a shop whose API may be at another path, or behind a prefix.
func (q request) isAtAnyPath(s Sent) bool {
	if q.Method == "" || q.Method != s.Method {
		return false
	}
	if q.Field != "" {
		return q.isField(s)
	}
	own := strings.Count(q.Path, "/")
	return own <= len(s.Path) && Sent{Path: s.Path[len(s.Path)-own:]}.isAt(q.Path)
}

func (q request) isField(s Sent) bool {
	if q.Field != s.Field {
		return false
	}
	value, _ := s.Arguments[q.Argument].(string)
	return q.Argument == "" || slices.Contains(q.Values, value)
}

// isAt compares the whole path with a pattern.
func (s Sent) isAt(pattern string) bool {
	return len(s.Path) == strings.Count(pattern, "/") && s.below(pattern)
}

// below compares the beginning of the path with a pattern.
func (s Sent) below(pattern string) bool {
	want := strings.Split(strings.Trim(pattern, "/"), "/")
	if len(s.Path) < len(want) {
		return false
	}
	for i, segment := range want {
		if segment != "*" && segment != s.Path[i] || s.Path[i] == "" {
			return false
		}
	}
	return true
}

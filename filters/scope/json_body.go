package scope

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/stockgate/stockgate/filters/route"
	"github.com/stockgate/stockgate/internal/strictjson"
)

// JSONBody names requests by a value of their JSON body.
type JSONBody struct {
	// Path leads to the value: action, or order.type.
	Path string `json:"path"`
	// Values are those that make the request an attempt. Default: any.
	Values []string `json:"values,omitempty"`
}

type bodyRule struct {
	path   []string
	values []string
}

func (j JSONBody) compile() (bodyRule, error) {
	path := strings.Split(j.Path, ".")
	if slices.Contains(path, "") {
		return bodyRule{}, fmt.Errorf("json_body %s: a path is such as action or order.type", j.Path)
	}
	return bodyRule{path: path, values: j.Values}, nil
}

func (s *Scope) judgeBody(r *http.Request, body []byte) Judgement {
	switch {
	case s.namedInQuery(r):
		return unclear(CauseQuery)
	case len(body) == 0:
		return Judgement{}
	case !isJSON(r.Header):
		return s.judgeForm(r.Header, body)
	case isList(body):
		return judgeList(body, s.judgeObject)
	}
	return s.judgeObject(body)
}

// judgeObject judges a JSON object.
func (s *Scope) judgeObject(body []byte) Judgement {
	tree, ok := objectOf(body)
	if !ok {
		return unclear(CauseBody)
	}
	found := differs
	for _, rule := range s.bodies {
		m, ok := rule.judge(tree)
		if !ok {
			return unclear(CauseBody)
		}
		if found = max(found, m); found == same {
			return Judgement{Verdict: Attempt}
		}
	}
	if found == doubtful {
		return unclear(CauseValue)
	}
	return Judgement{}
}

// namedInQuery reports whether the query has the first name of a rule's path: some frameworks merge
// query and body, and a server may read the value there. A GET or HEAD may have another value.
func (s *Scope) namedInQuery(r *http.Request) bool {
	for p := route.ParamsOf(r.URL.RawQuery); p.Next(); {
		if route.ReachesPrototype(p.Name) {
			return true
		}
		for i := range s.bodies {
			if rule := &s.bodies[i]; route.SameParam(p.Name, rule.path[0]) && !(reads(r) && rule.excludes(p.Value)) {
				return true
			}
		}
	}
	return false
}

// excludes says that no server takes a text for one of the rule's values.
func (b bodyRule) excludes(text string) bool {
	return len(b.path) == 1 && isWord(text) && len(b.values) > 0 && matches(b.values, scalar{text: text}) == differs
}

// isWord says that a text has only letters, _ and -: no server reads it as another text or a
// number.
func isWord(text string) bool {
	for _, c := range []byte(text) {
		if lower := c | 0x20; (lower < 'a' || lower > 'z') && c != '_' && c != '-' {
			return false
		}
	}
	return text != ""
}

// judge looks for the rule's value. ok is false where servers may differ in whether there is one: a
// name that differs from the path's in case only could be the same one for a server, and an object
// may have it from its prototype.
func (b bodyRule) judge(tree map[string]any) (m match, ok bool) {
	last := len(b.path) - 1
	for i, name := range b.path {
		value, found := tree[name]
		for other := range tree {
			if route.IsPrototype(other) || other != name && route.SameFold(other, name) {
				return differs, false
			}
		}
		switch {
		case !found || value == nil && (i < last || len(b.values) == 0):
			return differs, true
		case i < last:
			if tree, ok = value.(map[string]any); !ok {
				return differs, false
			}
		case len(b.values) == 0:
			return same, true
		default:
			s, ok := scalarOf(value)
			if !ok {
				return differs, false
			}
			return matches(b.values, s), true
		}
	}
	return differs, true
}

// objectOf reads a JSON object in which no name comes twice, with numbers as they are
// written.
func objectOf(raw []byte) (map[string]any, bool) {
	if strictjson.Read(raw, func(r *strictjson.Reader) error { return r.OpenObject(nil) }) != nil {
		return nil, false
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var object map[string]any
	return object, dec.Decode(&object) == nil
}

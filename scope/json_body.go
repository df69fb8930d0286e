package scope

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

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

func (s *Scope) judgeBody(r *http.Request, body []byte) Result {
	if len(body) == 0 {
		return Result{}
	}
	if !isJSON(r.Header) {
		return unclear(CauseContentType)
	}
	tree, ok := objectOf(body)
	if !ok {
		return unclear(CauseBody)
	}
	for _, rule := range s.bodies {
		switch rule.judge(tree) {
		case Attempt:
			return Result{Verdict: Attempt}
		case Unclear:
			return unclear(CauseBody)
		}
	}
	return Result{}
}

// judge looks for the rule's value. A name that differs from the path's in case only could
// be the same one for a server.
func (b bodyRule) judge(tree map[string]any) Verdict {
	for i, name := range b.path {
		value, found := tree[name]
		for other := range tree {
			if other != name && strings.EqualFold(other, name) {
				return Unclear
			}
		}
		if !found || value == nil {
			return Other
		}
		if i < len(b.path)-1 {
			next, isObject := value.(map[string]any)
			if !isObject {
				return Unclear
			}
			tree = next
			continue
		}
		if len(b.values) == 0 {
			return Attempt
		}
		text, isText := textAt(value, "")
		if !isText {
			return Unclear
		}
		if slices.Contains(b.values, text) {
			return Attempt
		}
	}
	return Other
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

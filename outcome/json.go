package outcome

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// JSONTest tests one value of a JSON body.
type JSONTest struct {
	// Path leads to the value: data.order_no.
	Path string `json:"path"`
	// Absent: the value must be absent or null.
	Absent bool `json:"absent,omitempty"`
	// Values are what the value may be, as text; none: it must be present and not null. {ref} is
	// the ref of the order that the shop was asked about.
	Values []string `json:"values,omitempty"`
}

// jsonTest tests one value of the shop's answer. A body that is not exactly one JSON
// document passes no test: nothing is guessed from it.
func jsonTest(t JSONTest) (func(*Reply) trit, error) {
	path, err := ParsePath(t.Path)
	if err != nil {
		return nil, err
	}
	if t.Absent && len(t.Values) > 0 {
		return nil, fmt.Errorf("json !%s takes no values", t.Path)
	}
	return func(r *Reply) trit {
		if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
			return no
		}
		if !r.Whole {
			return maybe
		}
		document, err := decodeJSON(r.Body)
		if err != nil {
			return no
		}
		text, present := lookUp(document, path)
		switch {
		case t.Absent:
			return tritOf(!present)
		case len(t.Values) == 0:
			return tritOf(present)
		default:
			return tritOf(present && slices.ContainsFunc(t.Values, func(v string) bool {
				if v == RefValue {
					return text == r.Ref && r.Ref != ""
				}
				return v == text
			}))
		}
	}, nil
}

// RefValue stands for the ref in the values of a test.
const RefValue = "{ref}"

func decodeJSON(body []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var document any
	if err := d.Decode(&document); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("more than one document")
	}
	return document, nil
}

// lookUp finds the value at a path, as text; objects and arrays have no text, they are
// only present. null counts as absent.
func lookUp(v any, path []string) (text string, present bool) {
	for _, name := range path {
		switch at := v.(type) {
		case map[string]any:
			v = at[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(at) {
				return "", false
			}
			v = at[i]
		default:
			return "", false
		}
	}
	switch v := v.(type) {
	case nil:
		return "", false
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	default:
		return "", true
	}
}

// Path leads to a value of a JSON body: data.order_no.
type Path []string

// ParsePath reads a path.
func ParsePath(text string) (Path, error) {
	path := strings.Split(text, ".")
	if slices.Contains(path, "") {
		return nil, fmt.Errorf("json %q is no path; write data.order_no", text)
	}
	return path, nil
}

// In returns the value at the path as text. It is empty where there is none or the body is not
// exactly one JSON document.
func (p Path) In(body []byte) string {
	document, err := decodeJSON(body)
	if err != nil {
		return ""
	}
	text, _ := lookUp(document, p)
	return text
}

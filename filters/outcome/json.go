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

	"github.com/stockgate/stockgate/internal/jsonpath"
)

// JSONTest tests one value of a JSON body.
type JSONTest struct {
	// Path leads to the value: data.order_no.
	Path string `json:"path"`
	// Absent: the value must be absent, null or an empty array.
	Absent bool `json:"absent,omitempty"`
	// Values are what the value may be, as text; none: it must be there, and be neither null nor an empty
	// array. A number is compared as a number, and a * stands for any characters. {ref} is the ref of the
	// order that the shop was asked about.
	Values []string `json:"values,omitempty"`
}

// jsonPaths returns what the tests of answers read of arrays.
func jsonPaths(answers ...AnswerMatcher) jsonpath.Elements {
	var paths []string
	for _, a := range answers {
		for _, t := range a.JSON {
			paths = append(paths, t.Path)
		}
	}
	return jsonpath.ElementsOf(paths...)
}

// jsonTest tests one value of the shop's answer. A body that is not exactly one JSON
// document passes no test: nothing is guessed from it. One that is not whole leaves it open. An array with more elements than the tests
// read leaves it open: another element may say something else.
func jsonTest(t JSONTest, read jsonpath.Elements) (func(*ShopAnswer) trit, error) {
	if err := checkPath(t.Path); err != nil {
		return nil, err
	}
	if t.Absent && len(t.Values) > 0 {
		return nil, fmt.Errorf("json !%s takes no values", t.Path)
	}
	return func(r *ShopAnswer) trit {
		document, problem := r.document()
		switch problem {
		case "":
		case CauseTooLong:
			return maybe
		default:
			return no
		}
		found, whole := read.At(document, t.Path)
		switch {
		case !whole:
			return maybe
		case t.Absent:
			return tritOf(isAbsent(found))
		case len(t.Values) == 0:
			return tritOf(!isAbsent(found))
		default:
			return tritOf(slices.ContainsFunc(t.Values, func(want string) bool { return r.isValue(found, want) }))
		}
	}, nil
}

// RefValue stands for the ref in the values of a test.
const RefValue = "{ref}"

// withoutMark drops a byte order mark, as browsers and most libraries do.
func withoutMark(body []byte) []byte { return bytes.TrimPrefix(body, []byte("\ufeff")) }

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

// isAbsent reports whether there is no value: null and an empty array are none.
func isAbsent(v any) bool {
	list, ok := v.([]any)
	return v == nil || ok && len(list) == 0
}

// isValue reports whether a value is one that a test wants.
func (r *ShopAnswer) isValue(v any, want string) bool {
	text, present := textOf(v)
	if want == RefValue {
		return text == r.Ref && r.Ref != ""
	}
	number, ok := v.(json.Number)
	return present && (matches(want, text) || ok && sameNumber(number.String(), want))
}

// textOf returns a value as text; objects and arrays have no text, they are only present. null counts
// as absent.
func textOf(v any) (text string, present bool) {
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

// Paths lead to a value of a JSON body, such as data.order_no. Of several, the first that leads to
// one counts.
type Paths []string

// Check says what is wrong with the paths.
func (ps Paths) Check() error {
	for _, path := range ps {
		if err := checkPath(path); err != nil {
			return err
		}
	}
	return nil
}

// In returns the value as text. It is empty where there is none or the body is not exactly one JSON
// document. whole is false where an array on the way has more elements than the paths read.
func (ps Paths) In(body []byte) (text string, whole bool) {
	document, err := decodeJSON(withoutMark(body))
	if err != nil {
		return "", true
	}
	read := jsonpath.ElementsOf(ps...)
	for _, path := range ps {
		found, whole := read.At(document, path)
		if !whole {
			return "", false
		}
		if text, _ = textOf(found); text != "" {
			return text, true
		}
	}
	return "", true
}

func checkPath(text string) error {
	if slices.Contains(strings.Split(text, "."), "") {
		return fmt.Errorf("json %q is no path; write data.order_no", text)
	}
	return nil
}

package scope

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// A list argument is the same list wherever the client has written it.
func TestList(t *testing.T) {
	s := graphQL(t, nil)
	const one, two = `[{"sku":"a","n":2}]`, `[{"sku":"a","n":2},{"sku":"b","n":"3"}]`
	for name, c := range map[string]struct{ document, variables, want string }{
		"a literal":             {`mutation { buy(lines: [{sku: "a", n: 2}, {sku: "b", n: "3"}]) }`, ``, two},
		"a variable":            {`mutation M($l: [L!]!) { buy(lines: $l) }`, `{"l":` + two + `}`, two},
		"a default":             {`mutation M($l: [L!] = [{sku: "a", n: 2}]) { buy(lines: $l) }`, ``, one},
		"no default":            {`mutation M($l: [L!] = [{sku: "a", n: 2}]) { buy(lines: $l) }`, `{"l":null}`, `null`},
		"variables inside":      {`mutation M($s: ID!, $n: Int = 2) { buy(lines: [{sku: $s, n: $n}]) }`, `{"s":"a"}`, one},
		"a whole element":       {`mutation M($x: L!) { buy(lines: [$x]) }`, `{"x":{"sku":"a","n":2}}`, one},
		"no value":              {`mutation M($n: Int) { buy(lines: [{sku: "a", n: $n}]) }`, ``, `[{"sku":"a"}]`},
		"one for a list":        {`mutation { buy(lines: {sku: "a", n: 2}) }`, ``, one},
		"one in a variable":     {`mutation M($l: L) { buy(lines: $l) }`, `{"l":{"sku":"a","n":2}}`, one},
		"below an object":       {`mutation M($n: Int!) { buy(lines: [{sku: "a", n: $n}]) }`, `{"n":2}`, one},
		"a block text, a name":  {`mutation { buy(lines: [{sku: """a""", n: B}]) }`, ``, `[{"sku":"a","n":"B"}]`},
		"a name twice":          {`mutation { buy(lines: [{n: 1, n: 2}]) }`, ``, `[{"n":1,"n":2}]`},
		"quotes":                {`mutation { buy(lines: [{sku: "a\"},{\"sku\":\"b"}]) }`, ``, `[{"sku":"a\"},{\"sku\":\"b"}]`},
		"empty":                 {`mutation { buy(lines: []) }`, ``, `[]`},
		"null":                  {`mutation { buy(lines: null) }`, ``, `null`},
		"a text":                {`mutation { buy(lines: "a") }`, ``, `["a"]`},
		"absent":                {`mutation { buy(other: 1) }`, ``, ``},
		"a variable unknown":    {`mutation { buy(lines: $l) }`, `{"l":[]}`, ``},
		"a variable without":    {`mutation M($l: [L!]) { buy(lines: $l) }`, ``, ``},
		"an inside unknown":     {`mutation { buy(lines: [{n: $n}]) }`, `{"n":1}`, ``},
		"many times a variable": {`mutation M($x: L!) { buy(lines: [` + strings.Repeat("$x,", 2000) + `]) }`, `{"x":{"sku":"` + strings.Repeat("a", 4000) + `"}}`, ``},
	} {
		more := ""
		if c.variables != "" {
			more = `,"variables":` + c.variables
		}
		got := judge(s, post(c.document, more))
		if got.Verdict != Attempt {
			t.Errorf("%s: %v %s", name, got.Verdict, got.Cause)
			continue
		}
		if raw, ok := got.List("lines"); ok != (c.want != "") || ok && string(raw) != reordered(c.want, string(raw)) {
			t.Errorf("%s: %s, want %s", name, raw, c.want)
		}
	}
	deeper := judge(s, post(`mutation M($i: I!) { buy(input: $i) }`, `,"variables":{"i":{"lines":`+one+`}}`))
	if raw, ok := deeper.List("input.lines"); !ok || string(raw) != reordered(one, string(raw)) {
		t.Errorf("below a variable: %s", raw)
	}
	// a default that names a variable is no document
	if got := judge(s, post(`mutation M($l: [L!] = [$l]) { buy(lines: $l) }`, "")); got.Verdict != Unclear {
		t.Errorf("a default that names itself: %v", got.Verdict)
	}
}

// reordered returns got if it says what want says: variables have no order of names.
func reordered(want, got string) string {
	var a, b any
	if json.Unmarshal([]byte(want), &a) != nil || json.Unmarshal([]byte(got), &b) != nil || len(want) != len(got) || fmt.Sprint(a) != fmt.Sprint(b) {
		return want
	}
	return got
}

// Whatever a document says, a list of its arguments is JSON, and bounded.
func FuzzList(f *testing.F) {
	f.Add(`mutation M($x: L! = {a: [1, "b", C, null, true]}) { buy(lines: [$x, {y: {z: $x}}]) }`, `{"x":{"y":1}}`)
	f.Add(`mutation { buy(lines: """\""" """) }`, ``)
	s := graphQL(f, nil)
	f.Fuzz(func(t *testing.T, document, variables string) {
		more := ""
		if variables != "" {
			more = `,"variables":` + variables
		}
		got := judge(s, post(document, more))
		if got.Verdict != Attempt {
			return
		}
		raw, ok := got.List("lines")
		if ok && (!json.Valid(raw) || len(raw) > 3*maxList) {
			t.Errorf("%d bytes: %q", len(raw), raw)
		}
	})
}

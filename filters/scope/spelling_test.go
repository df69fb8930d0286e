package scope

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// A value that some server reads as one of the rule's is unclear; all others go on.
func TestSpellings(t *testing.T) {
	for rule, c := range map[string]struct{ attempts, unclear, others []string }{
		"order": {
			attempts: []string{`"order"`, `"\u006frder"`},
			unclear: []string{
				`"Order"`, `"ORDER"`, `"order "`, `" order"`, `"\u00a0order\u3000"`, `"order\n"`, `"order\u0000"`, `"order\u0000x"`, `"or\u200bder"`, `"or\u00adder"`,
				`"\uff4frder"`, `"\u00f6rder"`, `"o\u0308rder"`, `"order\ud800"`, `true`, `0`, `-0`, `0.0`, `0e7`, `0.5`, `3`, `"3"`, `["order"]`, `{"order":1}`,
			},
			others: []string{`"cancel"`, `"orders"`, `"reorder"`, `"or der"`, `""`, `"true"`, `"order now"`, `"order.cancel"`, `"A-1"`, `"2nd"`, `"\u8a02\u8cfc"`, `false`, `null`},
		},
		"express": {
			unclear: []string{`"EXPRESS"`, `"expre\u00df"`, `"expre\u017f\u017f"`},
			others:  []string{`"standard"`, `"ex-press"`},
		},
		"place-order 2nd": { // not all are words
			unclear: []string{`"Place-Order"`, `2`, `0`},
			others:  []string{`1`, `3`, `"3"`, `"place order"`},
		},
		"1": {
			attempts: []string{`1`, `"1"`},
			unclear: []string{
				`1.0`, `1e0`, `10e-1`, `0.1e1`, `1.5`, `0.5`, `1e5`, `1E+0`, `4294967297`, `4294967297.0`, `-4294967295`, `18446744073709551617`, `1e400`,
				`"01"`, `"001"`, `"+1"`, `" 1"`, `"1 "`, `"\t1"`, `"1\u0000"`, `"1abc"`, `"1;2"`, `"0x1"`, `"0X01"`, `"0x1g"`, `"#1"`, `"0b1"`, `"1e0"`, `"1."`, `"1,"`, `"0_1"`,
				`"\uff11"`, `"\u0661"`, `"\u00b9"`, `true`, `"true"`, `"Yes"`, `"on"`,
			},
			others: []string{`2`, `0`, `-1`, `10`, `11`, `2.5`, `2147483649`, `9007199254740995`, `"2"`, `"02"`, `"11"`, `"0x2"`, `"2nd"`, `"cancel"`, `"one"`, `""`, `"no"`, `false`, `null`},
		},
		"0": {
			attempts: []string{`0`, `"0"`},
			unclear:  []string{`-0`, `0.0`, `0.4`, `"00"`, `""`, `" "`, `"cancel"`, `false`, `"off"`, `null`},
			others:   []string{`1`, `"1"`, `-2`, `true`},
		},
		"010": {
			unclear: []string{`10`, `8`, `"8"`, `"0010"`, `10.0`},
			others:  []string{`"011"`, `"008"`, `"012"`, `11`},
		},
		"9007199254740993": {
			attempts: []string{`9007199254740993`},
			unclear:  []string{`9007199254740992`, `1`, `99999999999999999999`},
			others:   []string{`9007199254740999`, `2`},
		},
		"true": {
			attempts: []string{`true`, `"true"`},
			unclear:  []string{`1`, `2`, `0`, `"1"`, `"yes"`, `"True"`, `"false"`, `""`},
			others:   []string{`false`, `null`},
		},
		"false": {
			attempts: []string{`false`, `"false"`},
			unclear:  []string{`0`, `0.5`, `"0"`, `""`, `"FALSE"`, `"yes"`, `null`},
			others:   []string{`true`, `"true"`, `"True"`, `1`, `2`},
		},
		"buy 1": {
			attempts: []string{`"buy"`, `1`},
			unclear:  []string{`"Buy"`, `1.0`},
			others:   []string{`2`, `"2"`, `"look"`},
		},
	} {
		s, err := Compile(Spec{JSONBody: []JSONBody{{Path: "a.b", Values: strings.Fields(rule)}}})
		if err != nil {
			t.Fatal(err)
		}
		g, err := Compile(Spec{GraphQL: []GraphQL{{Field: "move", Argument: "to", Values: strings.Fields(rule)}}})
		if err != nil {
			t.Fatal(err)
		}
		for want, values := range map[Verdict][]string{Attempt: c.attempts, Unclear: c.unclear, Other: c.others} {
			for _, value := range values {
				if got := judge(s, send("POST", "/", `{"a":{"b":`+value+`}}`)); got.Verdict != want {
					t.Errorf("json_body %s: %s: %d %q, want %d", rule, value, got.Verdict, got.Cause, want)
				}
				if value == "null" { // no value that can be read
					continue
				}
				if got := judge(g, post(`mutation($v: V) { move(to: $v) { x } }`, `,"variables":{"v":`+value+`}`)); got.Verdict != want {
					t.Errorf("graphql %s: %s: %d %q, want %d", rule, value, got.Verdict, got.Cause, want)
				}
			}
		}
	}
}

// Literals of a document are read as JSON is, and names are texts.
func TestSpellingsOfLiterals(t *testing.T) {
	s, err := Compile(Spec{GraphQL: []GraphQL{
		{Field: "move", Argument: "state", Values: []string{"3"}},
		{Field: "move", Argument: "kind", Values: []string{"fast"}},
		{Field: "move", Argument: "kind", Values: []string{"Fast"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]struct {
		verdict Verdict
		cause   Cause
	}{
		`state: 3, kind: slow`:          {Attempt, ""},
		`state: 3.0, kind: slow`:        {Unclear, CauseValue},
		`state: "03", kind: slow`:       {Unclear, CauseValue},
		`state: """3 """, kind: slow`:   {Unclear, CauseValue},
		`state: true, kind: slow`:       {Unclear, CauseValue},
		`state: 4, kind: slow`:          {Other, ""},
		`state: Three, kind: slow`:      {Other, ""},
		`state: 4, kind: FAST`:          {Unclear, CauseValue},
		`state: 4, kind: Fast`:          {Attempt, ""},
		`state: 3.0, kind: fast`:        {Attempt, ""},
		`state: 4, kind: null`:          {Unclear, CauseArgument},
		`state: 4, kind: "\u017flow"`:   {Other, ""},
		`state: 4, kind: "fa\u017ft\t"`: {Unclear, CauseValue},
	} {
		if got := judge(s, post(`mutation { move(`+args+`) { x } }`, "")); got.Verdict != want.verdict || got.Cause != want.cause {
			t.Errorf("%s: %d %q, want %d %q", args, got.Verdict, got.Cause, want.verdict, want.cause)
		}
	}
}

// The rule for a query is that for a body, and more: only words are excluded there.
func TestSpellingsInAQuery(t *testing.T) {
	s, err := Compile(Spec{JSONBody: []JSONBody{{Path: "action", Values: []string{"order", "1"}}}})
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]Verdict{
		"cancel": Other, "re-order": Other, "no": Other,
		"order": Unclear, "ORDER": Unclear, "true": Unclear, "yes": Unclear, "1": Unclear, "2": Unclear, "": Unclear, "ord\u0131r": Unclear,
	} {
		if got := judge(s, send(http.MethodGet, "/?action="+url.QueryEscape(value), "")); got.Verdict != want {
			t.Errorf("%q: %d %q, want %d", value, got.Verdict, got.Cause, want)
		}
	}
}

package outcome

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// What the shop's answer means, rule by rule.
func TestRules(t *testing.T) {
	type want map[string]Decision // "status" or "status body" → decision
	for _, c := range []struct {
		name    string
		rules   []Rule
		answers map[string]AnswerMatcher
		want    want
	}{
		{
			name: "defaults",
			want: want{
				"200": Confirm, "201": Confirm, "204": Confirm, "299": Confirm,
				"301": InDoubt, "302": InDoubt, "304": InDoubt,
				"400": Release, "401": Release, "402": Release, "403": Release, "404": Release, "410": Release, "422": Release, "429": Release,
				"408": InDoubt, "409": InDoubt, "499": InDoubt,
				"500": InDoubt, "502": InDoubt, "503": InDoubt, "504": InDoubt,
			},
		},
		{
			name:  "own rules replace the default of their kind",
			rules: []Rule{{"confirm", []string{"201"}}, {"release", []string{"409", "5xx"}}},
			want:  want{"201": Confirm, "200": InDoubt, "409": Release, "503": Release, "404": InDoubt},
		},
		{
			name:  "the other kind keeps its default",
			rules: []Rule{{"confirm", []string{"302"}}},
			want:  want{"302": Confirm, "200": InDoubt, "404": Release, "409": InDoubt},
		},
		{
			name:  "the first rule counts",
			rules: []Rule{{"release", []string{"200"}}, {"confirm", []string{"2xx"}}},
			want:  want{"200": Release, "201": Confirm},
		},
		{
			name:    "always 200, the body tells",
			rules:   []Rule{{"confirm", []string{"@sold"}}, {"release", []string{"@refused", "4xx"}}},
			answers: map[string]AnswerMatcher{"sold": {Status: []string{"200"}, JSON: []JSONTest{{Path: "code", Values: []string{"0", "200"}}}}, "refused": {JSON: []JSONTest{{Path: "code", Values: []string{"30001"}}}}},
			want: want{
				`200 {"code":0}`: Confirm, `200 {"code":"0"}`: Confirm, `200 {"code":200}`: Confirm,
				`200 {"code":30001}`: Release, `200 {"code":500}`: InDoubt, `200 {"code":0.0}`: Confirm, `200 {"code":2e2}`: Confirm, `200 {"code":0.5}`: InDoubt, `200 {"code":"0.0"}`: InDoubt,
				`200 {"code":null}`: InDoubt, `200 {}`: InDoubt, `200 `: InDoubt, `200 <html>`: InDoubt,
				`200 {"code":0}{"code":0}`: InDoubt, `500 {"code":0}`: InDoubt, `404 {"code":1}`: Release,
			},
		},
		{
			name:  "present and absent",
			rules: []Rule{{"confirm", []string{"@order"}}, {"release", []string{"@none"}}},
			answers: map[string]AnswerMatcher{
				"order": {JSON: []JSONTest{{Path: "data.order.no"}, {Path: "error", Absent: true}}},
				"none":  {JSON: []JSONTest{{Path: "data.order", Absent: true}}},
			},
			want: want{
				`200 {"data":{"order":{"no":"A1"}}}`:                Confirm,
				`200 {"data":{"order":{"no":"A1"}},"error":null}`:   Confirm,
				`200 {"data":{"order":{"no":"A1"}},"error":"late"}`: InDoubt,
				`200 {"data":{"order":{"no":null}}}`:                InDoubt,
				`200 {"data":{}}`:                                   Release,
				`200 {"data":[1]}`:                                  Release,
				"200 \ufeff" + `{"data":{"order":{"no":"A1"}}}`:     Confirm,
				"200 \ufeff\ufeff" + `{"data":{}}`:                  InDoubt,
				`200 {"data":{"order":{"no":"A1"}},"error":[]}`:     Confirm,
				`200 {"data":{"order":{"no":"A1"}},"error":[""]}`:   InDoubt,
				`200 {"data":{"order":{"no":[]}}}`:                  InDoubt,
				`200 {"data":{"order":[]}}`:                         Release,
				`200 {"data":{"order":{}}}`:                         InDoubt,
				`200 not json`:                                      InDoubt,
			},
		},
		{
			name:    "array elements and truth values",
			rules:   []Rule{{"confirm", []string{"@ok"}}},
			answers: map[string]AnswerMatcher{"ok": {JSON: []JSONTest{{Path: "items.1.ok", Values: []string{"true"}}}}},
			want:    want{`200 {"items":[{"ok":false},{"ok":true}]}`: Undecided, `200 {"items":[]}`: InDoubt, `200 {"items":{"1":{"ok":true}}}`: Confirm},
		},
		{
			name:  "one of many decides nothing, whatever the rules behind it say",
			rules: []Rule{{"release", []string{"@no"}}, {"confirm", []string{"@paid", "201"}}},
			answers: map[string]AnswerMatcher{
				"no":   {JSON: []JSONTest{{Path: "errors.0.code", Values: []string{"sold_out"}}}},
				"paid": {Status: []string{"200"}, JSON: []JSONTest{{Path: "orders.0.state", Values: []string{"paid"}}, {Path: "orders.1", Absent: true}}},
			},
			want: want{
				`200 {"orders":[{"state":"paid"}]}`:                  Confirm,
				`200 {"orders":[{"state":"paid"},{"state":"open"}]}`: InDoubt,
				`200 {"orders":[{"state":"paid"},null]}`:             Confirm,
				`200 {"orders":[{"state":"paid"},{},{}]}`:            Undecided,
				`200 {"errors":[{"code":"sold_out"}]}`:               Release,
				`201 {"errors":[{"code":"other"},{"code":"other"}]}`: Undecided,
				`201 {"errors":[{"code":"other"}]}`:                  Confirm,
				`404 {"orders":[{"state":"paid"},{},{}]}`:            InDoubt,
			},
		},
		{
			name:    "headers",
			rules:   []Rule{{"confirm", []string{"@thanks"}}, {"release", []string{"@why"}}},
			answers: map[string]AnswerMatcher{"thanks": {Status: []string{"302"}, Header: map[string][]string{"Location": {"/thanks", "/done", "https://*/orders/*/ok"}}}, "why": {Header: map[string][]string{"X-Why": nil}}},
			want:    want{"302 |Location: /thanks": Confirm, "302 |Location: /cart": InDoubt, "302 |Location: /thanks/7": InDoubt, "302 |Location: https://a/orders/7/ok": Confirm, "302 |Location: https://a/orders/7/no": InDoubt, "302 |X-Why: x": Release, "200": InDoubt},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			rules, err := Compile(c.rules, c.answers, false)
			if err != nil {
				t.Fatal(err)
			}
			for answer, want := range c.want {
				if got := rules.Decide(parseReply(t, answer)); got != want {
					t.Errorf("%s: %v, want %v", answer, got, want)
				}
			}
		})
	}
}

// {ref} is the order that the shop was asked about, and no other.
func TestRefOfTheOrder(t *testing.T) {
	rules, err := Compile([]Rule{{"release", []string{"@open"}}},
		map[string]AnswerMatcher{"open": {JSON: []JSONTest{{Path: "cart.id", Values: []string{"{ref}"}}}}}, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ref, body string
		want      Decision
	}{
		{"o-1", `{"cart":{"id":"o-1"}}`, Release},
		{"o-1", `{"cart":{"id":"o-2"}}`, InDoubt},
		{"o-1", `{"cart":{"id":"{ref}"}}`, InDoubt},
		{"o-1", `{"cart":{}}`, InDoubt},
		{"", `{"cart":{"id":""}}`, InDoubt},
		{"", `{"cart":{"id":{}}}`, InDoubt},
	} {
		r := &ShopAnswer{Status: 500, Header: http.Header{}, Body: []byte(c.body), Whole: true, Ref: c.ref}
		if got := rules.Decide(r); got != c.want {
			t.Errorf("%s about %q: %v, want %v", c.body, c.ref, got, c.want)
		}
	}
}

// A rule that needs the body waits for it; an earlier rule does not.
func TestRulesWaitForTheBody(t *testing.T) {
	rules, err := Compile(
		[]Rule{{"release", []string{"404"}}, {"confirm", []string{"@sold"}}},
		map[string]AnswerMatcher{"sold": {Status: []string{"200"}, JSON: []JSONTest{{Path: "code", Values: []string{"0"}}}}}, false,
	)
	if err != nil {
		t.Fatal(err)
	}
	if !rules.ReadsBody {
		t.Error("the rules do not say that they read the body")
	}
	for status, want := range map[int]Decision{404: Release, 200: Undecided, 500: InDoubt} {
		if got := rules.Decide(&ShopAnswer{Status: status, Header: http.Header{}}); got != want {
			t.Errorf("%d before its body: %v, want %v", status, got, want)
		}
	}
	for encoding, want := range map[string]Decision{"gzip": Undecided, "br": InDoubt, "gzip, gzip": InDoubt} {
		encoded := &ShopAnswer{Status: 200, Header: http.Header{"Content-Encoding": {encoding}}}
		if got := rules.Decide(encoded); got != want {
			t.Errorf("%s before its body: %v, want %v", encoding, got, want)
		}
	}
}

func TestRulesRefuse(t *testing.T) {
	for _, c := range []struct {
		rules   []Rule
		answers map[string]AnswerMatcher
		want    string
	}{
		{[]Rule{{"keep", []string{"200"}}}, nil, `outcome "keep"`},
		{[]Rule{{"confirm", nil}}, nil, "no status and no @answer is named"},
		{[]Rule{{"confirm", []string{"@gone"}}}, nil, "there is no answer @gone"},
		{[]Rule{{"confirm", []string{"1xx"}}}, nil, `"1xx" is neither`},
		{[]Rule{{"confirm", []string{"600"}}}, nil, `"600" is neither`},
		{[]Rule{{"confirm", []string{"ok"}}}, nil, `"ok" is neither`},
		{nil, map[string]AnswerMatcher{"a": {}}, "it tests nothing"},
		{nil, map[string]AnswerMatcher{"a": {Status: []string{"x"}}}, "answer @a"},
		{nil, map[string]AnswerMatcher{"a": {JSON: []JSONTest{{Path: ""}}}}, "is no path"},
		{nil, map[string]AnswerMatcher{"a": {JSON: []JSONTest{{Path: "a..b"}}}}, "is no path"},
		{nil, map[string]AnswerMatcher{"a": {JSON: []JSONTest{{Path: "a", Absent: true, Values: []string{"1"}}}}}, "takes no values"},
	} {
		_, err := Compile(c.rules, c.answers, false)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v %v: error %v, want one with %q", c.rules, c.answers, err, c.want)
		}
	}
}

// parseReply reads "status body" or "status body|Header: value".
func parseReply(t *testing.T, s string) *ShopAnswer {
	t.Helper()
	s, header, _ := strings.Cut(s, "|")
	status, body, _ := strings.Cut(s, " ")
	r := &ShopAnswer{Header: http.Header{}, Body: []byte(body), Whole: true}
	for _, c := range status {
		r.Status = r.Status*10 + int(c-'0')
	}
	if name, value, ok := strings.Cut(header, ": "); ok {
		r.Header.Set(name, value)
	}
	return r
}

// Of a list of which one element is read, none is: another one may be the one that is meant.
func TestPaths(t *testing.T) {
	for _, c := range []struct {
		paths Paths
		body  string
		want  string
	}{
		{Paths{"ref"}, `{"ref":"o-1"}`, "o-1 true"},
		{Paths{"none", "ref"}, `{"ref":7}`, "7 true"},
		{Paths{"data.0.ref"}, `{"data":[{"ref":"o-1"}]}`, "o-1 true"},
		{Paths{"data.0.ref"}, `{"data":[{"ref":"o-1"},{"ref":"o-2"}]}`, " false"},
		{Paths{"data.0.ref", "data.1.ref"}, `{"data":[{},{"ref":"o-2"}]}`, "o-2 true"},
		{Paths{"ref", "data.0.ref"}, `{"ref":"o-1","data":[1,2]}`, "o-1 true"},
		{Paths{"ref"}, `{"ref":"o-1"} x`, " true"},
	} {
		text, whole := c.paths.In([]byte(c.body))
		if got := fmt.Sprint(text, " ", whole); got != c.want {
			t.Errorf("%v of %s: %q, want %q", c.paths, c.body, got, c.want)
		}
	}
	if err := (Paths{"a", "b..c"}).Check(); err == nil {
		t.Error("a path without a name is one")
	}
}

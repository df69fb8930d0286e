package caddymodule

import (
	"net/http"
	"strings"
	"testing"
)

// What the shop's answer means, rule by rule.
func TestRules(t *testing.T) {
	type want map[string]verdict // "status" or "status body" → verdict
	for _, c := range []struct {
		name    string
		rules   []Rule
		answers map[string]Answer
		want    want
	}{
		{
			name: "defaults",
			want: want{
				"200": confirm, "201": confirm, "204": confirm, "299": confirm,
				"301": inDoubt, "302": inDoubt, "304": inDoubt,
				"400": release, "401": release, "402": release, "403": release, "404": release, "410": release, "422": release, "429": release,
				"408": inDoubt, "409": inDoubt, "499": inDoubt,
				"500": inDoubt, "502": inDoubt, "503": inDoubt, "504": inDoubt,
			},
		},
		{
			name:  "own rules replace the default of their kind",
			rules: []Rule{{"confirm", []string{"201"}}, {"release", []string{"409", "5xx"}}},
			want:  want{"201": confirm, "200": inDoubt, "409": release, "503": release, "404": inDoubt},
		},
		{
			name:  "the other kind keeps its default",
			rules: []Rule{{"confirm", []string{"302"}}},
			want:  want{"302": confirm, "200": inDoubt, "404": release, "409": inDoubt},
		},
		{
			name:  "the first rule counts",
			rules: []Rule{{"release", []string{"200"}}, {"confirm", []string{"2xx"}}},
			want:  want{"200": release, "201": confirm},
		},
		{
			name:    "always 200, the body tells",
			rules:   []Rule{{"confirm", []string{"@sold"}}, {"release", []string{"@refused", "4xx"}}},
			answers: map[string]Answer{"sold": {Status: []string{"200"}, JSON: []JSONTest{{Path: "code", Values: []string{"0", "200"}}}}, "refused": {JSON: []JSONTest{{Path: "code", Values: []string{"30001"}}}}},
			want: want{
				`200 {"code":0}`: confirm, `200 {"code":"0"}`: confirm, `200 {"code":200}`: confirm,
				`200 {"code":30001}`: release, `200 {"code":500}`: inDoubt, `200 {"code":0.0}`: inDoubt,
				`200 {"code":null}`: inDoubt, `200 {}`: inDoubt, `200 `: inDoubt, `200 <html>`: inDoubt,
				`200 {"code":0}{"code":0}`: inDoubt, `500 {"code":0}`: inDoubt, `404 {"code":1}`: release,
			},
		},
		{
			name:  "present and absent",
			rules: []Rule{{"confirm", []string{"@order"}}, {"release", []string{"@none"}}},
			answers: map[string]Answer{
				"order": {JSON: []JSONTest{{Path: "data.order.no"}, {Path: "error", Absent: true}}},
				"none":  {JSON: []JSONTest{{Path: "data.order", Absent: true}}},
			},
			want: want{
				`200 {"data":{"order":{"no":"A1"}}}`:                confirm,
				`200 {"data":{"order":{"no":"A1"}},"error":null}`:   confirm,
				`200 {"data":{"order":{"no":"A1"}},"error":"late"}`: inDoubt,
				`200 {"data":{"order":{"no":null}}}`:                inDoubt,
				`200 {"data":{}}`:                                   release,
				`200 {"data":[1]}`:                                  release,
				`200 not json`:                                      inDoubt,
			},
		},
		{
			name:    "array elements and truth values",
			rules:   []Rule{{"confirm", []string{"@ok"}}},
			answers: map[string]Answer{"ok": {JSON: []JSONTest{{Path: "items.1.ok", Values: []string{"true"}}}}},
			want:    want{`200 {"items":[{"ok":false},{"ok":true}]}`: confirm, `200 {"items":[{"ok":true}]}`: inDoubt, `200 {"items":{"1":{"ok":true}}}`: confirm},
		},
		{
			name:    "headers",
			rules:   []Rule{{"confirm", []string{"@thanks"}}, {"release", []string{"@why"}}},
			answers: map[string]Answer{"thanks": {Status: []string{"302"}, Header: map[string][]string{"Location": {"/thanks", "/done"}}}, "why": {Header: map[string][]string{"X-Why": nil}}},
			want:    want{"302 |Location: /thanks": confirm, "302 |Location: /cart": inDoubt, "302 |X-Why: x": release, "200": inDoubt},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			rules, err := compileRules(c.rules, c.answers, false)
			if err != nil {
				t.Fatal(err)
			}
			for answer, want := range c.want {
				if got := rules.decide(parseReply(t, answer)); got != want {
					t.Errorf("%s: %v, want %v", answer, got, want)
				}
			}
		})
	}
}

// A rule that needs the body waits for it; an earlier rule does not.
func TestRulesWaitForTheBody(t *testing.T) {
	rules, err := compileRules(
		[]Rule{{"release", []string{"404"}}, {"confirm", []string{"@sold"}}},
		map[string]Answer{"sold": {Status: []string{"200"}, JSON: []JSONTest{{Path: "code", Values: []string{"0"}}}}}, false,
	)
	if err != nil {
		t.Fatal(err)
	}
	if !rules.readsBody {
		t.Error("the rules do not say that they read the body")
	}
	for status, want := range map[int]verdict{404: release, 200: undecided, 500: inDoubt} {
		if got := rules.decide(&reply{status: status, header: http.Header{}}); got != want {
			t.Errorf("%d before its body: %v, want %v", status, got, want)
		}
	}
	gzipped := &reply{status: 200, header: http.Header{"Content-Encoding": {"gzip"}}}
	if got := rules.decide(gzipped); got != inDoubt {
		t.Errorf("a body that cannot be read: %v, want %v", got, inDoubt)
	}
}

func TestRulesRefuse(t *testing.T) {
	for _, c := range []struct {
		rules   []Rule
		answers map[string]Answer
		want    string
	}{
		{[]Rule{{"keep", []string{"200"}}}, nil, `outcome "keep"`},
		{[]Rule{{"confirm", nil}}, nil, "no status and no @answer is named"},
		{[]Rule{{"confirm", []string{"@gone"}}}, nil, "there is no answer @gone"},
		{[]Rule{{"confirm", []string{"1xx"}}}, nil, `"1xx" is neither`},
		{[]Rule{{"confirm", []string{"600"}}}, nil, `"600" is neither`},
		{[]Rule{{"confirm", []string{"ok"}}}, nil, `"ok" is neither`},
		{nil, map[string]Answer{"a": {}}, "it tests nothing"},
		{nil, map[string]Answer{"a": {Status: []string{"x"}}}, "answer @a"},
		{nil, map[string]Answer{"a": {JSON: []JSONTest{{Path: ""}}}}, "is no path"},
		{nil, map[string]Answer{"a": {JSON: []JSONTest{{Path: "a..b"}}}}, "is no path"},
		{nil, map[string]Answer{"a": {JSON: []JSONTest{{Path: "a", Absent: true, Values: []string{"1"}}}}}, "takes no values"},
	} {
		_, err := compileRules(c.rules, c.answers, false)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v %v: error %v, want one with %q", c.rules, c.answers, err, c.want)
		}
	}
}

// parseReply reads "status body" or "status body|Header: value".
func parseReply(t *testing.T, s string) *reply {
	t.Helper()
	s, header, _ := strings.Cut(s, "|")
	status, body, _ := strings.Cut(s, " ")
	r := &reply{header: http.Header{}, body: []byte(body), whole: true}
	for _, c := range status {
		r.status = r.status*10 + int(c-'0')
	}
	if name, value, ok := strings.Cut(header, ": "); ok {
		r.header.Set(name, value)
	}
	return r
}

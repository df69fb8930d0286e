package attempt_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/internal/sale"
)

// The lines may be in an argument of the operation, which the caller finds.
func TestLinesOfArgument(t *testing.T) {
	array, err := attempt.CompileArray("{graphql.input.lines}")
	if err != nil {
		t.Fatal(err)
	}
	rd := mustReader(t, attempt.Spec{
		Buyer: values(t, "{header.X-User-Id}"),
		Lines: &attempt.Lines{Array: array, SKU: "product.sku", Quantity: "count"},
	})
	for list, want := range map[string]string{
		`[{"product":{"sku":"a"},"count":2},{"product":{"sku":7},"count":"3"}]`:   "a×2 7×3",
		`[{"product":{"sku":"a"},"product":{"sku":"b"}}]`:                         "malformed graphql.input.lines.product: the name appears twice",
		`[{"product":{"sku":"a"},"count":0},{"product":{"sku":"b"},"count":"4"}]`: "b×4",
		`[{"product":{"sku":"a"},"count":0}]`:                                     "malformed graphql.input.lines: no line of it",
		`[{"product":{"sku":"a"},"count":1.5}]`:                                   "malformed graphql.input.lines.count: it is neither",
		`[{"product":{"sku":"a"},"count":true}]`:                                  "malformed graphql.input.lines.count: it is neither",
		`[[]]`:                                                                    "malformed graphql.input.lines: it is not an object",
		`["a"]`:                                                                   "malformed graphql.input.lines: it is not an object",
		`[]`:                                                                      "no_cart",
		`null`:                                                                    "malformed graphql.input.lines: there is no line",
		`[` + strings.Repeat("{},", 50) + `{}]`:                                   "malformed graphql.input.lines: it has more than 50",
		`[{"x":` + strings.Repeat("[", 40) + `]}]`:                                "malformed the body: it nests deeper",
		``: "malformed graphql.input.lines: it has no value",
	} {
		env := attempt.Env{Argument: func(path string) ([]byte, bool) {
			if path != "input.lines" {
				t.Errorf("asked for %s", path)
			}
			return []byte(list), list != ""
		}}
		a, refusal := whole(t, rd, request("POST", "/", jsonType, `{"query":"mutation { a }"}`), env)
		got := describe(refusal)
		if refusal == nil {
			got = show(a.Lines)
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%.80s: got %q, want %q", list, got, want)
		}
	}
	if _, refusal := whole(t, rd, request("POST", "/", jsonType, `{}`), attempt.Env{}); !strings.HasPrefix(describe(refusal), "malformed graphql.input.lines: it has no value") {
		t.Error(describe(refusal))
	}
	for _, expr := range []string{"{graphql.}", "{graphql.0}", "{graphql.a..b}", `{graphql.a\.b}`} {
		if _, err := attempt.CompileArray(expr); err == nil {
			t.Errorf("%s: no error", expr)
		}
	}
}

func TestLines(t *testing.T) {
	rd := mustReader(t, attempt.Spec{
		Buyer:  values(t, "{header.X-User-Id}"),
		Region: values(t, "{json.region}"),
		Lines:  &attempt.Lines{Array: values(t, "{json.cart.items}")[0], SKU: "product.sku", Quantity: "count"},
	})
	item := func(sku, count string) string { return `{"product":{"sku":` + sku + `},"count":` + count + `}` }
	many := func(n int) string { return strings.TrimSuffix(strings.Repeat(item(`"a"`, "1")+",", n), ",") }
	for name, tc := range map[string]struct{ items, want string }{
		"one":                {"[" + item(`"a"`, "2") + "]", "a@bj×2"},
		"several":            {"[" + item(`"a"`, "2") + "," + item("7", `"3"`) + "]", "a@bj×2 7@bj×3"},
		"equal ones":         {"[" + item(`"a"`, "2") + "," + item(`"b"`, "1") + "," + item(`"a"`, "3") + "]", "a@bj×5 b@bj×1"},
		"equal when read":    {"[" + item(`1`, "2") + "," + item(`"\u0031"`, "1") + "]", "1@bj×3"},
		"no count":           {`[{"product":{"sku":"a"}}]`, "a@bj×1"},
		"more fields":        {`[{"id":1,"product":{"name":"x","sku":"a"},"tags":[{"count":9}]}]`, "a@bj×1"},
		"50":                 {"[" + many(50) + "]", "a@bj×50"},
		"51":                 {"[" + many(51) + "]", "malformed json.cart.items: it has more than 50"},
		"sum at the bound":   {"[" + item(`"a"`, "9999") + "," + item(`"a"`, "1") + "]", "a@bj×10000"},
		"sum above":          {"[" + item(`"a"`, "9999") + "," + item(`"a"`, "2") + "]", "quantity the quantity: it is above 10000"},
		"one above":          {"[" + item(`"a"`, "1") + "," + item(`"b"`, "10001") + "]", "quantity the quantity: it is above 10000"},
		"malformed first":    {"[" + item(`"b"`, "10001") + "," + item(`"a"`, `"+1"`) + "]", "malformed json.cart.items.count: it is not a whole number"},
		"one of 0":           {"[" + item(`"a"`, "0") + "," + item(`"b"`, "2") + "]", "b@bj×2"},
		"one of text 0":      {"[" + item(`"b"`, "2") + "," + item(`"a"`, `"0"`) + "]", "b@bj×2"},
		"an empty one":       {"[" + item(`"a"`, `""`) + "," + item(`"b"`, "2") + "]", "b@bj×2"},
		"0 and equal":        {"[" + item(`"a"`, "0") + "," + item(`"a"`, "2") + "]", "a@bj×2"},
		"0 of no item":       {`[{"count":0},` + item(`"b"`, "2") + "]", "b@bj×2"},
		"odd zeros":          {"[" + item(`"b"`, "2") + "," + item(`"a"`, `"00"`) + "]", "malformed json.cart.items.count: it is not a whole number"},
		"all of 0":           {"[" + item(`"a"`, "0") + "," + item(`"b"`, `""`) + "]", "malformed json.cart.items: no line of it has a quantity above 0"},
		"null count":         {"[" + item(`"a"`, "null") + "]", "malformed json.cart.items.count: it is not a whole number"},
		"no sku":             {`[{"count":1}]`, "malformed json.cart.items.product.sku: it is missing"},
		"null product":       {`[{"product":null}]`, "malformed json.cart.items.product.sku: it is missing"},
		"empty element":      {`[{}]`, "malformed json.cart.items.product.sku: it is missing"},
		"null element":       {`[null]`, "malformed json.cart.items: it is not an object"},
		"text element":       {`["a"]`, "malformed json.cart.items: it is not an object"},
		"array element":      {`[[]]`, "malformed json.cart.items: it is not an object"},
		"names twice":        {`[{"count":1,"count":1,"product":{"sku":"a"}}]`, "malformed json.cart.items.count: the name appears twice"},
		"names in each":      {`[{"product":{"sku":"a"}},{"Product":{"sku":"a"}}]`, "malformed json.cart.items.product: the name appears in another spelling"},
		"none":               {`[]`, "no_cart"},
		"null":               {`null`, "malformed json.cart.items: there is no line"},
		"object":             {`{"0":{}}`, "malformed json.cart.items: it is not an array"},
		"number":             {`1`, "malformed json.cart.items: it is not an array"},
		"a field that folds": {`[{"product":{"sku":"a"},"Count":5}]`, "malformed json.cart.items.count: the name appears in another spelling"},
	} {
		r := request("POST", "/", jsonType, `{"region":"bj","cart":{"items":`+tc.items+`}}`)
		a, refusal := whole(t, rd, r, attempt.Env{})
		got := describe(refusal)
		if refusal == nil {
			got = show(a.Lines)
		}
		if !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
		if refusal != nil && refusal.Reason == sale.Quantity && refusal.SKU == "" {
			t.Errorf("%s: the refusal does not name the item", name)
		}
	}
}

func TestSeveralLines(t *testing.T) {
	rd := mustReader(t, attempt.Spec{
		Buyer: values(t, "{header.X-User-Id}"),
		Line: []attempt.LineSpec{
			{SKU: values(t, "{form.sku}"), Quantity: values(t, "{form.n}")},
			{SKU: values(t, "{form.gift}"), Quantity: values(t, "{form.gift_n}")},
			{SKU: values(t, "{form.wrap}"), Quantity: values(t, "1")},
		},
	})
	runParams(t, rd, map[string]paramCase{
		"all":                  {mediaType: formType, body: "sku=a&n=2&gift=g&gift_n=3&wrap=w", want: "a×2 g×3 w×1"},
		"one":                  {mediaType: formType, body: "sku=a", want: "a×1"},
		"another":              {mediaType: formType, body: "gift=g", want: "g×1"},
		"left empty":           {mediaType: formType, body: "sku=a&gift=&wrap=", want: "a×1"},
		"equal ones":           {mediaType: formType, body: "sku=a&n=2&gift=a&gift_n=3&wrap=a", want: "a×6"},
		"quantity without sku": {mediaType: formType, body: "sku=a&gift_n=3", want: "malformed form.gift: it is missing"},
		"a row left empty":     {mediaType: formType, body: "sku=a&gift=&gift_n=", want: "a×1"},
		"an empty row of 0":    {mediaType: formType, body: "sku=a&gift=&gift_n=0", want: "a×1"},
		"a named item of 0":    {mediaType: formType, body: "sku=a&gift=g&gift_n=0", want: "malformed form.gift_n: it is not a whole number"},
		"only empty rows":      {mediaType: formType, body: "sku=&n=&gift=&gift_n=0", want: "malformed the order: no line of it has a quantity above 0"},
		"none":                 {mediaType: formType, body: "x=1", want: "malformed form.sku: it is missing"},
	})
}

// A constant item is ordered where the request has units of it. That it lacks the quantity says so
// only where the operator says so: shops take an absent quantity for one.
func TestLinesOfConstantItems(t *testing.T) {
	const none = "malformed the order: no line of it has a quantity above 0"
	reader := func(a, b string, absent attempt.Absent) *attempt.Reader {
		return mustReader(t, attempt.Spec{Buyer: values(t, "{header.X-User-Id}"), Line: []attempt.LineSpec{
			{SKU: values(t, "A1"), Quantity: values(t, a), Absent: absent},
			{SKU: values(t, "B1"), Quantity: values(t, b), Absent: absent},
		}})
	}
	for body, want := range map[string][2]string{ // as it is, and with absent 0
		"a=2&b=1":   {"A1×2 B1×1", "A1×2 B1×1"},
		"a=2&b=0":   {"A1×2", "A1×2"},
		"a=2&b=":    {"A1×2", "A1×2"},
		"a=2&b":     {"A1×2", "A1×2"},
		"a=2":       {"A1×2 B1×1", "A1×2"},
		"b=3":       {"A1×1 B1×3", "B1×3"},
		"a=0&b=":    {none, none},
		"":          {"A1×1 B1×1", none},
		"a=0":       {"B1×1", none},
		"a=2&b=00":  {"malformed form.b: it is not a whole number", "malformed form.b: it is not a whole number"},
		"a=2&b=-0":  {"malformed form.b: it is not a whole number", "malformed form.b: it is not a whole number"},
		"a=2&b=0.0": {"malformed form.b: it is not a whole number", "malformed form.b: it is not a whole number"},
		"a=2&b=%20": {"malformed form.b: it is not a whole number", "malformed form.b: it is not a whole number"},
		"a=2&B=1":   {"malformed form.b: the name appears in another spelling", "malformed form.b: the name appears in another spelling"},
	} {
		for i, absent := range []attempt.Absent{attempt.AbsentAssumed, attempt.AbsentIsNone, attempt.AbsentIsOne} {
			a, refusal := whole(t, reader("{form.a}", "{form.b}", absent), request("POST", "/", formType, body), attempt.Env{})
			got := describe(refusal)
			if refusal == nil {
				got = show(a.Lines)
			}
			if !strings.HasPrefix(got, want[i%2]) {
				t.Errorf("%q, absent %d: %s, want %s", body, absent, got, want[i%2])
			}
			if assumed := absent == attempt.AbsentAssumed && refusal == nil && strings.Count(body, "=") < 2 && body != "a=2&b"; a.AssumedOne != assumed {
				t.Errorf("%q, absent %d: a quantity is assumed: %v", body, absent, a.AssumedOne)
			}
		}
	}
	for name, tc := range map[string]struct {
		rd         *attempt.Reader
		target     string
		body, want string
	}{
		"JSON":               {reader("{json.a}", "{json.b}", attempt.AbsentAssumed), "/", `{"a":2,"b":0}`, "A1×2"},
		"JSON, a text":       {reader("{json.a}", "{json.b}", attempt.AbsentAssumed), "/", `{"a":"2","b":"0"}`, "A1×2"},
		"JSON, empty":        {reader("{json.a}", "{json.b}", attempt.AbsentAssumed), "/", `{"a":2,"b":""}`, "A1×2"},
		"JSON, null":         {reader("{json.a}", "{json.b}", attempt.AbsentIsNone), "/", `{"a":2,"b":null}`, "malformed json.b: it is not a whole number"},
		"JSON, absent":       {reader("{json.a}", "{json.b}", attempt.AbsentIsNone), "/", `{"b":2}`, "B1×2"},
		"JSON, an element":   {reader("{json.n.0}", "{json.n.1}", attempt.AbsentIsNone), "/", `{"n":[0,4]}`, "B1×4"},
		"JSON, one element":  {reader("{json.n.0}", "{json.n.1}", attempt.AbsentIsNone), "/", `{"n":[4]}`, "A1×4"},
		"JSON, three":        {reader("{json.n.0}", "{json.n.1}", attempt.AbsentIsNone), "/", `{"n":[4,0,1]}`, "malformed json.n: it has more elements"},
		"query":              {reader("{query.a}", "{query.b}", attempt.AbsentIsNone), "/?a=0&b=1", ``, "B1×1"},
		"param":              {reader("{param.a}", "{param.b}", attempt.AbsentIsNone), "/?b=1", ``, "B1×1"},
		"a constant beside":  {nil, "/?a=0", ``, "B1×1"},
		"one item":           {lineReader(t, "A1", "{query.a}"), "/?a=0", ``, none},
		"one item, empty":    {lineReader(t, "A1", "{query.a}"), "/?a=", ``, none},
		"one item, absent":   {lineReader(t, "A1", "{query.a}"), "/", ``, "A1×1"},
		"one that is named":  {lineReader(t, "{query.sku}", "{query.a}"), "/?sku=A1&a=0", ``, "malformed query.a: it is not a whole number"},
		"a later value":      {mustReader(t, attempt.Spec{Buyer: values(t, "{header.X-User-Id}"), Line: []attempt.LineSpec{{SKU: values(t, "A1"), Quantity: values(t, "{query.a}", "{query.n}")}}}), "/?a=&n=2", ``, "malformed query.a: it is not"},
		"an item or another": {mustReader(t, attempt.Spec{Buyer: values(t, "{header.X-User-Id}"), Line: []attempt.LineSpec{{SKU: values(t, "{query.sku}", "A1"), Quantity: values(t, "{query.a}")}}}), "/?a=0", ``, "malformed query.a: it is not"},
	} {
		if strings.HasPrefix(name, "a constant") {
			tc.rd = mustReader(t, attempt.Spec{Buyer: values(t, "{header.X-User-Id}"), Line: []attempt.LineSpec{
				{SKU: values(t, "A1"), Quantity: values(t, "{query.a}"), Absent: attempt.AbsentIsNone}, {SKU: values(t, "B1")},
			}})
		}
		media := ""
		if tc.body != "" {
			media = jsonType
		}
		a, refusal := whole(t, tc.rd, request("POST", tc.target, media, tc.body), attempt.Env{})
		got := describe(refusal)
		if refusal == nil {
			got = show(a.Lines)
		}
		if !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// A line of a cart that has no units is none; a cart without others is empty.
func TestLinesOfLookupWithoutUnits(t *testing.T) {
	rd := mustReader(t, attempt.Spec{Buyer: values(t, "{header.X-User-Id}"), Lines: &attempt.Lines{Array: values(t, "{lookup.items}")[0], SKU: "sku", Quantity: "n"}})
	for items, want := range map[string]string{
		`[{"sku":"a","n":2},{"sku":"b","n":0}]`:    "a×2",
		`[{"sku":"a","n":2},{"sku":"b","n":""}]`:   "a×2",
		`[{"sku":"a","n":0},{"sku":"b","n":"0"}]`:  "no_cart",
		`[{"sku":"a","n":2},{"sku":"b","n":null}]`: "unavailable",
		`[{"sku":"a","n":2},{"sku":"b"}]`:          "unavailable",
	} {
		a, refusal, _ := withCart(t, rd, request("POST", "/", "", ""), `{"items":`+items+`}`)
		got := describe(refusal)
		if refusal == nil {
			got = show(a.Lines)
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", items, got, want)
		}
	}
}

// What the shop says about a cart can be read again, and then nothing is left of what it said before.
func TestCartIsReadAgain(t *testing.T) {
	rd := mustReader(t, attempt.Spec{
		Buyer: values(t, "{lookup.email}", "{header.X-User-Id}"), Ref: values(t, "{query.ref}"),
		Lines: &attempt.Lines{Array: values(t, "{lookup.items}")[0], SKU: "sku"},
	})
	r := request("POST", "/?ref=r1", "", "")
	body, refusal := bodyOf(t, rd, r)
	if refusal != nil {
		t.Fatal(describe(refusal))
	}
	reading, refusal := rd.ReadRequest(r, body, attempt.Env{})
	if refusal != nil || reading.Early.Buyer != "u-1" || reading.Early.Ref != "r1" || len(reading.Early.Lines) != 0 {
		t.Fatalf("%+v, %s", reading, describe(refusal))
	}
	var firsts []sale.Attempt
	for _, c := range []struct{ document, want string }{
		{`{"email":"ann","items":[{"sku":"a"},{"sku":"b"}]}`, "ann a×1 b×1"},
		{`{"items":[{"sku":"c"}]}`, "u-1 c×1"},
		{`{"items":[]}`, "no_cart"},
		{`{`, "unavailable " + attempt.UnreadLookup},
		{`{"email":"bob","items":[{"sku":"a"}]}`, "bob a×1"},
	} {
		a, refusal, _ := reading.ReadCart([]byte(c.document))
		got := describe(refusal)
		if refusal == nil {
			got = a.Buyer + " " + show(a.Lines)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.document, got, c.want)
		}
		firsts = append(firsts, a)
	}
	if got := firsts[0].Buyer + " " + show(firsts[0].Lines); got != "ann a×1 b×1" {
		t.Errorf("the first attempt became %s", got)
	}
}

// What a placeholder of Caddy's says is nothing where it is empty: its quantity is absent.
func TestConstantItemOfAText(t *testing.T) {
	for absent, want := range map[attempt.Absent]string{attempt.AbsentAssumed: "A1×1", attempt.AbsentIsOne: "A1×1", attempt.AbsentIsNone: "malformed the order"} {
		rd := mustReader(t, attempt.Spec{Buyer: values(t, "{header.X-User-Id}"), Line: []attempt.LineSpec{
			{SKU: values(t, "A1"), Quantity: values(t, "{graphql.a}"), Absent: absent},
		}})
		for _, c := range []struct{ text, want string }{{"", want}, {"0", "malformed the order"}, {"3", "A1×3"}} {
			a, refusal := whole(t, rd, request("POST", "/", "", ""), attempt.Env{Replace: func(string) string { return c.text }})
			got := describe(refusal)
			if refusal == nil {
				got = show(a.Lines)
			}
			if !strings.HasPrefix(got, c.want) {
				t.Errorf("absent %d, %q: %s, want %s", absent, c.text, got, c.want)
			}
		}
	}
}

func TestBuyer(t *testing.T) {
	for name, tc := range map[string]struct{ buyer, want string }{
		"plain":           {"u-1", ""},
		"not ASCII":       {"王小明", ""},
		"inner space":     {"John Doe", ""},
		"128 bytes":       {strings.Repeat("a", 128), ""},
		"129 bytes":       {strings.Repeat("a", 129), "malformed the buyer: it is longer"},
		"none":            {"", "no_buyer"},
		"control":         {"u\x01", "malformed the buyer: it is not UTF-8"},
		"NUL":             {"u\x00", "malformed the buyer: it is not UTF-8"},
		"delete":          {"u\x7f", "malformed the buyer: it is not UTF-8"},
		"C1 control":      {"u\u0085x", "malformed the buyer: it is not UTF-8"},
		"invalid UTF-8":   {"u\xff", "malformed the buyer: it is not UTF-8"},
		"space before":    {" u", "malformed the buyer: there is space around it"},
		"space behind":    {"u\u3000", "malformed the buyer: there is space around it"},
		"only a space":    {" ", "malformed the buyer: there is space around it"},
		"a placeholder":   {"{env.SECRET}", ""},
		"a constant-like": {"{json.sku}", ""},
	} {
		calls := 0
		env := attempt.Env{Replace: func(text string) string {
			calls++
			if text != "{http.auth.user.id}" {
				t.Errorf("%s: Replace is given %q", name, text)
			}
			return tc.buyer
		}}
		rd := mustReader(t, attempt.Spec{
			Buyer: values(t, "{http.auth.user.id}"),
			Line:  []attempt.LineSpec{{SKU: values(t, "a")}},
		})
		a, refusal := whole(t, rd, request("POST", "/", "", ""), env)
		got := describe(refusal)
		if tc.want == "" && (got != "" || a.Buyer != tc.buyer) || !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: got %q, buyer %q", name, got, a.Buyer)
		}
		if calls != 1 {
			t.Errorf("%s: Replace is called %d times", name, calls)
		}
		if tc.buyer != "" && strings.Contains(got, tc.buyer) && len(tc.buyer) > 2 {
			t.Errorf("%s: the refusal repeats what the client sent: %q", name, got)
		}
	}
}

func TestReplaceOfTextIsCheckedToo(t *testing.T) {
	rd := mustReader(t, attempt.Spec{
		Buyer: values(t, "u-{header.X-User-Id}"),
		Line:  []attempt.LineSpec{{SKU: values(t, "a")}},
	})
	env := attempt.Env{Replace: func(text string) string {
		return strings.ReplaceAll(text, "{http.request.header.X-User-Id}", "7")
	}}
	r := request("POST", "/", "", "")
	a, refusal := whole(t, rd, r, env)
	if refusal != nil || a.Buyer != "u-7" {
		t.Errorf("got %q, buyer %q", describe(refusal), a.Buyer)
	}
	r.Header.Add("X-User-Id", "8")
	if _, refusal := whole(t, rd, r, env); describe(refusal) != "malformed header.X-User-Id: the header appears twice" {
		t.Errorf("two headers: got %q", describe(refusal))
	}
	if _, refusal := whole(t, rd, request("POST", "/", "", ""), attempt.Env{}); describe(refusal) != "no_buyer" {
		t.Errorf("without Replace: got %q", describe(refusal))
	}
}

func TestIdentities(t *testing.T) {
	rd := mustReader(t, attempt.Spec{
		Buyer: values(t, "{header.X-User-Id}"),
		Line:  []attempt.LineSpec{{SKU: values(t, "a")}},
		Identities: map[string]attempt.Values{
			"phone":   values(t, "{json.phone}", "{header.X-Phone}"),
			"address": values(t, "{json.address}"),
			"device":  values(t, "{cookie.device}"),
			"ip":      values(t, "{client_ip}"),
		},
	})
	for name, tc := range map[string]struct {
		body string
		want map[string]string
		bad  string
	}{
		"none":             {`{}`, map[string]string{"ip": "192.0.2.1", "phone": "100"}, ""},
		"all":              {`{"phone":13800001111,"address":"x"}`, map[string]string{"ip": "192.0.2.1", "phone": "13800001111", "address": "x"}, ""},
		"null and empty":   {`{"phone":"","address":null}`, map[string]string{"ip": "192.0.2.1", "phone": "100"}, ""},
		"space is alike":   {`{"address":" 1\n Main\u3000\u00a0 St \t"}`, map[string]string{"ip": "192.0.2.1", "phone": "100", "address": "1 main st"}, ""},
		"only space":       {`{"address":" \n "}`, map[string]string{"ip": "192.0.2.1", "phone": "100"}, ""},
		"512 bytes":        {`{"address":"` + strings.Repeat("a", 512) + `"}`, map[string]string{"ip": "192.0.2.1", "phone": "100", "address": strings.Repeat("a", 512)}, ""},
		"513 bytes":        {`{"address":"` + strings.Repeat("a", 513) + `"}`, nil, "malformed json.address: it is longer"},
		"control":          {`{"address":"a\u0001"}`, nil, "malformed json.address: it is not UTF-8"},
		"another type":     {`{"phone":{"n":1}}`, nil, "malformed json.phone: it is neither"},
		"fraction":         {`{"phone":1.5}`, nil, "malformed json.phone: it is neither"},
		"in another place": {`{"phone":"1","Phone":"2"}`, nil, "malformed json.phone: the name appears"},
	} {
		r := request("POST", "/", jsonType, tc.body)
		r.Header.Set("X-Phone", "1-00")
		a, refusal := whole(t, rd, r, attempt.Env{ClientIP: "192.0.2.1"})
		if got := describe(refusal); tc.bad == "" && got != "" || !strings.HasPrefix(got, tc.bad) {
			t.Errorf("%s: got %q, want %q", name, got, tc.bad)
		}
		if !maps.Equal(a.Identities, tc.want) {
			t.Errorf("%s: got %v, want %v", name, a.Identities, tc.want)
		}
	}
}

// Rules of the configuration hold for the buyer, identities and keys of rates, wherever they are read.
func TestIdentityRules(t *testing.T) {
	options := sale.IdentityOptions{Country: "DE", Buyer: "email", EmailTags: "ignored"}
	rules, err := options.Rules()
	if err != nil {
		t.Fatal(err)
	}
	for source, send := range map[string]func(value string) *http.Request{
		"{header.X-V}": func(v string) *http.Request {
			r := request("POST", "/", "", "")
			r.Header.Set("X-V", v)
			return r
		},
		"{query.v}": func(v string) *http.Request { return request("POST", "/?v="+url.QueryEscape(v), "", "") },
		"{form.v}": func(v string) *http.Request {
			return request("POST", "/", "application/x-www-form-urlencoded", "v="+url.QueryEscape(v))
		},
		"{json.v}": func(v string) *http.Request { return request("POST", "/", jsonType, fmt.Sprintf(`{"v":%q}`, v)) },
		"{jwt.v}": func(v string) *http.Request {
			r := request("POST", "/", "", "")
			r.Header.Set("Authorization", "Bearer "+base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"v":%q}`, v)))
			return r
		},
	} {
		v := values(t, source)
		for kind, cases := range map[string]map[string]string{
			"buyer": {"A+shop@X.test": "a@x.test", "Ann": "Ann", "a@": "malformed " + strings.Trim(source, "{}") + ": it is no e-mail address"},
			"email": {"A+shop@X.test": "a@x.test", "Ann": "malformed " + strings.Trim(source, "{}") + ": it is no e-mail address", "": ""},
			"phone": {"0171 1234567 x12": "+491711234567", "+49-171-1234567": "+491711234567"},
		} {
			spec := attempt.Spec{Rules: rules, Anonymous: true, Line: []attempt.LineSpec{{SKU: values(t, "a")}}, Rates: []attempt.RateKey{{Key: v}}}
			if kind == "buyer" {
				spec.Buyer = v
			} else {
				spec.Identities = map[string]attempt.Values{kind: v}
			}
			if source == "{jwt.v}" {
				spec.Bearer = new(attempt.Bearer)
			}
			rd := mustReader(t, spec)
			for value, want := range cases {
				a, refusal := whole(t, rd, send(value), attempt.Env{Claims: func(token string) ([]byte, *sale.Refusal) {
					claims, _ := base64.RawURLEncoding.DecodeString(token)
					return claims, nil
				}})
				got, key := a.Identities[kind], ""
				if kind == "buyer" {
					got = a.Buyer
				}
				if refusal != nil {
					got = describe(refusal)
				} else {
					key = a.RateKeys[0]
				}
				if got != want || refusal == nil && key != want {
					t.Errorf("%s %s %q: got %q with the key %q, want %q", kind, source, value, got, key, want)
				}
			}
		}
	}
}

func TestSaleAndRegion(t *testing.T) {
	rd := mustReader(t, attempt.Spec{
		Sale:   values(t, "{query.sale}"),
		Region: values(t, "{query.region}"),
		Buyer:  values(t, "{header.X-User-Id}"),
		Line:   []attempt.LineSpec{{SKU: values(t, "a")}},
	})
	for query, want := range map[string]string{
		"":                                   "ok  ",
		"sale=&region=":                      "ok  ",
		"sale=double11&region=beijing":       "ok double11 beijing",
		"sale=0.a_b-c":                       "ok 0.a_b-c ",
		"sale=" + strings.Repeat("a", 64):    "ok " + strings.Repeat("a", 64) + " ",
		"sale=" + strings.Repeat("a", 65):    "unknown_sale",
		"sale=Double11":                      "unknown_sale",
		"sale=-a":                            "unknown_sale",
		"sale=a%2F..":                        "unknown_sale",
		"region=bei+jing":                    "malformed query.region: it is not printable ASCII",
		"region=%E5%8C%97":                   "malformed query.region: it is not printable ASCII",
		"region=" + strings.Repeat("a", 129): "malformed query.region: it is longer",
	} {
		a, refusal := whole(t, rd, request("POST", "/?"+query, "", ""), attempt.Env{})
		got := describe(refusal)
		if refusal == nil {
			got = "ok " + a.Sale + " " + a.Region
			if a.Lines[0].Region != a.Region {
				t.Errorf("%s: the line's region is %q", query, a.Lines[0].Region)
			}
		}
		if got != want && (refusal == nil || !strings.HasPrefix(got, want)) {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
}

func TestRefusalsComeInOneOrder(t *testing.T) {
	rd := mustReader(t, attempt.Spec{
		Sale:  values(t, "{query.sale}"),
		Buyer: values(t, "{query.buyer}"),
		Line:  []attempt.LineSpec{{SKU: values(t, "{query.sku}"), Quantity: values(t, "{query.n}")}},
	})
	for query, want := range map[string]string{
		"sale=A&sku=a+b&n=10001":       "malformed",
		"sale=A&sku=a&n=10001":         "no_buyer",
		"sale=A&sku=a&n=10001&buyer":   "no_buyer",
		"sale=A&sku=a&n=10001&buyer=b": "unknown_sale",
		"sale=a&sku=a&n=10001&buyer=b": "quantity",
	} {
		_, refusal := whole(t, rd, request("POST", "/?"+query, "", ""), attempt.Env{})
		if refusal == nil || string(refusal.Reason) != want {
			t.Errorf("%s: got %q, want %q", query, describe(refusal), want)
		}
	}
}

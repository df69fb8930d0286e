package attempt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/filters/attempt"
)

func TestCompile(t *testing.T) {
	for _, tc := range []struct {
		expr  string
		kind  attempt.ValueKind
		name  string
		needs attempt.Needs
	}{
		{"", attempt.Constant, "", 0},
		{"20002001", attempt.Constant, "", 0},
		{"{json.sku}", attempt.JSON, "sku", attempt.NeedJSON},
		{`{json.order.items.0.a\.b}`, attempt.JSON, `order.items.0.a\.b`, attempt.NeedJSON},
		{"{form.sku}", attempt.Form, "sku", attempt.NeedForm},
		{"{param.sku}", attempt.Param, "sku", attempt.NeedForm | attempt.NeedQuery},
		{"{query.sku}", attempt.Query, "sku", attempt.NeedQuery},
		{"{http.request.uri.query.sku}", attempt.Query, "sku", attempt.NeedQuery},
		{"{header.x-user-id}", attempt.Header, "X-User-Id", attempt.NeedHeader},
		{"{http.request.header.X-User-Id}", attempt.Header, "X-User-Id", attempt.NeedHeader},
		{"{cookie.sid}", attempt.Cookie, "sid", attempt.NeedCookie},
		{"{http.request.cookie.sid}", attempt.Cookie, "sid", attempt.NeedCookie},
		{"{path.1}", attempt.Path, "1", attempt.NeedPath},
		{"{http.request.uri.path.1}", attempt.Path, "1", attempt.NeedPath},
		{"{jwt.sub}", attempt.JWT, "sub", attempt.NeedJWT},
		{`{jwt.https://example\.com/member.id}`, attempt.JWT, `https://example\.com/member.id`, attempt.NeedJWT},
		{"{client_ip}", attempt.ClientIP, "", attempt.NeedIP},
		{"{http.vars.client_ip}", attempt.ClientIP, "", attempt.NeedIP},
		{"{http.auth.user.id}", attempt.Text, "", attempt.NeedReplace},
		{"{http.request.uri.path.file}", attempt.Text, "", attempt.NeedReplace},
		{"{path.file}", attempt.Text, "", attempt.NeedReplace},
		{"u-{header.X-User-Id}", attempt.Text, "", attempt.NeedReplace | attempt.NeedHeader},
		{`\{braces\}`, attempt.Text, "", attempt.NeedReplace},
	} {
		v, err := attempt.Compile(tc.expr)
		if err != nil {
			t.Errorf("%s: %v", tc.expr, err)
			continue
		}
		if v.Kind() != tc.kind || v.Name() != tc.name || v.Needs() != tc.needs {
			t.Errorf("%s: kind %d, name %q, needs %b", tc.expr, v.Kind(), v.Name(), v.Needs())
		}
	}
}

func TestCompileErrors(t *testing.T) {
	for expr, want := range map[string]string{
		"{json}":                        "a name is missing",
		"{json.}":                       "a name is missing",
		"{json.a..b}":                   "empty step",
		"{json.a.*.b}":                  "lines {json.items} sku quantity",
		"{jwt.*}":                       "a * reads nothing",
		`{json.a\b}`:                    "a backslash stands only before a dot",
		"{json.0}":                      "begin with a name",
		"{json.a.1000}":                 "from 0 to 999",
		"{json.a.01}":                   "from 0 to 999",
		"{json._METHOD}":                "_method is refused",
		"{json." + deep(40) + "}":       "32 levels",
		"{form.items[0]}":               "brackets",
		"{form._method}":                "_method is refused",
		"{query..method}":               "_method is refused",
		"{query.a\x00b}":                "control characters",
		"{header.Host}":                 "{http.request.host}",
		"{header.X Y}":                  "not a header's name",
		"{header.Stockgate-Token}":      "always empty",
		"{http.request.header.}":        "a name is missing",
		"{cookie.a b}":                  "not a cookie's name",
		"{path.x}":                      "{path.0}",
		"{path.-1}":                     "{path.0}",
		"{path.01}":                     "{path.0}",
		"{path.100}":                    "{path.0}",
		"{jwt}":                         "a name is missing",
		"{jwt.}":                        "a name is missing",
		"{jwt.0}":                       "begin with a name",
		"{jwt.a..b}":                    "empty step",
		"a-{jwt.sub}":                   "must stand alone",
		"sku-{json.sku}":                "must stand alone",
		"{form.a}{form.b}":              "must stand alone",
		"{http.auth.user.id":            "not closed",
		"{http.auth.user.id}-{query.a[": "not closed",
	} {
		_, err := attempt.Compile(expr)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", expr, err, want)
		}
	}
}

func TestNeedsOfAlternatives(t *testing.T) {
	vs := values(t, "{json.sku}", "{path.1}", "a")
	if got := vs.Needs(); got != attempt.NeedJSON|attempt.NeedPath || !got.Has(attempt.NeedBody) || got.Has(attempt.NeedForm) {
		t.Errorf("needs %b", got)
	}
}

func deep(steps int) string { return strings.Repeat("a.", steps-1) + "a" }

func TestNewReaderErrors(t *testing.T) {
	one := func(sku, quantity string) []attempt.LineSpec {
		l := attempt.LineSpec{SKU: values(t, sku)}
		if quantity != "" {
			l.Quantity = values(t, quantity)
		}
		return []attempt.LineSpec{l}
	}
	buyer := values(t, "{header.X-User-Id}")
	array := values(t, "{json.items}")[0]
	for name, tc := range map[string]struct {
		spec attempt.Spec
		want string
	}{
		"no buyer":              {attempt.Spec{Line: one("{json.sku}", "")}, "buyer:"},
		"no line":               {attempt.Spec{Buyer: buyer}, "line:"},
		"line without sku":      {attempt.Spec{Buyer: buyer, Line: []attempt.LineSpec{{}}}, "line:"},
		"line and lines":        {attempt.Spec{Buyer: buyer, Line: one("a", ""), Lines: &attempt.Lines{Array: array, SKU: "sku"}}, "use one of them"},
		"lines elsewhere":       {attempt.Spec{Buyer: buyer, Lines: &attempt.Lines{Array: values(t, "{query.a}")[0], SKU: "sku"}}, "in the body or in a lookup"},
		"lines of an argument":  {attempt.Spec{Buyer: buyer, Lines: &attempt.Lines{Array: values(t, "{graphql.inputs}")[0], SKU: "sku"}}, "in the body or in a lookup"},
		"lines without sku":     {attempt.Spec{Buyer: buyer, Lines: &attempt.Lines{Array: array}}, "name the field"},
		"a placeholder":         {attempt.Spec{Buyer: buyer, Lines: &attempt.Lines{Array: array, SKU: "{key}", Quantity: "{value}"}}, "without braces"},
		"one field for both":    {attempt.Spec{Buyer: buyer, Lines: &attempt.Lines{Array: array, SKU: "a", Quantity: "a"}}, "fields of their own"},
		"fields in case":        {attempt.Spec{Buyer: buyer, Lines: &attempt.Lines{Array: array, SKU: "a", Quantity: "A"}}, "only in case"},
		"lines read twice":      {attempt.Spec{Buyer: values(t, "{json.items.0.x}"), Lines: &attempt.Lines{Array: array, SKU: "a"}}, "another value"},
		"a later element":       {attempt.Spec{Buyer: buyer, Line: one("{json.items.1.sku}", "")}, "json.items: a later element is read and element 0 is not"},
		"a later claim":         {attempt.Spec{Buyer: values(t, "{jwt.mails.0}", "{jwt.mails.2}"), Line: one("a", ""), Bearer: new(attempt.Bearer)}, "element 1 is not"},
		"a later, of a lookup":  {attempt.Spec{Buyer: buyer, Line: one("{lookup.carts.1.items.0.sku}", "")}, "lookup.carts: a later element"},
		"a later, in lines":     {attempt.Spec{Buyer: buyer, Lines: &attempt.Lines{Array: array, SKU: "parts.1.sku"}}, "json.items.parts: a later element"},
		"absent, a named item":  {attempt.Spec{Buyer: buyer, Line: []attempt.LineSpec{{SKU: values(t, "{json.sku}"), Quantity: values(t, "{json.n}"), Absent: attempt.AbsentIsNone}}}, "leave absent out"},
		"absent, or another":    {attempt.Spec{Buyer: buyer, Line: []attempt.LineSpec{{SKU: values(t, "{json.sku}", "a"), Quantity: values(t, "{json.n}"), Absent: attempt.AbsentIsOne}}}, "leave absent out"},
		"absent, no quantity":   {attempt.Spec{Buyer: buyer, Line: []attempt.LineSpec{{SKU: values(t, "a"), Absent: attempt.AbsentIsNone}}}, "leave absent out"},
		"absent, a constant":    {attempt.Spec{Buyer: buyer, Line: []attempt.LineSpec{{SKU: values(t, "a"), Quantity: values(t, "2"), Absent: attempt.AbsentIsNone}}}, "leave absent out"},
		"no jwt":                {attempt.Spec{Buyer: values(t, "{jwt.sub}"), Line: one("a", "")}, "say how the bearer token is verified"},
		"jwt without a claim":   {attempt.Spec{Buyer: buyer, Line: one("a", ""), Bearer: new(attempt.Bearer)}, "no value reads a claim"},
		"body ignored and read": {attempt.Spec{Buyer: values(t, "b"), Line: one("{json.sku}", ""), BodyIgnored: true}, "the shop reads it too"},
		"jwt in a bad cookie":   {attempt.Spec{Buyer: values(t, "{jwt.sub}"), Line: one("a", ""), Bearer: &attempt.Bearer{Cookie: "a b"}}, "cookie's name"},
		"claims in case":        {attempt.Spec{Buyer: values(t, "{jwt.sub}", "{jwt.Sub}"), Line: one("a", ""), Bearer: new(attempt.Bearer)}, "only in case"},
		"claim and object":      {attempt.Spec{Buyer: values(t, "{jwt.user}", "{jwt.user.id}"), Line: one("a", ""), Bearer: new(attempt.Bearer)}, "different types"},
		"unknown identity":      {attempt.Spec{Buyer: buyer, Line: one("a", ""), Identities: map[string]attempt.Values{"fax": buyer}}, "phone, email, address, device"},
		"buyer as identity":     {attempt.Spec{Buyer: buyer, Line: one("a", ""), Identities: map[string]attempt.Values{"buyer": buyer}}, "phone, email, address, device"},
		"constant sku":          {attempt.Spec{Buyer: buyer, Line: one("a b", "")}, "printable ASCII"},
		"empty sku":             {attempt.Spec{Buyer: buyer, Line: one("", "")}, "missing"},
		"constant quantity":     {attempt.Spec{Buyer: buyer, Line: one("a", "0")}, "whole number"},
		"constant too many":     {attempt.Spec{Buyer: buyer, Line: one("a", "10001")}, "above 10000"},
		"constant sale":         {attempt.Spec{Buyer: buyer, Line: one("a", ""), Sale: values(t, "Double11")}, "sale's id"},
		"constant region":       {attempt.Spec{Buyer: buyer, Line: one("a", ""), Region: values(t, "bei jing")}, "printable ASCII"},
		"leaf and object":       {attempt.Spec{Buyer: buyer, Line: one("{json.a}", "{json.a.b}")}, "different types"},
		"object and leaf":       {attempt.Spec{Buyer: buyer, Line: one("{json.a.b}", "{json.a}")}, "inside of it"},
		"object and array":      {attempt.Spec{Buyer: buyer, Line: one("{json.a.b}", "{json.a.0}")}, "different types"},
		"json in two cases":     {attempt.Spec{Buyer: buyer, Line: one("{json.sku}", "{json.SKU}")}, "only in case"},
		"query in two cases":    {attempt.Spec{Buyer: buyer, Line: one("{query.sku}", "{query.SKU}")}, "one name to some"},
		"PHP's one name":        {attempt.Spec{Buyer: buyer, Line: one("{form.a.b}", "{form.a_b}")}, "one name to some"},
		"json and query":        {attempt.Spec{Buyer: buyer, Line: one("{json.sku}", "{query.Sku}")}, "one name to some"},
		"cookies in two ways":   {attempt.Spec{Buyer: values(t, "{cookie.a}", "{cookie.A}"), Line: one("a", "")}, "one name to some"},
	} {
		_, err := attempt.NewReader(tc.spec)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}

func TestSpecsThatShareSources(t *testing.T) {
	// The same source for several values is read once and serves all of them.
	rd := mustReader(t, attempt.Spec{
		Buyer:      values(t, "{json.user.id}", "{header.X-User-Id}"),
		Region:     values(t, "{json.user.region}"),
		Identities: map[string]attempt.Values{"device": values(t, "{json.user.id}")},
		Line: []attempt.LineSpec{
			{SKU: values(t, "{json.items.0.sku}")},
			{SKU: values(t, "{json.items.1.sku}")},
		},
	})
	r := request("POST", "/", jsonType, `{"user":{"id":7,"region":"beijing"},"items":[{"sku":"a"},{"sku":"b"}]}`)
	a, refusal := whole(t, rd, r, attempt.Env{})
	if refusal != nil {
		t.Fatal(describe(refusal))
	}
	if a.Buyer != "7" || a.Identities["device"] != "7" || a.Region != "beijing" || len(a.Lines) != 2 || a.Lines[1].Cell() != "b@beijing" {
		t.Errorf("read %+v", a)
	}
	if got := rd.Needs(); got != attempt.NeedJSON|attempt.NeedHeader {
		t.Errorf("needs %b", got)
	}
}

func TestTooManyNames(t *testing.T) {
	spec := attempt.Spec{Buyer: values(t, "{header.X-User-Id}")}
	for i := range 32 {
		spec.Line = append(spec.Line, attempt.LineSpec{
			SKU:      values(t, fmt.Sprintf("{query.sku%d}", i)),
			Quantity: values(t, fmt.Sprintf("{json.n%d}", i)),
		})
	}
	if _, err := attempt.NewReader(spec); err == nil || !strings.Contains(err.Error(), "63 names") {
		t.Errorf("64 names: got %v", err)
	}
	spec.Line[31].Quantity = nil
	rd := mustReader(t, spec)
	a, refusal := whole(t, rd, request("POST", "/?sku0=a&sku31=b", jsonType, `{"n0":2}`), attempt.Env{})
	if refusal != nil || show(a.Lines) != "a×2 b×1" {
		t.Errorf("63 names: read %s, %q", show(a.Lines), describe(refusal))
	}
	for i := range 50 {
		spec.Line = append(spec.Line, attempt.LineSpec{SKU: values(t, fmt.Sprint(i))})
	}
	if _, err := attempt.NewReader(spec); err == nil || !strings.Contains(err.Error(), "at most 50") {
		t.Errorf("82 lines: got %v", err)
	}
}

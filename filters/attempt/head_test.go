package attempt_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/filters/attempt"
)

func TestHeaderSources(t *testing.T) {
	rd := lineReader(t, "{header.X-Item}", "")
	for name, tc := range map[string]struct {
		header http.Header
		want   string
	}{
		"once":          {http.Header{"X-User-Id": {"u"}, "X-Item": {"a"}}, ""},
		"item twice":    {http.Header{"X-User-Id": {"u"}, "X-Item": {"a", "a"}}, "malformed header.X-Item: the header appears twice"},
		"buyer twice":   {http.Header{"X-User-Id": {"u", "v"}, "X-Item": {"a"}}, "malformed header.X-User-Id: the header appears twice"},
		"item missing":  {http.Header{"X-User-Id": {"u"}}, "malformed header.X-Item: it is missing"},
		"buyer missing": {http.Header{"X-Item": {"a"}}, "no_buyer"},
		"buyer empty":   {http.Header{"X-User-Id": {""}, "X-Item": {"a"}}, "no_buyer"},
		"others twice":  {http.Header{"X-User-Id": {"u"}, "X-Item": {"a"}, "Accept": {"a", "b"}}, ""},
	} {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header = tc.header
		_, refusal := whole(t, rd, r, attempt.Env{})
		if got := describe(refusal); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestCookieSources(t *testing.T) {
	const spelled = "malformed cookie.sid: the name appears in another spelling"
	const encoding = "malformed cookie.sid: the percent-encoding has another spelling"
	const hidden = "malformed cookie.sid: a cookie before or after it"
	rd := mustReader(t, attempt.Spec{
		Buyer: values(t, "{cookie.sid}"),
		Line:  []attempt.LineSpec{{SKU: values(t, "a")}},
	})
	for name, tc := range map[string]struct {
		cookies []string
		want    string // "=buyer" or how the refusal begins
	}{
		"plain":                {[]string{"sid=abc"}, "=abc"},
		"among others":         {[]string{"a=1; sid=abc; b=2"}, "=abc"},
		"several headers":      {[]string{"a=1", "sid=abc"}, "malformed Cookie: the header appears twice"},
		"an empty header too":  {[]string{"sid=abc", ""}, "malformed Cookie: the header appears twice"},
		"space behind it":      {[]string{"sid=abc ; a=1"}, "malformed cookie.sid: the value holds a quote"},
		"space before it":      {[]string{"sid=\tabc"}, "malformed cookie.sid: the value holds a quote"},
		"space in the name":    {[]string{"sid =abc"}, spelled},
		"not ASCII":            {[]string{"sid=é"}, "malformed cookie.sid: the value holds a byte beyond ASCII"},
		"JSON for Express":     {[]string{"sid=j:%22b%22"}, "malformed cookie.sid: j: begins JSON"},
		"1,000":                {[]string{strings.Repeat("a=1;", 999) + "sid=abc"}, "=abc"},
		"more than 1,000":      {[]string{strings.Repeat("a=1;", 1000) + "sid=abc"}, "malformed Cookie: it has more than 1000 cookies"},
		"empty ones count":     {[]string{strings.Repeat(";", 1000) + "sid=abc"}, "malformed Cookie: it has more than 1000 cookies"},
		"no space":             {[]string{"a=1;sid=abc;b=2;"}, "=abc"},
		"with = inside":        {[]string{"sid=YWJj=="}, "=YWJj=="},
		"encoded":              {[]string{"sid=s%3Aab%2fc"}, "=s:ab/c"},
		"plus":                 {[]string{"sid=a+b"}, "=a+b"},
		"encoded plus":         {[]string{"sid=a%2Bb"}, "=a+b"},
		"encoded but the plus": {[]string{"sid=a%C2%A0+"}, encoding},
		"encoded percent":      {[]string{"sid=100%25"}, "=100%"},
		"encoded space":        {[]string{"sid=a%20b"}, encoding},
		"encoded letter":       {[]string{"sid=%73:ab/c"}, encoding},
		"encoded twice":        {[]string{"sid=%2541"}, encoding},
		"comma":                {[]string{"sid=a,b"}, "malformed cookie.sid: the value holds a quote"},
		"behind a comma":       {[]string{"sid=a; x=1,sid=b"}, hidden},
		"in a quoted string":   {[]string{`x="; sid=b; y="`}, hidden},
		"commas elsewhere":     {[]string{`x={"a":1,"b":2}; sid=a`}, "=a"},
		"none":                 {nil, "no_buyer"},
		"empty":                {[]string{"sid="}, "no_buyer"},
		"twice":                {[]string{"sid=a; sid=b"}, "malformed cookie.sid: the cookie appears twice"},
		"twice, two headers":   {[]string{"sid=a", "sid=a"}, "malformed Cookie: the header appears twice"},
		"twice, once bare":     {[]string{"sid=a; sid"}, "malformed cookie.sid: the cookie appears twice"},
		"case":                 {[]string{"sid=a; SID=b"}, spelled},
		"case alone":           {[]string{"Sid=b"}, spelled},
		"encoded name":         {[]string{"sid=a; %73id=b"}, spelled},
		"array":                {[]string{"sid=a; sid[]=b"}, spelled},
		"quotes":               {[]string{`sid="abc"`}, "malformed cookie.sid: the value holds a quote"},
		"backslash":            {[]string{`sid=a\062c`}, "malformed cookie.sid: the value holds a quote"},
		"broken escape":        {[]string{"sid=%zz"}, "malformed cookie.sid: the percent-encoding"},
		"encoded control":      {[]string{"sid=a%00"}, "malformed cookie.sid: it is not UTF-8"},
		"strange, not source":  {[]string{`x=%zz\; sid=abc`}, "=abc"},
	} {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header["Cookie"] = tc.cookies
		a, refusal := whole(t, rd, r, attempt.Env{})
		got := describe(refusal)
		if refusal == nil {
			got = "=" + a.Buyer
		}
		if !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestPathSources(t *testing.T) {
	rd := lineReader(t, "{path.1}", "{path.2}")
	for target, want := range map[string]string{
		"/items/a/2":       "a×2",
		"/items/a":         "a×1",
		"/items/a/":        "a×1",
		"/items/a/2/more":  "a×2",
		"/items/%61/%32":   "a×2",
		"/items/a%2Db":     "a-b×1",
		"/items":           "malformed path.1: it is missing",
		"/items/":          "malformed path.1: it is missing",
		"/":                "malformed path.1: it is missing",
		"/items//a":        "malformed the path: it has an empty segment",
		"//items/a":        "malformed the path: it has an empty segment",
		"/items/a//":       "malformed the path: it has an empty segment",
		"/items/a;x=1":     "malformed path.1: a semicolon",
		"/items;x=1/a":     "a×1",
		"/x/../items/a":    "malformed the path: it holds a dot segment",
		"/items/a%2Fb":     "malformed the path: it holds an encoded slash",
		"/items/a/..;/b":   "malformed the path: it holds a dot segment",
		"/items/a/02":      "malformed path.2: it is not a whole number",
		"/items/%E4%B8%AD": "malformed path.1: it is not printable ASCII",
	} {
		a, refusal := whole(t, rd, request("POST", target, "", ""), attempt.Env{})
		got := describe(refusal)
		if refusal == nil {
			got = show(a.Lines)
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q, want %q", target, got, want)
		}
	}
}

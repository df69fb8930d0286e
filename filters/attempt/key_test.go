package attempt_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/internal/sale"
)

// repeatReader reads a ref, and a key from a header or else the body.
func repeatReader(t testing.TB) *attempt.Reader {
	return mustReader(t, attempt.Spec{
		Buyer: values(t, "{header.X-User-Id}"), Line: []attempt.LineSpec{{SKU: values(t, "{json.sku}")}},
		Ref: values(t, "{json.order_no}"), Key: values(t, "{header.Idempotency-Key}", "{json.key}"),
	})
}

// readRepeat reads one request with these values of Idempotency-Key.
func readRepeat(t testing.TB, body string, keys ...string) (sale.Attempt, *sale.Refusal) {
	t.Helper()
	r := request("POST", "/api/order", jsonType, body)
	r.Header["Idempotency-Key"] = keys
	return whole(t, repeatReader(t), r, attempt.Env{})
}

func TestKey(t *testing.T) {
	const (
		quotes  = "malformed header.Idempotency-Key: a quote, comma, semicolon or backslash in it needs quotes"
		follows = "malformed header.Idempotency-Key: something follows"
		ascii   = "malformed header.Idempotency-Key: it is not printable ASCII"
		space   = "malformed header.Idempotency-Key: there is space around it"
	)
	long := strings.Repeat("k", 255)
	for name, c := range map[string]struct{ header, key, want string }{
		"bare":                    {header: "8e03978e-40d5-43dd-bc93-6894a57f9324", key: "8e03978e-40d5-43dd-bc93-6894a57f9324"},
		"quoted":                  {header: `"8e03978e-40d5-43dd-bc93-6894a57f9324"`, key: "8e03978e-40d5-43dd-bc93-6894a57f9324"},
		"space inside":            {header: "a b", key: "a b"},
		"escapes":                 {header: `"a\"b\\c"`, key: `a"b\c`},
		"comma in quotes":         {header: `"a, b; c"`, key: "a, b; c"},
		"longest":                 {header: long, key: long},
		"longest, quoted":         {header: `"` + long + `"`, key: long},
		"signs":                   {header: "user:42/cart=7~!", key: "user:42/cart=7~!"},
		"none":                    {},
		"too long":                {header: long + "k", want: "malformed header.Idempotency-Key: it is longer than 255"},
		"too long, quoted":        {header: `"` + long + `k"`, want: "malformed header.Idempotency-Key: it is longer than 255"},
		"empty in quotes":         {header: `""`, want: "malformed header.Idempotency-Key: it is empty"},
		"one quote":               {header: `"`, want: "malformed header.Idempotency-Key: a quote opens it"},
		"not closed":              {header: `"a`, want: "malformed header.Idempotency-Key: a quote opens it"},
		"closed by an escape":     {header: `"a\"`, want: "malformed header.Idempotency-Key: a quote opens it"},
		"ends in a backslash":     {header: `"a\`, want: "malformed header.Idempotency-Key: a backslash"},
		"unknown escape":          {header: `"a\n"`, want: "malformed header.Idempotency-Key: a backslash"},
		"parameters":              {header: `"a";b=1`, want: follows},
		"two quoted":              {header: `"a", "b"`, want: follows},
		"two bare, joined":        {header: "a, b", want: quotes},
		"bare parameters":         {header: "a;b", want: quotes},
		"quote inside":            {header: `a"b`, want: quotes},
		"backslash":               {header: `a\b`, want: quotes},
		"tab":                     {header: "a\tb", want: ascii},
		"not ASCII":               {header: "caf\u00e9", want: ascii},
		"not ASCII in quotes":     {header: "\"caf\u00e9\"", want: ascii},
		"DEL":                     {header: "a\x7f", want: ascii},
		"space around, in quotes": {header: `" a"`, want: space},
		"space around":            {header: "a ", want: space},
	} {
		a, refusal := readRepeat(t, `{"sku":"a"}`, c.header)
		if got := describe(refusal); c.want == "" && got != "" || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		} else if a.Key != c.key || (a.Print != "") != (c.key != "") {
			t.Errorf("%s: key %q print %q, want %q", name, a.Key, a.Print, c.key)
		}
	}
	if _, refusal := readRepeat(t, `{"sku":"a"}`, "k", "k"); !strings.HasPrefix(describe(refusal), "malformed header.Idempotency-Key: the header appears twice") {
		t.Errorf("two headers: %s", describe(refusal))
	}
	if a, refusal := readRepeat(t, `{"sku":"a","key":17}`); refusal != nil || a.Key != "17" {
		t.Errorf("from the body: %q %s", a.Key, describe(refusal))
	}
	// a malformed alternative that does not count is as good as none
	if a, refusal := readRepeat(t, `{"sku":"a","key":"\""}`, "k"); refusal != nil || a.Key != "k" {
		t.Errorf("the first counts: %q %s", a.Key, describe(refusal))
	}
}

func TestRef(t *testing.T) {
	long := strings.Repeat("9", 128)
	for body, want := range map[string]string{
		`"SO-1"`: "SO-1", `1001`: "1001", `"` + long + `"`: long, `null`: "", `""`: "",
		`"a b"`:           "malformed json.order_no: it is not printable ASCII without space",
		`"caf\u00e9"`:     "malformed json.order_no: it is not printable ASCII without space",
		`"` + long + `9"`: "malformed json.order_no: it is longer than 128",
		`1.0`:             "malformed json.order_no",
		`1e3`:             "malformed json.order_no",
		`["a"]`:           "malformed json.order_no",
		`true`:            "malformed json.order_no",
		`1,"Order_No":1`:  "malformed json.order_no",
		`1,"order_no":1`:  "malformed json.order_no",
	} {
		a, refusal := readRepeat(t, `{"sku":"a","order_no":`+body+`}`)
		if got := describe(refusal) + a.Ref; !strings.HasPrefix(got, want) || refusal == nil && got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
	if a, refusal := readRepeat(t, `{"sku":"a"}`); refusal != nil || a.Ref != "" {
		t.Errorf("none: %q %s", a.Ref, describe(refusal))
	}
}

// The print is the same for the same request, and no other has it.
func TestPrint(t *testing.T) {
	rd := mustReader(t, attempt.Spec{
		Buyer: values(t, "{header.X-User-Id}"), Line: []attempt.LineSpec{{SKU: values(t, "{header.X-Sku}")}}, Key: values(t, "{header.Idempotency-Key}"),
	})
	print := func(method, target, mediaType, body string, change func(*http.Request)) string {
		t.Helper()
		r := request(method, target, mediaType, body)
		r.Header.Set("X-Sku", "a")
		r.Header.Set("Idempotency-Key", "k")
		if change != nil {
			change(r)
		}
		a, refusal := whole(t, rd, r, attempt.Env{})
		if refusal != nil {
			t.Fatal(describe(refusal))
		}
		return a.Print
	}
	base := print("POST", "/a?b=c", "text/plain", "body", nil)
	if len(base) != 43 {
		t.Errorf("print %q", base)
	}
	for name, same := range map[string]string{
		"again":               print("POST", "/a?b=c", "text/plain", "body", nil),
		"a parameter":         print("POST", "/a?b=c", "Text/Plain ; charset=utf-8", "body", nil),
		"another header":      print("POST", "/a?b=c", "text/plain", "body", func(r *http.Request) { r.Header.Set("User-Agent", "x") }),
		"the key in quotes":   print("POST", "/a?b=c", "text/plain", "body", func(r *http.Request) { r.Header.Set("Idempotency-Key", `"k"`) }),
		"another host":        print("POST", "/a?b=c", "text/plain", "body", func(r *http.Request) { r.Host = "other" }),
		"without its length":  print("POST", "/a?b=c", "text/plain", "body", func(r *http.Request) { r.ContentLength = -1 }),
		"by another protocol": print("POST", "/a?b=c", "text/plain", "body", func(r *http.Request) { r.ProtoMajor = 2 }),
	} {
		if same != base {
			t.Errorf("%s: another print", name)
		}
	}
	form := multipartForm("a", "b", "c", "d")
	browser := print("POST", "/a?b=c", "multipart/form-data; boundary=b", form, nil)
	if again := print("POST", "/a?b=c", "multipart/form-data; boundary=WebKit1", strings.ReplaceAll(form, "--b", "--WebKit1"), nil); again != browser {
		t.Error("a form with another boundary: another print")
	}
	if other := print("POST", "/a?b=c", "multipart/form-data; boundary=b", strings.Replace(form, "d\r\n", "e\r\n", 1), nil); other == browser {
		t.Error("another form: the same print")
	}
	prints := map[string]string{base: "the first"}
	for name, other := range map[string]string{
		"method":                print("PUT", "/a?b=c", "text/plain", "body", nil),
		"path":                  print("POST", "/b?b=c", "text/plain", "body", nil),
		"path in other letters": print("POST", "/%61?b=c", "text/plain", "body", nil),
		"query":                 print("POST", "/a?b=d", "text/plain", "body", nil),
		"no query":              print("POST", "/a", "text/plain", "body", nil),
		"query in the path":     print("POST", "/ab=c", "text/plain", "body", nil),
		"media type":            print("POST", "/a?b=c", "text/html", "body", nil),
		"body":                  print("POST", "/a?b=c", "text/plain", "Body", nil),
		"media type and body":   print("POST", "/a?b=c", "text/plainb", "ody", nil),
		"no body":               print("POST", "/a?b=c", "text/plain", "", nil),
	} {
		if which, taken := prints[other]; taken {
			t.Errorf("%s: the print of %s", name, which)
		}
		prints[other] = name
	}
}

// What is the same in all attempts tells none apart.
func TestRepeatNeedsPlaceholders(t *testing.T) {
	for _, c := range []struct{ ref, key []string }{
		{ref: []string{"cart"}}, {key: []string{"{header.Idempotency-Key}", "none"}}, {ref: []string{"cart-{http.auth.user.id}"}},
		{key: []string{"{http.auth.user.id}-{http.request.uuid}"}},
	} {
		_, err := attempt.NewReader(attempt.Spec{
			Buyer: values(t, "{header.X-User-Id}"), Line: []attempt.LineSpec{{SKU: values(t, "{json.sku}")}},
			Ref: values(t, c.ref...), Key: values(t, c.key...),
		})
		if err == nil || !strings.Contains(err.Error(), "the same in all attempts") {
			t.Errorf("%v: %v", c, err)
		}
	}
	if _, err := attempt.NewReader(attempt.Spec{
		Buyer: values(t, "{header.X-User-Id}"), Line: []attempt.LineSpec{{SKU: values(t, "{json.sku}")}}, Ref: values(t, "{http.vars.cart}"),
	}); err != nil {
		t.Error(err)
	}
}

// FuzzKey reads arbitrary keys: what passes is 1 to 255 printable characters, and
// its quoted form is the same key.
func FuzzKey(f *testing.F) {
	for _, s := range []string{"k", `"k"`, `"a\"b\\"`, `"`, `"\`, "a,b", ` "k" `, "\x00", strings.Repeat("k", 256)} {
		f.Add(s)
	}
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	f.Fuzz(func(t *testing.T, header string) {
		a, refusal := readRepeat(t, `{"sku":"a"}`, header)
		if refusal != nil || header == "" {
			return
		}
		if a.Key == "" || len(a.Key) > 255 || strings.ContainsFunc(a.Key, func(c rune) bool { return c < ' ' || c > '~' }) {
			t.Fatalf("%q gave the key %q", header, a.Key)
		}
		if again, refusal := readRepeat(t, `{"sku":"a"}`, `"`+quote.Replace(a.Key)+`"`); refusal != nil || again.Key != a.Key {
			t.Errorf("%q in quotes: %q %s", a.Key, again.Key, describe(refusal))
		}
	})
}

package attempt_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/internal/sale"
)

// claimReader takes the buyer and their phone from a token's claims.
func claimReader(t testing.TB, cookie string) *attempt.Reader {
	t.Helper()
	return mustReader(t, attempt.Spec{
		Buyer:      values(t, "{jwt.sub}", "{cookie.guest}"),
		Identities: map[string]attempt.Values{"phone": values(t, "{jwt.contact.phones.0}"), "device": values(t, `{jwt.https://example\.com/device}`)},
		Line:       []attempt.LineSpec{{SKU: values(t, "{json.sku}")}},
		Bearer:     &attempt.Bearer{Cookie: cookie},
	})
}

// order is a request for one unit, with these values of a header.
func order(header string, values ...string) *http.Request {
	r := request("POST", "/", jsonType, `{"sku":"a"}`)
	if len(values) > 0 {
		r.Header[header] = values
	}
	return r
}

// verify is an Env whose claims are given, and that notes the token.
func verify(claims string, refusal *sale.Refusal, seen *[]string) attempt.Env {
	return attempt.Env{Claims: func(token string) ([]byte, *sale.Refusal) {
		*seen = append(*seen, token)
		return []byte(claims), refusal
	}}
}

func TestBearerTokenIsFound(t *testing.T) {
	const claims = `{"sub":"u42"}`
	for name, tc := range map[string]struct {
		cookie string
		r      *http.Request
		token  string // that is verified; empty: none is
		want   string // refusal
	}{
		"header":                 {"", order("Authorization", "Bearer a.b.c"), "a.b.c", ""},
		"scheme in another case": {"", order("Authorization", "bEARER a.b.c"), "a.b.c", ""},
		"more spaces":            {"", order("Authorization", "Bearer   a.b.c "), "a.b.c", ""},
		"none":                   {"", order("X"), "", "no_buyer"},
		"empty":                  {"", order("Authorization", ""), "", "no_buyer"},
		"no token":               {"", order("Authorization", "Bearer"), "", "no_buyer"},
		"no token but a space":   {"", order("Authorization", "Bearer "), "", "no_buyer"},
		"another scheme":         {"", order("Authorization", "Basic YTpi"), "", "no_buyer"},
		"a longer scheme":        {"", order("Authorization", "BearerX a.b.c"), "", "no_buyer"},
		"a tab":                  {"", order("Authorization", "Bearer\ta.b.c"), "", "malformed header.Authorization: one space"},
		"two headers":            {"", order("Authorization", "Bearer a.b.c", "Bearer d.e.f"), "", "malformed header.Authorization: the header appears twice"},
		"two headers, one empty": {"", order("Authorization", "", "Bearer d.e.f"), "", "malformed header.Authorization: the header appears twice"},
		"two tokens":             {"", order("Authorization", "Bearer a.b.c, Bearer d.e.f"), "", "malformed header.Authorization: it holds more than one token"},
		"two tokens, no comma":   {"", order("Authorization", "Bearer a.b.c d.e.f"), "", "malformed header.Authorization: it holds more than one token"},
		"cookie, not asked for":  {"", order("Cookie", "session=a.b.c"), "", "no_buyer"},
		"cookie":                 {"session", order("Cookie", "x=1; session=a.b.c"), "a.b.c", ""},
		"cookie, header beside":  {"session", cookieAndHeader(), "a.b.c", ""},
		"header, not asked for":  {"session", order("Authorization", "Bearer a.b.c"), "", "no_buyer"},
		"two cookies":            {"session", order("Cookie", "session=a.b.c; session=d.e.f"), "", "malformed cookie.session: the cookie appears twice"},
		"cookie in another case": {"session", order("Cookie", "Session=a.b.c"), "", "malformed cookie.session: the name appears in another spelling"},
		"quoted cookie":          {"session", order("Cookie", `session="a.b.c"`), "", "malformed cookie.session: the value holds a quote"},
	} {
		var seen []string
		a, refusal := whole(t, claimReader(t, tc.cookie), tc.r, verify(claims, nil, &seen))
		got := describe(refusal)
		if tc.want == "" && got != "" || !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
		if tc.token == "" && len(seen) > 0 || tc.token != "" && (len(seen) != 1 || seen[0] != tc.token || a.Buyer != "u42") {
			t.Errorf("%s: verified %q, the buyer is %q", name, seen, a.Buyer)
		}
	}
}

func cookieAndHeader() *http.Request {
	r := order("Authorization", "Bearer d.e.f")
	r.Header["Cookie"] = []string{"session=a.b.c"}
	return r
}

func TestClaims(t *testing.T) {
	for name, tc := range map[string]struct {
		claims string
		buyer  string
		want   string
	}{
		"text":              {`{"sub":"u42"}`, "u42", ""},
		"whole number":      {`{"sub":42}`, "42", ""},
		"escaped":           {`{"\u0073ub":"\u0075\u0034\u0032"}`, "u42", ""},
		"none, next value":  {`{}`, "guest-1", ""},
		"null, next value":  {`{"sub":null}`, "guest-1", ""},
		"empty, next value": {`{"sub":""}`, "guest-1", ""},
		"fraction":          {`{"sub":4.2}`, "", "malformed jwt.sub: it is neither"},
		"negative":          {`{"sub":-42}`, "", "malformed jwt.sub: it is neither"},
		"too large":         {`{"sub":9007199254740992}`, "", "malformed jwt.sub: the number is above"},
		"truth value":       {`{"sub":true}`, "", "malformed jwt.sub: it is neither"},
		"object":            {`{"sub":{"id":1}}`, "", "malformed jwt.sub: it is neither"},
		"array":             {`{"sub":["u42"]}`, "", "malformed jwt.sub: it is neither"},
		"twice":             {`{"sub":"u42","sub":"u43"}`, "", "malformed jwt.sub: the name appears twice"},
		"twice in case":     {`{"sub":"u42","Sub":"u43"}`, "", "malformed jwt.sub: the name appears in another spelling"},
		"long":              {`{"sub":"` + strings.Repeat("u", 129) + `"}`, "", "malformed jwt.sub: it is longer than 128"},
		"control character": {`{"sub":"u\n42"}`, "", "malformed jwt.sub: it is not UTF-8 or holds a control"},
		"space around":      {`{"sub":" u42"}`, "", "malformed jwt.sub: there is space"},
		"not JSON":          {`{"sub":`, "", "malformed the claims of the bearer token: the JSON document ends early"},
		"no object":         {`[]`, "", "malformed the claims of the bearer token: it is not a JSON object"},
	} {
		var seen []string
		r := order("Authorization", "Bearer a.b.c")
		r.Header.Set("Cookie", "guest=guest-1")
		a, refusal := whole(t, claimReader(t, ""), r, verify(tc.claims, nil, &seen))
		got := describe(refusal)
		if a.Buyer != tc.buyer || tc.want == "" && got != "" || !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: %q %q, want %q %q", name, a.Buyer, got, tc.buyer, tc.want)
		}
	}
}

func TestNestedClaims(t *testing.T) {
	var seen []string
	env := verify(`{"sub":"u42","contact":{"phones":["138 0000"]},"https://example.com/device":7,"json":{"sku":"b"},"_method":"x"}`, nil, &seen)
	a, refusal := whole(t, claimReader(t, ""), order("Authorization", "Bearer a.b.c"), env)
	if refusal != nil || a.Identities["phone"] != "1380000" || a.Identities["device"] != "7" || a.Lines[0].SKU != "a" {
		t.Errorf("%+v %q", a, describe(refusal))
	}
	// a buyer with two phones could choose which one counts
	env = verify(`{"sub":"u42","contact":{"phones":["138 0000","139"]}}`, nil, &seen)
	if _, refusal = whole(t, claimReader(t, ""), order("Authorization", "Bearer a.b.c"), env); describe(refusal) != "malformed jwt.contact.phones: it has more elements than are read here" {
		t.Errorf("two phones: %q", describe(refusal))
	}
}

// What refuses the token comes after what is malformed, and before all else.
func TestRefusedToken(t *testing.T) {
	expired := &sale.Refusal{Reason: sale.NoBuyer, Detail: "it has expired"}
	rd := claimReader(t, "")
	for name, tc := range map[string]struct {
		body    string
		refusal *sale.Refusal
		want    string
	}{
		"expired":              {`{"sku":"a"}`, expired, "no_buyer it has expired"},
		"expired, no sku":      {`{}`, expired, "malformed json.sku: it is missing"},
		"expired, broken body": {`{`, expired, "malformed the body: the JSON document ends early"},
		"unavailable":          {`{"sku":"a"}`, sale.Refuse(sale.Unavailable), "unavailable"},
	} {
		var seen []string
		r := request("POST", "/", jsonType, tc.body)
		r.Header.Set("Authorization", "Bearer a.b.c")
		r.Header.Set("Cookie", "guest=guest-1") // does not replace the claim
		a, refusal := whole(t, rd, r, verify("", tc.refusal, &seen))
		if got := describe(refusal); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
		if tc.refusal == refusal && (len(a.Lines) != 1 || a.Buyer != "guest-1") {
			t.Errorf("%s: what could be read is %+v", name, a)
		}
		if name == "expired, broken body" && len(seen) > 0 {
			t.Errorf("%s: verified all the same", name)
		}
	}
}

func TestAnonymousAttempts(t *testing.T) {
	lines := []attempt.LineSpec{{SKU: values(t, "{json.sku}")}}
	anonymous := mustReader(t, attempt.Spec{Anonymous: true, Line: lines})
	if a, refusal := whole(t, anonymous, order("X"), attempt.Env{}); refusal != nil || a.Buyer != "" || len(a.Lines) != 1 {
		t.Errorf("%+v %q", a, describe(refusal))
	}
	optional := mustReader(t, attempt.Spec{Anonymous: true, Buyer: values(t, "{header.X-Buyer}"), Line: lines})
	if _, refusal := whole(t, optional, order("X"), attempt.Env{}); describe(refusal) != "no_buyer" {
		t.Errorf("a configured buyer that is missing: %q", describe(refusal))
	}
}

func BenchmarkClaims(b *testing.B) {
	rd := claimReader(b, "")
	claims := []byte(`{"iss":"https://id.example.com","aud":"shop","sub":"u42","exp":1790000060,"contact":{"phones":["13800000000"]},"scope":"openid profile orders"}`)
	env := attempt.Env{Claims: func(string) ([]byte, *sale.Refusal) { return claims, nil }}
	r := order("Authorization", "Bearer "+strings.Repeat("a", 600))
	body := []byte(`{"sku":"a"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, refusal := rd.Read(r, body, env); refusal != nil {
			b.Fatal(refusal)
		}
	}
}

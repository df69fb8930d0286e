package operator_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// trySite has a gate of each kind.
func trySite(shop string) string {
	return sitetest.OrderMatcher + `@cart path /cart
	stockgate_guard
	stockgate_check @cart cart {
		line {query.sku}
	}
	stockgate @order main {
		buyer {http.auth.user.id} {header.X-User-Id}
		identity phone {json.phone}
		identity ip {client_ip}
		region {json.region}
		line {json.sku} {json.quantity}
		@sold {
			status 200
			json code 0 200
		}
		confirm @sold 201
		release 4xx
	}
	reverse_proxy ` + shop
}

// `try` prints what a gate reads from a saved request and how its filters decide, and neither
// reserves, counts nor sends anything.
func TestTry(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenCaddyfile(t, trySite(shop.Addr()))
	before := s.Admin("GET", "/metrics", "").Body
	attempts := func(metrics string) (lines []string) {
		for line := range strings.Lines(metrics) {
			if strings.HasPrefix(line, "stockgate_attempts_total") {
				lines = append(lines, line)
			}
		}
		return lines
	}
	const head = "POST /api/order HTTP/1.1\nHost: shop.example.com\nContent-Type: application/json\nX-User-Id: u42\n"
	for name, c := range map[string]struct {
		request string
		args    []string
		status  int
		says    []string // on stdout
		errors  string
	}{
		"passes": {sitetest.SavedOrder, []string{"--gate", "main"}, 0, []string{
			"GATE     main\n", "buyer    u42\n", "ip       127.0.0.1\n", "phone    1380000\n", "region   beijing\n", "sale     double11 (open)\n",
			"lines    2×two@beijing\n", "verdict  passes the filters: stock and limits decide when it reserves\n",
			"note     the matcher is not evaluated", "note     {http.auth.user.id} is empty here",
		}, ""},
		"of another user, from another place": {sitetest.SavedOrder, []string{"--gate=main", "--set", "http.auth.user.id=u7", "--from=203.0.113.9"}, 0,
			[]string{"buyer    u7\n", "ip       203.0.113.9\n"}, ""},
		"wire format":                        {strings.ReplaceAll(head+"Content-Length: 13\n\n"+`{"sku":"few"}`, "\n", "\r\n"), []string{"--gate", "main"}, 0, []string{"lines    1×few\n"}, ""},
		"a length, and an editor's line end": {head + "Content-Length: 13\n\n" + `{"sku":"few"}` + "\n", []string{"--gate", "main"}, 0, []string{"1×few"}, ""},
		"chunked":                            {head + "Transfer-Encoding: chunked\n\nd\r\n" + `{"sku":"few"}` + "\r\n0\r\n\r\n", []string{"--gate", "main"}, 0, []string{"1×few"}, ""},
		"another gate":                       {"GET /cart?sku=plain HTTP/1.1\nHost: a\n\n", []string{"--gate", "cart"}, 0, []string{"GATE     cart\n", "buyer    -\n", "passes: this gate only checks\n"}, ""},
		"OPTIONS":                            {"OPTIONS /api/order HTTP/1.1\nHost: a\n\n", []string{"--gate", "main"}, 0, []string{"OPTIONS is never an attempt"}, ""},
		"OPTIONS with a body":                {"OPTIONS /api/order HTTP/1.1\nHost: a\nContent-Length: 1\n\n1", []string{"--gate", "main"}, 1, []string{"400 malformed", "OPTIONS has none"}, "malformed"},

		"unknown item":    {head + "\n" + `{"sku":"nothing"}`, []string{"--gate", "main"}, 1, []string{"404 unknown_item: This item is not on sale. (nothing)", "lines    1×nothing\n"}, "it would be refused: unknown_item"},
		"no buyer":        {strings.Replace(sitetest.SavedOrder, "X-User-Id: u42\n", "", 1), []string{"--gate", "main"}, 1, []string{"401 no_buyer", "2×two@beijing", "{http.auth.user.id} is empty here"}, "no_buyer"},
		"two buyers":      {strings.Replace(sitetest.SavedOrder, "X-User-Id: u42\n", "X-User-Id: u42\nX-User-Id: u43\n", 1), []string{"--gate", "main"}, 1, []string{"400 malformed", "header.X-User-Id: the header appears twice"}, "malformed"},
		"dropped header":  {strings.Replace(sitetest.SavedOrder, "X-User-Id", "X_User_Id", 1), []string{"--gate", "main"}, 1, []string{"401 no_buyer"}, "no_buyer"},
		"trailers":        {head + "Transfer-Encoding: chunked\n\nd\r\n" + `{"sku":"few"}` + "\r\n0\r\nX: y\r\n\r\n", []string{"--gate", "main"}, 1, []string{"400 malformed", "Trailer"}, "malformed"},
		"too large":       {head + "\n" + `{"sku":"few","note":"` + strings.Repeat("x", 64<<10) + `"}`, []string{"--gate", "main"}, 1, []string{"413 body_too_large"}, "body_too_large"},
		"no gate named":   {sitetest.SavedOrder, nil, 2, nil, "there are 2 gates: name one; there are "},
		"no such gate":    {sitetest.SavedOrder, []string{"--gate", "nosuch"}, 2, nil, `no gate is named "nosuch"; there are `},
		"no request":      {"", []string{"--gate", "main"}, 2, nil, "no request on standard input"},
		"no HTTP":         {"hello\n", []string{"--gate", "main"}, 2, nil, "it is not an HTTP/1.1 request"},
		"HTTP/2":          {strings.Replace(sitetest.SavedOrder, "HTTP/1.1", "HTTP/2", 1), []string{"--gate", "main"}, 2, nil, "it is not an HTTP/1.1 request"},
		"wrong length":    {head + "Content-Length: 11\n\n" + `{"sku":"few"}` + "\n", []string{"--gate", "main"}, 2, nil, `its body has 14 bytes, and its Content-Length says "11"`},
		"no such answer":  {sitetest.SavedOrder, []string{"--gate", "main", "--answer", s.Path("missing")}, 2, nil, "no such file"},
		"broken answer":   {sitetest.SavedOrder, []string{"--gate", "main", "--answer", s.File("broken", "HTTP/1.1 ok\n\n")}, 2, nil, "the answer is not an HTTP/1.1 response"},
		"answer to check": {"GET /cart?sku=plain HTTP/1.1\nHost: a\n\n", []string{"--gate", "cart", "--answer", s.File("ok", "HTTP/1.1 200 OK\n\n")}, 2, nil, "this gate only checks"},
		"no address":      {sitetest.SavedOrder, []string{"--gate", "main", "--from", "shop.example.com"}, 2, nil, "no IP address"},
		"no value":        {sitetest.SavedOrder, []string{"--gate", "main", "--set", "u42"}, 2, nil, "write placeholder=value"},
		"an argument":     {sitetest.SavedOrder, []string{"order.http"}, 2, nil, "it takes no arguments"},
	} {
		r := s.TryAt(c.request, c.args...)
		if r.Status != c.status || (r.Status == 2) != (r.Out == "") {
			t.Errorf("%s: %d, not %d\n%s%s", name, r.Status, c.status, r.Out, r.Errors)
		}
		for _, text := range c.says {
			if !strings.Contains(r.Out, text) {
				t.Errorf("%s: %q is not in\n%s", name, text, r.Out)
			}
		}
		if !strings.Contains(r.Errors, c.errors) || (c.errors == "") != (r.Errors == "") || strings.Count(r.Errors, "\n") > 1 {
			t.Errorf("%s: %q does not say %q in one line", name, r.Errors, c.errors)
		}
	}
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/pause", "")
	if r := s.TryAt(sitetest.SavedOrder, "--gate", "main"); r.Status != 1 || !strings.Contains(r.Out, "409 paused") || !strings.Contains(r.Out, "double11 (paused)") {
		t.Errorf("paused: %+v", r)
	}
	if got := shop.Take(); len(got) != 0 {
		t.Errorf("the shop got %v", got)
	}
	if got := s.StockOf("plain"); got != "100 100 0 0 0" {
		t.Errorf("stock %s", got)
	}
	if a, b := attempts(before), attempts(s.Admin("GET", "/metrics", "").Body); fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("attempts were counted: %v, then %v", a, b)
	}
}

// `try` prints which rule decides on an answer of the shop.
func TestTryAnswer(t *testing.T) {
	s := sitetest.OpenCaddyfile(t, trySite("127.0.0.1:9"))
	long := `{"note":"` + strings.Repeat("x", 64<<10) + `","code":0}`
	for answer, want := range map[string]string{
		"HTTP/1.1 200 OK\nContent-Type: application/json\n\n{\"code\":0}\n": "answer   200: confirm, by @sold of the rule: confirm @sold 201\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{\"code\":0}":         "answer   200: confirm, by @sold of the rule: confirm @sold 201\n",
		"HTTP/1.1 201 Created\n\n":                                          "answer   201: confirm, by 201 of the rule: confirm @sold 201\n",
		"HTTP/1.1 200 OK\n\n{\"code\":30001}":                               "answer   200: in_doubt, no rule matches\n",
		"HTTP/1.1 404 Not Found\n\n":                                        "answer   404: release, by 4xx of the rule: release 4xx\n",
		"HTTP/1.1 503 Service Unavailable\n\n":                              "answer   503: in_doubt, no rule matches\n",
		"HTTP/1.1 200 OK\n\n" + long:                                        "answer   200: in_doubt, by @sold of the rule: confirm @sold 201\n",
		"HTTP/1.1 200 OK\nContent-Encoding: gzip\n\n{\"code\":0}":           "answer   200: in_doubt, no rule matches\n",
	} {
		r := s.TryAt(sitetest.SavedOrder, "--gate", "main", "--answer", s.File("answer.http", answer))
		if r.Status != 0 || !strings.Contains(r.Out, want) {
			t.Errorf("%.60q: %d, %q is not in\n%s%s", answer, r.Status, want, r.Out, r.Errors)
		}
	}
	// the answer counts even where the attempt would not have come so far
	if r := s.TryAt("POST /api/order HTTP/1.1\nHost: a\n\n", "--gate", "main", "--answer", s.File("answer.http", "HTTP/1.1 201 Created\n\n")); r.Status != 1 || !strings.Contains(r.Out, "201: confirm") {
		t.Errorf("%+v", r)
	}
	for answer, want := range map[string]string{
		"HTTP/1.1 100 Continue\n\n":                                  "save the final one",
		"HTTP/1.1 200 OK\nContent-Length: 3\n\n{\"code\":0}":         "its body has 10 bytes",
		"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n1\r\nx\r\n0": "it is chunked",
	} {
		r := s.TryAt(sitetest.SavedOrder, "--gate", "main", "--answer", s.File("answer.http", answer))
		if r.Status != 2 || !strings.Contains(r.Errors, want) {
			t.Errorf("%q: %+v", answer, r)
		}
	}
}

// The defaults are rules too. Without a name `try` uses the only gate.
func TestTryTheOnlyGate(t *testing.T) {
	l := sitetest.NewLogin(t)
	s := sitetest.OpenCaddyfile(t, sitetest.OrderMatcher+"stockgate_guard\nstockgate @order {\njwt "+l.KeysURL()+"\nbuyer {jwt.sub}\nline {json.sku}\nrefuse no_buyer 200 `{}`\n}\n")
	try := func(token string, args ...string) sitetest.Ran {
		return s.TryAt("POST /api/order HTTP/1.1\nHost: a\nContent-Type: application/json\nAuthorization: Bearer "+token+"\n\n{\"sku\":\"plain\"}", args...)
	}
	r := try(l.TokenOf("u1", time.Hour), "--answer", s.File("answer.http", "HTTP/1.1 204 No Content\n\n"))
	if r.Status != 0 || !strings.Contains(r.Out, "GATE     -\nbuyer    u1\n") || !strings.Contains(r.Out, "204: confirm, by 2xx of the rule: confirm 2xx, by default") {
		t.Errorf("%+v", r)
	}
	expired := l.TokenOf("u1", -time.Minute)
	r = try(expired, "--json")
	var got struct {
		Passes  bool
		Refusal struct {
			Status         int
			Reason, Detail string
		}
		Lines []struct {
			SKU string
			Qty int
		}
	}
	if err := json.Unmarshal([]byte(r.Out), &got); err != nil || r.Status != 1 || got.Passes || got.Refusal.Status != 200 || got.Refusal.Reason != "no_buyer" ||
		got.Refusal.Detail != "the bearer token has expired" || len(got.Lines) != 1 || got.Lines[0].SKU != "plain" || strings.Contains(r.Out+r.Errors, expired) {
		t.Errorf("%v %+v", err, r)
	}
	l.Down.Store(true)
	if r := sitetest.Run(t, "", "try", "--address", "unix/"+s.Path("nothing.sock")); r.Status != 2 {
		t.Errorf("no request: %+v", r)
	}
	if r := sitetest.Run(t, sitetest.SavedOrder, "try", "--address", "unix/"+s.Path("nothing.sock")); r.Status != 3 {
		t.Errorf("no Caddy: %+v", r)
	}
}

// The API lists the gates of the running configuration.
func TestGatesFollowTheConfiguration(t *testing.T) {
	s := sitetest.OpenCaddyfile(t, trySite("127.0.0.1:9"))
	names := func() string { return s.Admin("GET", "/stockgate/gates", "").Body }
	both := `{"gates":[{"name":"cart","check":true},{"name":"main","check":false}]}` + "\n"
	sorted := strings.NewReplacer(`{"name":"main","check":false},{"name":"cart","check":true}`, `{"name":"cart","check":true},{"name":"main","check":false}`)
	if got := sorted.Replace(names()); got != both {
		t.Errorf("gates %s", got)
	}
	const gate = "stockgate @order twice {\nbuyer {header.X-User-Id}\nline {json.sku}\n}\n"
	if err := s.LoadCaddyfile(sitetest.OrderMatcher + "@other path /other\n" + gate + strings.Replace(gate, "@order", "@other", 1)); err != nil {
		t.Fatal(err)
	}
	if got, want := names(), `{"gates":[{"name":"twice","check":false},{"name":"twice","check":false}]}`+"\n"; got != want {
		t.Errorf("gates after a reload: %s", got)
	}
	if r := s.TryAt(sitetest.SavedOrder, "--gate", "twice"); r.Status != 2 || !strings.Contains(r.Errors, "2 gates are named twice") {
		t.Errorf("%+v", r)
	}
	if err := s.LoadCaddyfile("respond 204"); err != nil {
		t.Fatal(err)
	}
	if r := s.TryAt(sitetest.SavedOrder); r.Status != 2 || !strings.Contains(r.Errors, "the configuration has no gate") {
		t.Errorf("%+v", r)
	}
	if err := s.LoadGate(`{"handler":"stockgate","name":"a/b c","buyer":["b"],"lines":[{"sku":["a"]}]}`); err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]int{
		`{`: 400, `{"request":"x"}`: 400, `{"reqest":""}`: 400, ``: 400,
		`{"request":"` + base64.StdEncoding.EncodeToString(make([]byte, 6<<20)) + `"}`: 413,
	} {
		if a := s.Admin("POST", "/stockgate/gates/a%2Fb%20c/try", body); a.Status != want {
			t.Errorf("%.40s: %d %s", body, a.Status, a.Body)
		}
	}
	if a := s.Admin("GET", "/stockgate/gates/a/try", ""); a.Status != http.StatusMethodNotAllowed && a.Status != http.StatusNotFound {
		t.Errorf("GET: %d", a.Status)
	}
}

package gate_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// form is an order of u1 as a form.
func form(body string) *http.Request {
	r := sitetest.WithBody(sitetest.NewOrder("X-User-Id", "u1"), body)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

// bought sends an order that is sold, and returns the lines of its token.
func bought(s *sitetest.Site, shop *sitetest.Backend, r *http.Request) string {
	s.T.Helper()
	s.Send(r).Is(s.T, 201, "")
	got := shop.Take()
	if len(got) != 1 {
		s.T.Fatalf("the shop got %v", got)
	}
	raw, err := sitetest.B64.DecodeString(strings.Split(got[0].Header.Get("Stockgate-Token")+"..", ".")[1])
	var claims struct {
		Lines []struct {
			SKU string
			Qty int
		}
	}
	if err != nil || json.Unmarshal(raw, &claims) != nil {
		s.T.Fatalf("no token: %v", got)
	}
	lines, err := json.Marshal(claims.Lines)
	if err != nil {
		s.T.Fatal(err)
	}
	return strings.NewReplacer(`"SKU":`, "", `"Qty":`, "", `"`, "").Replace(string(lines))
}

// A form of tickets has a quantity for each kind. What is not ordered is not reserved, and an order
// of nothing does not reach the shop, not as one of unlisted items either.
func TestLinesThatAreLeftOut(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenCaddyfile(t, `stockgate_guard
	@form path /api/order
	stockgate @form tickets {
		buyer {header.X-User-Id}
		line plain {form.plain} absent 0
		line few   {form.few} absent 0
		other_items pass
	}
	@json path /json
	stockgate @json json {
		buyer {header.X-User-Id}
		lines {json.items} sku n
		other_items pass
	}
	stockgate_check /check {
		line plain {query.plain} absent 0
		line nothing {query.nothing} absent 0
	}
	reverse_proxy `+shop.Addr())
	for body, want := range map[string]string{
		"plain=2&few=0": "[{plain,2}]",
		"plain=2&few=":  "[{plain,2}]",
		"plain=2":       "[{plain,2}]",
		"plain=1&few=1": "[{plain,1},{few,1}]",
	} {
		if got := bought(s, shop, form(body)); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	at := func(path, body string) *http.Request {
		r := sitetest.WithBody(sitetest.NewOrder("X-User-Id", "u1"), body)
		r.URL.Path, r.URL.RawQuery, _ = strings.Cut(path, "?")
		return r
	}
	if got := bought(s, shop, at("/json", `{"items":[{"sku":"plain","n":0},{"sku":"few","n":1},{"sku":"plain","n":""},{"sku":"nothing","n":"0"}]}`)); got != "[{few,1}]" {
		t.Errorf("the lines are %s", got)
	}
	if got := s.StockOf("plain") + ", " + s.StockOf("few"); got != "100 93 0 0 7, 3 1 0 0 2" {
		t.Errorf("stock %s", got)
	}
	for _, none := range []*http.Request{
		form(""), form("plain=0"), form("few=&plain=0"), at("/json", `{"items":[{"sku":"plain","n":0}]}`), at("/json", `{"items":[{"sku":"nothing","n":""}]}`),
		at("/check?plain=0", ""), at("/check", ""),
	} {
		s.Send(none).Is(t, 400, "malformed")
	}
	s.Send(at("/check?plain=1", "")).Is(t, 201, "")
	s.Send(at("/check?plain=1&nothing=1", "")).Is(t, 404, "unknown_item")
	if got := shop.Take(); len(got) != 1 {
		t.Errorf("the shop got %v", got)
	}
	ran := s.TryAt("POST /api/order HTTP/1.1\nHost: x\nX-User-Id: u1\nContent-Type: application/x-www-form-urlencoded\n\nplain=2&few=0", "--gate", "tickets")
	if !strings.Contains(ran.Out, "lines    2×plain\n") {
		t.Errorf("try: %s%s", ran.Out, ran.Errors)
	}
}

// What reads one of many refuses the others, whatever they are in.
func TestOneOfMany(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenCaddyfile(t, `stockgate_guard
	stockgate /json* json {
		buyer {header.X-User-Id}
		line {json.items.0.sku} {json.items.0.n}
	}
	stockgate /counts* counts {
		buyer {header.X-User-Id}
		line plain {json.quantities.0.quantity}
	}
	stockgate_check /check* {
		line {json.items.0.sku}
	}
	stockgate /graphql* pay {
		graphql order
		outcome backend
		buyer {header.X-User-Id}
		line {graphql.lines.0.sku} {graphql.lines.0.n}
	}
	stockgate /answer answers {
		buyer {header.X-User-Id}
		line plain
		@sold {
			json orders.0.state paid
		}
		confirm @sold
	}
	reverse_proxy `+shop.Addr())
	at := func(path, body string) *http.Request {
		r := sitetest.WithBody(sitetest.NewOrder("X-User-Id", "u1"), body)
		r.URL.Path = path
		return r
	}
	const mutation = `{"query":"mutation($l: [L!] = [{sku: \"plain\"}, {sku: \"few\"}]) { order(lines: $l) { id } }"`
	for _, one := range []*http.Request{
		at("/json", `{"items":[{"sku":"plain","n":1}]}`), at("/counts", `{"quantities":[{"quantity":1}]}`), at("/check", `{"items":[{"sku":"plain"}]}`),
		at("/graphql", mutation+`,"variables":{"l":[{"sku":"plain","n":1}]}}`),
	} {
		s.Send(one).Is(t, 201, "")
	}
	if got := shop.Take(); len(got) != 4 {
		t.Errorf("the shop got %v", got)
	}
	for _, more := range []*http.Request{
		at("/json", `{"items":[{"sku":"plain","n":1},{"sku":"few","n":3}]}`), at("/counts", `{"quantities":[{"quantity":1},{"quantity":50}]}`),
		at("/check", `{"items":[{"sku":"plain"},{"sku":"few"}]}`), at("/graphql", mutation+`}`),
		at("/graphql", mutation+`,"variables":{"l":[{"sku":"plain","n":1},{"sku":"few"}]}}`), at("/graphql", mutation+`,"variables":{"l":{"sku":"plain","n":1}}}`),
		at("/graphql", `{"query":"mutation { order(lines: [{sku: \"plain\"}, {sku: \"few\"}]) { id } }"}`),
	} {
		s.Send(more).Is(t, 400, "malformed")
	}
	if got := shop.Take(); len(got) != 0 {
		t.Errorf("the shop got %v", got)
	}
	if !strings.Contains(s.Admin("GET", "/metrics", "").Body, `stockgate_unclear_total{cause="elements"} 4`) {
		t.Error("the lists of the mutations are not counted")
	}
	several := s.File("answer.http", "HTTP/1.1 200 OK\n\n{\"orders\":[{\"state\":\"paid\"},{\"state\":\"open\"}]}")
	ran := s.TryAt("POST /answer HTTP/1.1\nHost: x\nX-User-Id: u1\n\n", "--gate", "answers", "--answer", several)
	if !strings.Contains(ran.Out, "answer   200: in_doubt") || !strings.Contains(ran.Out, "an array that has more elements than the rules read") {
		t.Errorf("try: %s%s", ran.Out, ran.Errors)
	}
}

// Lines that are reserved although a request leaves them out, and lines that read one of many, are
// warned of where a configuration in JSON loads, and by the doctor.
func TestRisksOfLines(t *testing.T) {
	const absent = "the lines of A1, B1 stand for one unit each where a request has no quantity for them, so that an order of one item takes the others too: " +
		"write `absent 0` behind the quantity if the shop sells none then, or `absent 1` if it sells one"
	const element = "{json.items.0.sku} reads one element of an array, and an order that has more of them than the gate reads is refused: write `lines {json.items} sku …` to sell all of them"
	p := sitetest.Admit(t, sitetest.WellRedis, "", "", sitetest.GuardedGate)
	gate := func(lines string) string { return strings.Replace(sitetest.GuardedGate, "line {json.sku}", lines, 1) }
	for _, c := range []struct{ lines, warns string }{
		{"line A1 {json.a}\nline B1 {json.b}", absent},
		{"line {json.items.0.sku}", element},
		{"line A1 {json.a} absent 0\nline B1 {json.b} absent 1\nline C1\nline {json.sku} {json.n}", ""},
		{"line A1 {json.a}", ""},
	} {
		before := len(p.Logged(absent)) + len(p.Logged(element))
		p.Change("", "", gate(c.lines))
		after, want := len(p.Logged(absent))+len(p.Logged(element)), before
		if c.warns != "" {
			want++
		}
		if after != want {
			t.Errorf("%s: the log has %d warnings more", c.lines, after-before)
		}
		if found := p.Admin("GET", "/stockgate/doctor", "").Body; strings.Contains(found, `"check":"lines"`) != (c.warns != "") {
			t.Errorf("%s: the doctor says %s", c.lines, found)
		}
	}
}

// What Caddyfiles cannot say is an error in JSON too.
func TestLinesInJSON(t *testing.T) {
	s := sitetest.OpenCaddyfile(t, "respond 201")
	for absent, says := range map[string]string{"0": "", "1": "", "2": "there are 0, no unit, and 1", "-1": "there are 0, no unit, and 1"} {
		err := s.LoadGate(`{"handler":"stockgate","buyer":["{header.X-User-Id}"],"lines":[{"sku":["plain"],"quantity":["{json.n}"],"absent":` + absent + `}]}`)
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("absent %s: %v", absent, err)
		}
	}
}

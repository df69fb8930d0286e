package rehearse_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/operate/rehearse"
	"github.com/stockgate/stockgate/internal/stampede"
	"github.com/stockgate/stockgate/internal/store/record"
)

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const order = `POST /api/order?from={{shop}} HTTP/1.1
Host: shop.test
Content-Type: application/json
Connection: close
X-User-Id: {{buyer}}
Idempotency-Key: {{key}}

{"sku":"{{ sku }}","n":{{number}}}
`

const users = "buyer,sku,shop\nann,a,one\nbob,\"b,c\",two\n"

func TestRequestsAreMadeOfTemplateAndData(t *testing.T) {
	r, err := rehearse.New(rehearse.Options{Sale: "s", Hosts: []string{"shop.test", "http://other.test:8080"}, Data: file(t, "users.csv", users),
		Files: []string{file(t, "order.http", order), file(t, "page.http", "GET / HTTP/1.1\r\nHost: OTHER.test:8080\r\n\r\n")}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Buyers != 2 || r.Arrive != rehearse.ArriveSpike {
		t.Errorf("%d buyers arrive by %s", r.Buyers, r.Arrive)
	}
	first, err := r.RequestOf(0)
	if err != nil {
		t.Fatal(err)
	}
	if first.URL != "https://shop.test/api/order?from=one" || first.Body != `{"sku":"a","n":1}` || first.Header.Get("X-User-Id") != "ann" || first.Header.Get("Connection") != "" ||
		!strings.HasSuffix(first.Header.Get("Idempotency-Key"), "-1") {
		t.Errorf("%+v", first)
	}
	second, err := r.RequestOf(1)
	if err != nil || second.URL != "http://OTHER.test:8080/" || second.Body != "" {
		t.Errorf("%+v, %v", second, err)
	}
}

func TestOptionsThatAreWrong(t *testing.T) {
	good := file(t, "order.http", strings.ReplaceAll(strings.ReplaceAll(order, "{{shop}}", "x"), "{{ sku }}", "a"))
	for name, c := range map[string]struct {
		change func(*rehearse.Options)
		says   string
	}{
		"no sale":          {func(o *rehearse.Options) { o.Sale = "" }, "--sale"},
		"no host":          {func(o *rehearse.Options) { o.Hosts = nil }, "there is no default"},
		"a path as host":   {func(o *rehearse.Options) { o.Hosts = []string{"shop.test/api"} }, `--host "shop.test/api": write a host`},
		"a password in it": {func(o *rehearse.Options) { o.Hosts = []string{"https://a:b@shop.test"} }, "write a host"},
		"another scheme":   {func(o *rehearse.Options) { o.Hosts = []string{"ftp://shop.test"} }, "write a host"},
		"two schemes":      {func(o *rehearse.Options) { o.Hosts = []string{"shop.test", "http://shop.test"} }, "with http and with https"},
		"a foreign host":   {func(o *rehearse.Options) { o.Hosts = []string{"staging.test"} }, `it goes to the host "shop.test", which no --host names: there are https://staging.test`},
		"another port":     {func(o *rehearse.Options) { o.Hosts = []string{"shop.test:8443"} }, "which no --host names"},
		"no file":          {func(o *rehearse.Options) { o.Files = nil }, "order.http"},
		"no such file":     {func(o *rehearse.Options) { o.Files = []string{"nowhere.http"} }, "nowhere.http"},
		"no HTTP":          {func(o *rehearse.Options) { o.Files = []string{file(t, "x.http", "hello\n")} }, "x.http, as buyer 1 sends it: it is not an HTTP/1.1 request"},
		"a whole URL": {func(o *rehearse.Options) {
			o.Files = []string{file(t, "x.http", "GET http://evil.test/ HTTP/1.1\nHost: shop.test\n\n")}
		}, `the host "evil.test"`},
		"an unknown column": {func(o *rehearse.Options) { o.Files = []string{file(t, "x.http", order)} }, "there is no column {{shop}}; there are buyer, key, number"},
		"no buyers":         {func(o *rehearse.Options) { o.Buyers = 0 }, "--buyers"},
		"too many":          {func(o *rehearse.Options) { o.Buyers = rehearse.MaxBuyers + 1 }, "give 1 to 100000"},
		"a host in the data": {func(o *rehearse.Options) {
			o.Files, o.Data = []string{file(t, "x.http", "GET / HTTP/1.1\nHost: {{h}}\n\n")}, file(t, "u.csv", "h\nshop.test\nevil.test\n")
			o.Buyers = 2
		}, `as buyer 2 sends it: it goes to the host "evil.test"`},
		"a header in the data": {func(o *rehearse.Options) {
			o.Files, o.Data = []string{file(t, "x.http", "GET / HTTP/1.1\nHost: shop.test\nX: {{h}}\n\n")}, file(t, "u.csv", "h\n\"a\nHost: evil.test\"\n")
			o.Buyers = 1
		}, "its value has a line end"},
		"too few rows":      {func(o *rehearse.Options) { o.Data = file(t, "u.csv", users) }, "there are 3 buyers, and the data has 2 rows"},
		"no rows":           {func(o *rehearse.Options) { o.Data = file(t, "u.csv", "buyer\n") }, "a line for each buyer"},
		"a column twice":    {func(o *rehearse.Options) { o.Data = file(t, "u.csv", "a,a\n1,2\n") }, `two columns "a"`},
		"a ramp of no time": {func(o *rehearse.Options) { o.Arrive = "ramp" }, "--over 10s"},
		"a long spike":      {func(o *rehearse.Options) { o.Over = time.Second }, "all buyers come at once"},
		"no such log":       {func(o *rehearse.Options) { o.Arrive = "nowhere.log" }, "--arrive is spike, ramp, poisson, or the file of an access log"},
		"a broken log":      {func(o *rehearse.Options) { o.Arrive = file(t, "a.log", "x") }, "line 1 is not JSON"},
		"requires nonsense": {func(o *rehearse.Options) { o.Require = []string{"p99"} }, `--require "p99": write a name`},
		"requires p95":      {func(o *rehearse.Options) { o.Require = []string{"p95<1s"} }, `"p95" is not measured`},
		"no unit":           {func(o *rehearse.Options) { o.Require = []string{"p99<300"} }, `"300" is no bound of p99`},
		"NaN":               {func(o *rehearse.Options) { o.Require = []string{"errors<NaN"} }, "no bound of errors"},
		"half a unit":       {func(o *rehearse.Options) { o.Require = []string{"sold>=1.5"} }, "no bound of sold"},
		"answers and crowd": {func(o *rehearse.Options) { o.Answers = "x" }, "--judge-only"},
		"judged and sent":   {func(o *rehearse.Options) { o.JudgeOnly = true }, "sends no requests"},
		"judged times": {func(o *rehearse.Options) {
			*o = rehearse.Options{Sale: "s", JudgeOnly: true, Require: []string{"p99<1s"}}
		}, "no times are measured"},
		"broken answers": {func(o *rehearse.Options) {
			*o = rehearse.Options{Sale: "s", JudgeOnly: true, Answers: file(t, "a.jsonl", "{\"status\":201}\nx\n")}
		}, "a.jsonl:2: it is no answer"},
		"answers without a status": {func(o *rehearse.Options) {
			*o = rehearse.Options{Sale: "s", JudgeOnly: true, Answers: file(t, "a.jsonl", "{\"status\":201}\n\n{\"code\":201,\"id\":\"x\"}\n")}
		}, "a.jsonl:3: it is no answer, such as {\"status\":201,\"reservation\":\"…\"}: it has no status"},
		"no answers": {func(o *rehearse.Options) {
			*o = rehearse.Options{Sale: "s", JudgeOnly: true, Answers: file(t, "a.jsonl", "\n")}
		}, "a.jsonl:1: there is no answer in it"},
	} {
		o := rehearse.Options{Sale: "s", Hosts: []string{"shop.test"}, Files: []string{good}, Buyers: 3}
		if _, err := rehearse.New(o); err != nil {
			t.Fatal(err)
		}
		c.change(&o)
		if _, err := rehearse.New(o); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: expected %q, got %v", name, c.says, err)
		}
	}
}

// A log takes its own time, its first requests, or another time.
func TestAccessLogsAreReplayed(t *testing.T) {
	log := file(t, "access.log", `{"ts":10}`+"\n"+`{"ts":11}`+"\n"+`{"ts":14}`+"\n")
	o := rehearse.Options{Sale: "s", Hosts: []string{"shop.test"}, Arrive: log, Files: []string{file(t, "x.http", "GET / HTTP/1.1\nHost: shop.test:443\n\n")}}
	for _, c := range []struct {
		buyers int
		over   time.Duration
		last   time.Duration
		come   int
	}{{0, 0, 4 * time.Second, 3}, {2, 0, time.Second, 2}, {0, 8 * time.Second, 8 * time.Second, 3}} {
		o.Buyers, o.Over = c.buyers, c.over
		r, err := rehearse.New(o)
		if err != nil {
			t.Fatal(err)
		}
		if at := r.Arrivals(); len(at) != c.come || r.Buyers != c.come || at[len(at)-1] != c.last {
			t.Errorf("%+v: %v", c, at)
		}
	}
}

func TestOrdersAreRead(t *testing.T) {
	for text, want := range map[string]string{
		`[{"order_no":"o1","reservation":"r1","buyer":"ann","lines":[{"sku":"a","qty":2}],"more":1}]`: `[{"order_no":"o1","reservation":"r1","buyer":"ann","lines":[{"sku":"a","qty":2}]}]`,
		`{"order_no":17,"reservation":"r1","sku":"a","quantity":"2","region":"n"}` + "\n" + `{"reservation":"r2","buyer":null}`: `[{"order_no":"17","reservation":"r1","buyer":"","lines":[{"sku":"a","qty":2,"region":"n"}]},` +
			`{"order_no":"number 2","reservation":"r2","buyer":"","lines":null}]`,
		"\ufeffReservation,buyer,sku,paid\nr1,ann,a,yes\n,bob,b,no\n": `[{"order_no":"number 1","reservation":"r1","buyer":"ann","lines":[{"sku":"a","qty":1}]},{"order_no":"number 2","buyer":"bob","lines":[{"sku":"b","qty":1}]}]`,
		"":   "null",
		"[]": "null",
	} {
		orders, err := rehearse.ListOrders(t.Context(), file(t, "orders", text))
		got, _ := json.Marshal(orders)
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for text, says := range map[string]string{
		"id,buyer\n1,ann\n":                   "no column reservation",
		`{"orders":[]}`:                       "no order in it has a reservation",
		`[{"order_no":{}}]`:                   "orders:",
		"reservation,sku,quantity\nr,a,two\n": `the quantity "two" is no whole number`,
		"reservation\n\"r\n":                  "orders:",
	} {
		if _, err := rehearse.ListOrders(t.Context(), file(t, "orders", text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: expected %q, got %v", text, says, err)
		}
	}
}

func TestRequirements(t *testing.T) {
	tally := &stampede.Tally{
		Requests: 200, Statuses: map[int]int{201: 100, 409: 92, 503: 1, 500: 1}, Failed: map[string]int{"timeout": 2, stampede.Left: 4}, Late: &stampede.Latency{P99: 30 * time.Millisecond},
		Latency: stampede.Latency{P50: 100 * time.Millisecond, P90: 200 * time.Millisecond, P99: 299 * time.Millisecond, Max: time.Second},
	}
	for text, measured := range map[string]string{
		"p99<300ms": "299ms", "p99 <= 299ms": "299ms", "p50=100ms": "100ms", "p90<201ms": "200ms", "max>=1s": "1s", "late<31ms": "30ms",
		"errors<2.1%": "2.00%", "errors=4": "4", "sold>=7": "7", "held=2": "2", "in_doubt<4": "3",
		"!p99<299ms": "299ms", "!p50>100ms": "100ms", "!max<1s": "1s", "!late<30ms": "30ms", "!errors<2%": "2.00%", "!errors<=3": "4", "!sold>7": "7", "!sold=8": "7", "!held<2": "2", "!in_doubt=0": "3",
	} {
		text, fails := strings.CutPrefix(text, "!")
		r, err := rehearse.Measure(text, tally, record.Cell{Confirmed: 7, Held: 2, InDoubt: 3})
		if err != nil || r.Met == fails || r.Measured != measured || r.Text != text {
			t.Errorf("%s: %+v, %v", text, r, err)
		}
	}
	if r, err := rehearse.Measure("p99<1s", &stampede.Tally{Late: &stampede.Latency{}}, record.Cell{}); err != nil || r.Met {
		t.Errorf("a latency that was not measured: %+v, %v", r, err)
	}
}

// The books are asked for before anything is sent.
func TestNothingIsSentWithoutTheBooks(t *testing.T) {
	down := errors.New("down")
	r, err := rehearse.New(rehearse.Options{Sale: "s", Hosts: []string{"http://127.0.0.1:1"}, Buyers: 1, Files: []string{file(t, "x.http", "POST / HTTP/1.1\nHost: 127.0.0.1:1\n\n")},
		Fetch: func(context.Context, string, any) error { return down }})
	if err != nil {
		t.Fatal(err)
	}
	if result, err := r.Run(t.Context()); !errors.Is(err, down) || result != nil {
		t.Errorf("%+v, %v", result, err)
	}
}

// On a terminal the line is rewritten; in a pipe each is a line of its own.
func TestProgressIsOneLine(t *testing.T) {
	for rewrite, want := range map[bool]string{
		true:  "\r\033[K1.5s: sent 1,200, waiting 200, yes 100, refused 890, no answer 10, p99 120ms, late 2ms",
		false: "1.5s: sent 1,200, waiting 200, yes 100, refused 890, no answer 10, p99 120ms, late 2ms\n",
	} {
		var out strings.Builder
		r := &rehearse.Rehearsal{Options: rehearse.Options{Progress: &out, Rewrite: rewrite}}
		r.Report(stampede.Progress{Elapsed: 1500 * time.Millisecond, Sent: 1200, Waiting: 200, Accepted: 100, Refused: 890, Failed: 10, P99: 120 * time.Millisecond, Late: 2 * time.Millisecond})
		if out.String() != want {
			t.Errorf("%q, not %q", out.String(), want)
		}
	}
}

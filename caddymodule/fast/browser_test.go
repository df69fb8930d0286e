//go:build browser

// `make browser` runs this test: it needs Chromium.
package fast_test

import (
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/test/chromium"
)

// browserSites log every answer: with `sampled`, it is the wrapper's.
const browserSites = `
SITE127.0.0.1PORT {
	log {
		output net LOGS
	}
	@post {
		method POST
		path /api/order
	}
	stockgate_guard
	stockgate @post {
		buyer {header.X-User-Id}
		line {json.sku}
		FAST
	}
	header /shop Content-Type text/html
	respond "<link rel=icon href=data:,>the shop {http.request.uri.query.n}" 200
}
`

// browserRequests has a page ask in turn for what is refused and for the shop's pages.
const browserRequests = `(() => {
	const ask = async (n) => {
		const r = n % 2
			? await fetch('/shop?n=' + n)
			: await fetch('/api/order?n=' + n, {method: 'POST', headers: {'Content-Type': 'application/json', 'X-User-Id': 'u' + n}, body: JSON.stringify({sku: 'soon'})});
		return {n, status: r.status, refusal: r.headers.get('Stockgate-Refusal') || '', body: await r.text()};
	};
	const numbers = [...Array(60).keys()];
	const oneByOne = async () => {
		const all = [];
		for (const n of numbers) all.push(await ask(n));
		return all;
	};
	return AT_ONCE ? Promise.all(numbers.map(ask)) : oneByOne();
})()`

// TestBrowserFastRefusalsOverHTTP2: a page in Chromium gets refusals of the wrapper and answers of
// Caddy in turn, by HTTP/2 on one connection.
func TestBrowserFastRefusalsOverHTTP2(t *testing.T) {
	sink := openSink(t)
	s := sitetest.OpenFastWith(t, true, "", "SITEnone.example.comPORT {\n}\n")
	s.Option = "fast_refusals force {\nlog 100%\n}"
	if err := s.LoadFast("protocols h1 h2", strings.ReplaceAll(browserSites, "LOGS", sink.ln.Addr().String())); err != nil {
		t.Fatal(err)
	}
	b := chromium.Start(t)
	b.AcceptAnyCertificate()
	b.Open("https://" + s.Fast + "/shop")
	before, sent := s.FastAnswers(), 0
	ask := func(atOnce string) (fast int) {
		type answer struct {
			N             int
			Status        int
			Refusal, Body string
		}
		was := s.FastAnswers()
		answers := chromium.Eval[[]answer](b, strings.Replace(browserRequests, "AT_ONCE", atOnce, 1))
		if len(answers) != 60 {
			t.Fatalf("%d answers", len(answers))
		}
		for _, a := range answers {
			switch {
			case a.N%2 == 1 && (a.Status != 200 || !strings.Contains(a.Body, "the shop ")):
				t.Errorf("at once %s: the shop's answer: %+v", atOnce, a)
			case a.N%2 == 0 && (a.Status != 409 || a.Refusal != "not_started" || !strings.Contains(a.Body, "not_started")):
				t.Errorf("at once %s: a refusal: %+v", atOnce, a)
			}
		}
		sent += len(answers)
		return s.FastAnswers() - was
	}
	// An attempt whose body comes a second after its head goes to the gate, so a machine that
	// stands still for a second spoils a round. It does not spoil twenty.
	for try := 1; ; try++ {
		fast := ask("false")
		if fast == 30 {
			break
		}
		if try == 20 {
			t.Fatalf("the wrapper has answered %d one by one, want 30", fast)
		}
	}
	ask("true") // here a page takes along the attempts before it that still wait for their bodies
	fast := s.FastAnswers() - before
	protocols := chromium.Eval[[]string](b, `[...new Set(performance.getEntriesByType('resource').filter((e) => e.name.includes('n=')).map((e) => e.nextHopProtocol))]`)
	if len(protocols) != 1 || protocols[0] != "h2" {
		t.Errorf("Chromium has spoken %q", protocols)
	}
	ports, sampled, shop := make(map[any]bool), 0, 0
	for sampled+shop < sent {
		line := sink.next()
		r := line["request"].(map[string]any)
		if !strings.Contains(r["uri"].(string), "?n=") {
			continue // the page
		}
		ports[r["remote_port"]] = true
		if r["proto"] != "HTTP/2.0" {
			t.Errorf("%v", line)
		}
		if line["sampled"] != nil {
			sampled++
		} else {
			shop++
		}
	}
	if len(ports) != 1 || sampled != fast || shop != sent-fast {
		t.Errorf("%d refusals of the wrapper and %d answers of Caddy came on %d connections, want %d and %d on one", sampled, shop, len(ports), fast, sent-fast)
	}
	t.Logf("the wrapper has answered %d of %d refusals", fast, sent/2)
}

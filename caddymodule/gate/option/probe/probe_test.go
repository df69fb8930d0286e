package probe

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/filters/outcome"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

const someID = "01981b2e-0000-7000-8000-000000000001"

// question compiles the URL of a probe.
func question(url string) (*Probe, error) {
	p := &Probe{header: make(http.Header)}
	return p, p.compileQuestion(&InDoubt{Probe: url}, &Gate{ByRef: true})
}

// at returns the URL at which the shop is asked about an order; false: it is not asked.
func (p *Probe) at(ref string) (string, bool) {
	r, ok := p.request(context.Background(), reservation.ProbeDue{ID: someID, Ref: ref})
	if !ok {
		return "", false
	}
	return r.URL.String(), true
}

func TestProbeURL(t *testing.T) {
	t.Setenv("STOCKGATE_TEST_SHOP", "shop.internal:8443")
	t.Setenv("STOCKGATE_TEST_USER", "me:secret@shop")
	for _, c := range []struct{ template, ref, want string }{
		{"http://shop/orders/{id}", "", "http://shop/orders/" + someID},
		{"https://{env.STOCKGATE_TEST_SHOP}/orders/{id}?x=1", "", "https://shop.internal:8443/orders/" + someID + "?x=1"},
		{"http://shop/{id}/{ref}", "A-1", "http://shop/" + someID + "/A-1"},
		{"http://shop/{id}/{ref}", "", "not asked"},
		{"http://shop/orders?ref={ref}", "", "not asked"},
		{"http://shop/orders/{ref}", "a b", "not asked"},
		{"http://shop/orders/{ref}", "a&b=c,d:e@f+g$h!'()*", "http://shop/orders/a&b=c%2Cd:e@f+g$h%21%27%28%29%2A"},
		{"http://shop/orders/{ref}", ".", "not asked"},
		{"http://shop/orders/{ref}", "..", "not asked"},
		{"http://shop/orders/{ref}", "../admin", "not asked"},
		{"http://shop/orders/{ref}", `..\admin`, "not asked"},
		{"http://shop/orders/{ref}", "..;", "not asked"},
		{"http://shop/orders/{ref}", "%2e%2e", "not asked"},
		{"http://shop/orders/{ref}", "1?paid", "not asked"},
		{"http://shop/orders/{ref}", "1#paid", "not asked"},
		{"http://shop/orders/{ref}", "größe", "not asked"},
		{"http://shop/orders/{ref}.json", "..", "not asked"},
		{"http://shop/orders?ref={ref}&id={id}", "../a&id=1#x%2e+ö?", "http://shop/orders?ref=..%2Fa%26id%3D1%23x%252e%2B%C3%B6%3F&id=" + someID},
	} {
		u, err := question(c.template)
		if err != nil {
			t.Errorf("%s: %v", c.template, err)
			continue
		}
		got, ok := u.at(c.ref)
		if !ok {
			got = "not asked"
		}
		if got != c.want {
			t.Errorf("%s with %q: %s, want %s", c.template, c.ref, got, c.want)
		}
	}
	for template, says := range map[string]string{
		"":                                      "whole http or https URL",
		"http://shop/orders":                    "names no order",
		"/orders/{id}":                          "whole http or https URL",
		"shop/orders/{id}":                      "whole http or https URL",
		"ftp://shop/{id}":                       "http or https",
		"http:shop/{id}":                        "http or https",
		"http:///{id}":                          "http or https",
		"http://{id}/":                          "must not depend on the order",
		"http://{id}.shop/":                     "must not depend on the order",
		"http://shop.{ref}/orders/{id}":         "must not depend on the order",
		"{ref}://shop/orders/{id}":              "http or https",
		"http://shop:{id}/":                     "cannot be read",
		"http://shop/%zz/{id}":                  "cannot be read",
		"http://me:secret@shop/{id}":            "a user in it",
		"http://{env.STOCKGATE_TEST_USER}/{id}": "a user in it",
		"http://shop/{id}#top":                  "a fragment",
		"http://shop/#{id}":                     "a fragment",
		"http://shop/{id}#":                     "a fragment",
		"http://shop/{id}/{http.request.host}":  "no placeholder",
		"http://shop/{ID}":                      "no placeholder",
		"http://shop/{id":                       "no placeholder",
		"http://{env.STOCKGATE_NO_SUCH}/{id}":   "http or https",
	} {
		_, err := question(template)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, it should say %q", template, err, says)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error repeats the secret: %v", template, err)
		}
	}
}

// Whatever ref a buyer chooses, the request goes to the same route of the same shop, and
// every server that reads the URL finds the ref in it.
func FuzzProbeURL(f *testing.F) {
	for _, ref := range []string{"A-1", "..", "../x", "%2e%2e%2fx", "a?b#c", "a b", "\\", "..;/", "a&ref=b", "\x00", "{id}"} {
		f.Add(ref)
	}
	inPath, err := question("http://shop/orders/{ref}/state?id={id}")
	if err != nil {
		f.Fatal(err)
	}
	inQuery, err := question("http://shop/orders?ref={ref}&id={id}")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, ref string) {
		if text, ok := inPath.at(ref); ok {
			u, err := url.Parse(text)
			if err != nil || u.Host != "shop" || u.Path != "/orders/"+ref+"/state" || u.Query().Get("id") != someID || u.Fragment != "" {
				t.Fatalf("%q: %s %v", ref, text, err)
			}
			if clean := u.JoinPath().Path; clean != u.Path || strings.Count(u.Path, "/") != 3 {
				t.Fatalf("%q leads to %s", ref, clean)
			}
		}
		text, ok := inQuery.at(ref)
		if ok != (ref != "") {
			t.Fatalf("%q: asked %v", ref, ok)
		}
		if ok {
			u, err := url.Parse(text)
			if err != nil || u.Host != "shop" || u.Path != "/orders" || len(u.Query()) != 2 || u.Query().Get("ref") != ref || u.Query().Get("id") != someID {
				t.Fatalf("%q: %s %v", ref, text, err)
			}
		}
	})
}

// compileProbe makes the probe of a gate that holds for 30s. It waits long for an answer
// unless the test sets a timeout.
func compileProbe(t *testing.T, d *InDoubt, answers map[string]outcome.AnswerMatcher) *Probe {
	t.Helper()
	if d.Timeout == 0 {
		d.Timeout, d.Every = caddy.Duration(time.Minute), caddy.Duration(time.Minute)
	}
	p, err := d.Compile(&Gate{Name: "main", ByRef: true, HoldFor: 30 * time.Second, Answers: answers, Log: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.client.CloseIdleConnections)
	return p
}

// TestProbeAnswers checks which probe answer follows from the shop's answer.
func TestProbeAnswers(t *testing.T) {
	answers := map[string]outcome.AnswerMatcher{
		"there": {Status: []string{"200"}, JSON: []outcome.JSONTest{{Path: "order.no"}}},
		"gone":  {Status: []string{"200"}, JSON: []outcome.JSONTest{{Path: "order", Absent: true}}},
	}
	byBody := []outcome.Rule{{Outcome: "confirm", When: []string{"@there"}}, {Outcome: "release", When: []string{"@gone"}}}
	text := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	long := strings.Repeat(" ", outcome.DefaultMaxBody)
	for _, c := range []struct {
		name  string
		rules []outcome.Rule
		shop  http.HandlerFunc
		want  reservation.ProbeAnswer
		fails bool
	}{
		{name: "200", shop: text(200, "{}"), want: reservation.ProbePresent},
		{name: "404", shop: text(404, ""), want: reservation.ProbeAbsent},
		{name: "201", shop: text(201, ""), want: reservation.ProbeUnknown},
		{name: "204", shop: text(204, ""), want: reservation.ProbeUnknown},
		{name: "401", shop: text(401, ""), want: reservation.ProbeUnknown},
		{name: "410", shop: text(410, ""), want: reservation.ProbeUnknown},
		{name: "429", shop: text(429, ""), want: reservation.ProbeUnknown},
		{name: "500", shop: text(500, ""), want: reservation.ProbeUnknown},
		{name: "own words", rules: []outcome.Rule{{Outcome: "release", When: []string{"410"}}}, shop: text(410, ""), want: reservation.ProbeAbsent},
		{name: "own words replace the default", rules: []outcome.Rule{{Outcome: "release", When: []string{"410"}}}, shop: text(404, ""), want: reservation.ProbeUnknown},
		{name: "the other kind keeps its default", rules: []outcome.Rule{{Outcome: "release", When: []string{"410"}}}, shop: text(200, ""), want: reservation.ProbePresent},
		{name: "the body says yes", rules: byBody, shop: text(200, `{"order":{"no":"A1"}}`), want: reservation.ProbePresent},
		{name: "the body says no", rules: byBody, shop: text(200, `{"order":null}`), want: reservation.ProbeAbsent},
		{name: "the body says neither", rules: byBody, shop: text(200, `{"order":{}}`), want: reservation.ProbeUnknown},
		{name: "no JSON", rules: byBody, shop: text(200, `<html>`), want: reservation.ProbeUnknown},
		{name: "a login page for all requests", rules: byBody, shop: text(404, `<html>`), want: reservation.ProbeUnknown},
		{name: "a body as long as may be", rules: byBody, shop: text(200, (long + `{"order":null}`)[14:]), want: reservation.ProbeAbsent},
		{name: "a body longer than that", rules: byBody, shop: text(200, `{"order":null}`+long), want: reservation.ProbeUnknown},
		{name: "a long body that no rule reads", shop: text(200, long+long), want: reservation.ProbePresent},
		{name: "an elsewhere", shop: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/elsewhere" {
				t.Error("a redirect was followed")
			}
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}, want: reservation.ProbeUnknown},
		{name: "compressed", rules: byBody, shop: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			io.WriteString(z, `{"order":null}`)
			z.Close()
		}, want: reservation.ProbeAbsent},
		{name: "in an unknown encoding", rules: byBody, shop: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			io.WriteString(w, `{"order":null}`)
		}, want: reservation.ProbeUnknown},
		{name: "broken off", shop: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.WriteHeader(404)
			io.WriteString(w, "not fo")
		}, want: reservation.ProbeUnknown, fails: true},
		{name: "no answer", shop: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, want: reservation.ProbeUnknown, fails: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(c.shop)
			defer server.Close()
			p := compileProbe(t, &InDoubt{Probe: server.URL + "/orders?ref={ref}", Rules: c.rules}, answers)
			got, cause, err := p.ask(t.Context(), reservation.ProbeDue{ID: someID, Ref: "a secret"})
			if got != c.want || (err != nil) != c.fails {
				t.Errorf("%s (%s) %v, want %s", got, cause, err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error repeats the ref: %v", err)
			}
		})
	}
}

// The probe sends a GET with the configured headers, on a connection that is reused.
func TestProbeQuestion(t *testing.T) {
	t.Setenv("STOCKGATE_TEST_KEY", "s3cret")
	var connections atomic.Int32
	var last atomic.Pointer[http.Request]
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		last.Store(r)
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, "no such order")
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	p := compileProbe(t, &InDoubt{Probe: server.URL + "/orders/{id}?cart={ref}", Header: map[string]string{"authorization": "Bearer {env.STOCKGATE_TEST_KEY}"}}, nil)
	for range 5 {
		if v, cause, err := p.ask(t.Context(), reservation.ProbeDue{ID: someID, Ref: "c&1"}); v != reservation.ProbeAbsent || cause != "probe_status_404" || err != nil {
			t.Fatal(v, cause, err)
		}
	}
	r := last.Load()
	if r.Method != "GET" || r.RequestURI != "/orders/"+someID+"?cart=c%261" || r.Header.Get("Authorization") != "Bearer s3cret" ||
		r.Header.Get("Accept-Encoding") != "identity" || r.ContentLength != 0 {
		t.Errorf("%s %s %v", r.Method, r.RequestURI, r.Header)
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections for 5 questions", n)
	}
	if v, _, err := p.ask(t.Context(), reservation.ProbeDue{ID: someID}); v != reservation.ProbeUnknown || err != errNotAsked {
		t.Errorf("without a ref: %v %v", v, err)
	}
}

// A shop that hangs costs one timeout, and stopping the prober ends the request at once.
func TestProbeHangs(t *testing.T) {
	hangs := func() (url string, asked chan struct{}) {
		asked = make(chan struct{}, 100)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked <- struct{}{}
			<-r.Context().Done()
		}))
		t.Cleanup(server.Close)
		return server.URL + "/{id}", asked
	}
	url, asked := hangs()
	// on a slow machine the time may be over before the shop is asked
	for timeout := 100 * time.Millisecond; len(asked) == 0; timeout *= 2 {
		p := compileProbe(t, &InDoubt{Probe: url, Timeout: caddy.Duration(timeout)}, nil)
		if v, _, err := p.ask(t.Context(), reservation.ProbeDue{ID: someID}); v != reservation.ProbeUnknown || err == nil {
			t.Fatalf("a shop that hangs: %v %v", v, err)
		}
	}
	url, asked = hangs()
	p := compileProbe(t, &InDoubt{Probe: url}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if v, _, err := p.ask(ctx, reservation.ProbeDue{ID: someID}); v != reservation.ProbeUnknown || err == nil {
		t.Errorf("the end: %v %v", v, err)
	}
}

func TestInDoubtRefuses(t *testing.T) {
	const at = "http://shop/{id}"
	seconds := func(n int) caddy.Duration { return caddy.Duration(time.Duration(n) * time.Second) }
	for _, c := range []struct {
		in   InDoubt
		hold time.Duration
		says string
	}{
		{InDoubt{Tries: 3}, 0, "no URL to ask"},
		{InDoubt{Probe: "http://shop/?no={ref}"}, 0, "the gate has no ref"},
		{InDoubt{Probe: at, Every: caddy.Duration(time.Millisecond)}, 0, "every 1ms is outside"},
		{InDoubt{Probe: at, Every: seconds(4)}, 0, "every 4s is shorter than the timeout 5s"},
		{InDoubt{Probe: at, Longest: seconds(4)}, 0, "longest 4s is outside"},
		{InDoubt{Probe: at, Timeout: seconds(61)}, 0, "timeout 1m1s is outside"},
		{InDoubt{Probe: at, Timeout: seconds(-1)}, 0, "timeout -1s is outside"},
		{InDoubt{Probe: at, Every: seconds(-1)}, 0, "every -1s is outside"},
		{InDoubt{Probe: at, Tries: 1}, 0, "tries 1 is outside"},
		{InDoubt{Probe: at, Tries: -1}, 0, "tries -1 is outside"},
		{InDoubt{Probe: at, Tries: 4}, 0, "4 tries are over before hold_for 30s is"}, // asked at 0s 5s 15s 35s
		{InDoubt{Probe: at}, 24 * time.Hour, "20 tries are over before hold_for 24h0m0s is"},
		{InDoubt{Probe: at, Rules: []outcome.Rule{{Outcome: "confirm", When: []string{"@none"}}}}, 0, "there is no answer @none"},
		{InDoubt{Probe: at, Rules: []outcome.Rule{{Outcome: "keep", When: []string{"200"}}}}, 0, "there are confirm and release"},
		{InDoubt{Probe: at, Header: map[string]string{"X Y": "a"}}, 0, "no field that can be set"},
		{InDoubt{Probe: at, Header: map[string]string{"": "a"}}, 0, "no field that can be set"},
		{InDoubt{Probe: at, Header: map[string]string{"host": "a"}}, 0, "no field that can be set"},
		{InDoubt{Probe: at, Header: map[string]string{"X": ""}}, 0, "has no value"},
		{InDoubt{Probe: at, Header: map[string]string{"X": "{env.STOCKGATE_NO_SUCH}"}}, 0, "is empty"},
		{InDoubt{Probe: at, Header: map[string]string{"X": "a\nb"}}, 0, "control character"},
	} {
		hold := c.hold
		if hold == 0 {
			hold = 30 * time.Second
		}
		_, err := c.in.Compile(&Gate{HoldFor: hold, Log: zap.NewNop()})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, it should say %q", c.in, err, c.says)
		}
	}
	five := InDoubt{Probe: at, Tries: 5} // the last two at 35s and 75s
	if _, err := five.Compile(&Gate{HoldFor: 30 * time.Second, Log: zap.NewNop()}); err != nil {
		t.Error(err)
	}
	if p, err := (&InDoubt{}).Compile(&Gate{HoldFor: 30 * time.Second, Log: zap.NewNop()}); p != nil || err != nil {
		t.Errorf("keep: %v %v", p, err)
	}
}

package resolve_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

const apiKey = "test_a_key_of_the_provider"

// provider is a payment provider that is asked about payments, over https.
type provider struct {
	*httptest.Server
	ca     string // the file with its certificate
	asked  atomic.Int32
	answer atomic.Pointer[http.HandlerFunc]
}

func openProvider(t *testing.T) *provider {
	t.Helper()
	p := new(provider)
	certificate, key := redistest.SelfSigned(t)
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	p.ca = certificate
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		(*p.answer.Load())(w, r)
	}))
	p.Config.ErrorLog = log.New(io.Discard, "", 0) // a client that does not trust it is expected
	p.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	p.StartTLS()
	t.Cleanup(p.Close)
	p.says(func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) })
	return p
}

func (p *provider) says(answer http.HandlerFunc) { p.answer.Store(&answer) }

// has makes the provider know one payment.
func (p *provider) has(t *testing.T, id, status, ref string) {
	p.says(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "GET" || r.Header.Get("Authorization") != "Bearer "+apiKey || r.RequestURI != "/v2/payments/"+id {
			t.Errorf("it is asked %s %s with %q", r.Method, r.RequestURI, r.Header.Get("Authorization"))
		}
		fmt.Fprintf(w, `{"id":%q,"status":%q,"metadata":{"order":%q}}`, id, status, ref)
	})
}

// askSite is a site with a webhook that has the id of a payment.
func askSite(url, options string) func(shop, more string) string {
	return func(shop, more string) string {
		return "route {\nstockgate_resolve /hook {\nask " + url + " {\n" + options + "\n}\n" + `
		ref {json.metadata.order}
		@paid {
			json status paid
		}
		@dead {
			json status expired
		}
		confirm @paid
		release @dead
		` + more + "\n}\nreverse_proxy " + shop + "\n}"
	}
}

func openAsking(t *testing.T) (*hooks, *provider) {
	t.Helper()
	p := openProvider(t)
	return openHooks(t, askSite(p.URL+"/v2/payments/{id}", "id {form.id}\nbearer "+apiKey+"\nca "+p.ca)), p
}

func (h *hooks) names(id string) sitetest.Answer {
	return h.Send(from("/hook", "id="+id, "Content-Type", "application/x-www-form-urlencoded"))
}

// The provider's answer settles the hold, whatever the webhook says, and the shop gets the webhook.
func TestProviderIsAsked(t *testing.T) {
	h, p := openAsking(t)
	h.hold("r1", "SO-1", "b", "plain", 1, record.ModeBackend, time.Hour)
	h.hold("r2", "SO-2", "b", "plain", 1, record.ModeBackend, time.Hour)
	p.has(t, "tr_7", "open", "SO-1")
	h.counts(func() {
		if a := h.Send(from("/hook", "id=tr_7&status=paid&metadata[order]=SO-1")); a.Status != 200 || h.took() != 1 {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	}, "other 1")
	h.states("held", "r1")
	p.has(t, "tr_7", "paid", "SO-1")
	h.counts(func() {
		if a := h.names("tr_7"); a.Status != 200 || a.Body != "[accepted]" || h.shop.Got[0].Body != "id=tr_7" {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	}, "confirmed 1")
	h.took()
	h.counts(func() { h.names("tr_7") }, "settled 1")
	p.has(t, "tr-8_A", "expired", "SO-2")
	h.counts(func() { h.names("tr-8_A") }, "released 1")
	h.states("confirmed released", "r1", "r2")
	if h.took() != 2 || p.asked.Load() != 4 {
		t.Errorf("it was asked %d times", p.asked.Load())
	}
}

// An id that could lead to another URL, and a webhook without one id alone, ask nothing.
func TestIDsThatAreNotAsked(t *testing.T) {
	h, p := openAsking(t)
	for _, body := range []string{"", "id=", "id=..", "id=tr_1/refunds", "id=tr_1%2frefunds", "id=tr_1?x", "id=tr%201", "id=%C3%A9", "id=tr_1&id=tr_2", "other=tr_1", "id=" + strings.Repeat("a", 129), "id=tr_1;x", "{}"} {
		if a := h.Send(from("/hook", body)); a.Status != 400 || !strings.Contains(a.Body, "no id of a payment") {
			t.Errorf("%s: %d %s", body, a.Status, a.Body)
		}
	}
	if p.asked.Load() != 0 || h.took() != 0 {
		t.Errorf("it was asked %d times", p.asked.Load())
	}
	for id, target := range map[string]string{"{json.data.id}": "/hook", "{query.data.id}": "/hook?data.id=tr_9"} {
		p.has(t, "tr_9", "open", "")
		if err := h.LoadCaddyfile(askSite(p.URL+"/v2/payments/{id}", "id "+id+"\nbearer "+apiKey+"\nca "+p.ca)(h.shop.Addr(), "")); err != nil {
			t.Fatal(err)
		}
		if a := h.Send(from(target, `{"data":{"id":"tr_9"}}`)); a.Status != 200 {
			t.Errorf("%s: %d %s", id, a.Status, a.Body)
		}
	}
}

// A provider that gives no answer about the payment settles nothing, and its webhook comes again.
func TestProviderThatDoesNotAnswer(t *testing.T) {
	h, p := openAsking(t)
	h.hold("r1", "SO-1", "b", "plain", 1, record.ModeBackend, time.Hour)
	paid := `{"status":"paid","metadata":{"order":"SO-1"}}`
	moved := openProvider(t)
	for name, answer := range map[string]http.HandlerFunc{
		"an error":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500); fmt.Fprint(w, paid) },
		"a limit":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) },
		"a key":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) },
		"created":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(201); fmt.Fprint(w, paid) },
		"a redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, moved.URL, http.StatusFound) },
		"no JSON":    func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"nothing":    func(http.ResponseWriter, *http.Request) {},
		"cut":        func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"too much": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, paid[:len(paid)-1]+`,"x":"`+strings.Repeat("x", 64<<10)+`"}`)
		},
	} {
		p.says(answer)
		h.counts(func() {
			if a := h.names("tr_1"); a.Status != 503 || a.Header.Get("Retry-After") == "" || !strings.Contains(a.Body, "the provider did not answer about this payment") {
				t.Errorf("%s: %d %s", name, a.Status, a.Body)
			}
		}, "provider_failed 1")
	}
	if h.took() != 0 || moved.asked.Load() != 0 {
		t.Error("the shop got one, or a redirect was followed")
	}
	h.states("held", "r1")
	if n := len(h.Logged("a payment provider refuses the key with which it is asked about a webhook: see `bearer` of ask: the provider delivers the webhook again")); n != 1 {
		t.Errorf("that the key is refused is logged %d times", n)
	}
	let := make(chan struct{})
	p.says(func(http.ResponseWriter, *http.Request) { <-let })
	options := "id {form.id}\nbearer " + apiKey + "\n"
	load := func(url, options string) {
		t.Helper()
		if err := h.LoadCaddyfile(askSite(url+"/v2/payments/{id}", options)(h.shop.Addr(), "")); err != nil {
			t.Fatal(err)
		}
	}
	load(p.URL, options+"timeout 100ms\nca "+p.ca)
	if a := h.names("tr_1"); a.Status != 503 {
		t.Errorf("too slow: %d %s", a.Status, a.Body)
	}
	close(let)
	// a certificate that is not trusted, or of another name
	p.has(t, "tr_1", "paid", "SO-1")
	before := p.asked.Load()
	for url, options := range map[string]string{p.URL: options, strings.Replace(p.URL, "127.0.0.1", "localhost", 1): options + "ca " + p.ca} {
		load(url, options)
		if a := h.names("tr_1"); a.Status != 503 {
			t.Errorf("%s: %d %s", url, a.Status, a.Body)
		}
	}
	if h.took() != 0 || p.asked.Load() != before {
		t.Error("it was asked, though it is not known who answers")
	}
	h.states("held", "r1")
	load(p.URL, options+"ca "+p.ca)
	h.names("tr_1")
	h.states("confirmed", "r1")
}

// Ids that the provider does not know go nowhere, and a client that names many is not heard.
func TestForgedIDs(t *testing.T) {
	p := openProvider(t)
	h := openHooks(t, askSite(p.URL+"/v2/payments/{id}", "id {form.id}\nbearer "+apiKey+"\nca "+p.ca))
	unknown, limited := 0, 0
	for i := range 40 {
		switch a := h.names(fmt.Sprint("tr_", i)); {
		case a.Status == 404 && strings.Contains(a.Body, "the provider does not know this payment"):
			unknown++
		case a.Status == 429 && strings.Contains(a.Body, "too many webhooks of this address were not accepted"):
			limited++
		default:
			t.Errorf("%d %s", a.Status, a.Body)
		}
	}
	if n := int(p.asked.Load()); limited == 0 || n != unknown || h.took() != 0 {
		t.Errorf("%d unknown, %d limited, it was asked %d times", unknown, limited, n)
	}
}

// Configurations that would believe a client, or tell the key to one, are refused.
func TestAskConfigurations(t *testing.T) {
	h, p := openAsking(t)
	const url = "https://api.example.com/v2/payments/{id}"
	const options = "id {form.id}\nbearer {env.HOME}"
	for _, c := range []struct{ url, options, more, says string }{
		{"http://api.example.com/{id}", options, "", "the URL of ask must be https"},
		{"https://api.example.com/payments", options, "", "the URL of ask has no {id}"},
		{"https://{id}.example.com/", options, "", "outside of its path and query"},
		{"https://u:p@api.example.com/{id}", options, "", "has a user in it"},
		{url, "id {header.X-Id}\nbearer {env.HOME}", "", "write {form.NAME}, {json.PATH} or {query.NAME}"},
		{url, "id {json.a..b}\nbearer {env.HOME}", "", "is no path"},
		{url, "id {form.id}", "", "ask needs id and bearer"},
		{url, "id {form.id}\nbearer {env.NO_SUCH_KEY}", "", "bearer is empty"},
		{url, "id {form.id}\nbearer \"Bearer x\"", "", "it is the key alone"},
		{url, options + "\ntimeout 31s", "", "it must be at most 30s"},
		{url, options + "\nca /no/such/file", "", "ca: open /no/such/file"},
		{url, options + "\nca " + h.File("empty.pem", ""), "", "has no certificate in PEM"},
		{url, options, "verify gocardless a_long_secret", "leave out ask"},
		{url, options, "ask " + url, "given twice"},
	} {
		if err := h.LoadCaddyfile(askSite(c.url, c.options)(h.shop.Addr(), c.more)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	// a webhook that is signed may be asked about too
	site := askSite(p.URL+"/v2/payments/{id}", "id {json.id}\nbearer "+apiKey+"\nca "+p.ca)
	if err := h.LoadCaddyfile(site(h.shop.Addr(), "verify stripe "+hookSecret)); err != nil {
		t.Fatal(err)
	}
	p.has(t, "tr_1", "open", "")
	if a := h.Send(from("/hook", `{"id":"tr_1"}`)); a.Status != 400 || p.asked.Load() != 0 {
		t.Errorf("without its signature: %d %s", a.Status, a.Body)
	}
	h.deliver(`{"id":"tr_1"}`, 200, "[accepted]")
}

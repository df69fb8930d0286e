package resolve_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/resolve"
	"github.com/stockgate/stockgate/internal/store/record"
)

// PayPal's webhooks settle holds, and its certificate is fetched once, from its host and by its name.
func TestPayPalSettles(t *testing.T) {
	h, p := openPaid(t)
	h.hold("r1", "SO-1", "b", "plain", 1, record.ModeBackend, time.Hour)
	h.hold("r2", "SO-2", "b", "plain", 1, record.ModeBackend, time.Hour)
	h.counts(func() {
		if a := h.Send(p.signs(t, captured("SO-1"))); a.Status != 200 || a.Body != "[accepted]" {
			t.Error(status(a))
		}
	}, "confirmed 1")
	h.counts(func() {
		h.Send(p.signs(t, `{"event_type":"PAYMENT.CAPTURE.DECLINED","resource":{"custom_id":"SO-2"}}`))
	}, "released 1")
	h.states("confirmed released", "r1", "r2")
	if h.took() != 2 || p.asked.Load() != 1 || <-p.dialed != payPalHost+":443" {
		t.Errorf("it was asked %d times", p.asked.Load())
	}
	// what is signed is all of the head and the body
	for name, r := range map[string]*http.Request{
		"body": p.signs(t, captured("SO-1"), "Paypal-Transmission-Sig", p.signs(t, "{}").Header.Get("Paypal-Transmission-Sig")),
		"key":  (&payPal{key: newKey(t, 2048)}).signs(t, captured("SO-1")),
	} {
		h.counts(func() {
			if a := h.Send(r); a.Status != 401 || !strings.Contains(a.Body, "does not fit") {
				t.Errorf("%s: %s", name, status(a))
			}
		}, "unauthorized 1")
	}
	if h.took() != 0 {
		t.Error("the shop got one")
	}
}

// A chain may be in the file or come with the connection, and a retry of days ago is accepted.
func TestPayPalChains(t *testing.T) {
	h, p := openPaid(t)
	between := newAuthority(t, p.root)
	p.serve(inPEM(issue(t, between, p.key, named(payPalName)), between.Certificate))
	old := time.Now().Add(-70 * time.Hour).UTC().Format("2006-01-02T15:04:05.000Z")
	if a := h.Send(p.signs(t, captured("SO-1"), "Paypal-Transmission-Time", old)); a.Status != 200 {
		t.Error(status(a))
	}
	old = time.Now().Add(-74 * time.Hour).UTC().Format(time.RFC3339)
	if a := h.Send(p.signs(t, captured("SO-1"), "Paypal-Transmission-Time", old)); a.Status != 401 || !strings.Contains(a.Body, "73h0m0s are allowed") {
		t.Error(status(a))
	}
}

// A certificate that is not PayPal's, or cannot be had, settles nothing; the webhook comes again, and its client is
// not one that is not accepted.
func TestPayPalCertificates(t *testing.T) {
	h, p := openPaid(t)
	h.hold("r1", "SO-1", "b", "plain", 1, record.ModeBackend, time.Hour)
	site := payPalSite("verify paypal " + payPalWebhook + " {\nca " + p.ca + "\n}")
	leaf := issue(t, p.root, p.key, named(payPalName))
	other, elliptical := newAuthority(t, nil), mustEC(t)
	expired, early, authority := named(payPalName), named(payPalName), named(payPalName)
	expired.NotBefore, expired.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
	early.NotBefore, early.NotAfter = time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
	authority.IsCA, authority.BasicConstraintsValid = true, true
	is := func(c *x509.Certificate) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(inPEM(c)) }
	}
	for name, one := range map[string]struct {
		why    string
		answer http.HandlerFunc
	}{
		"expired":      {"is not trusted", is(issue(t, p.root, p.key, expired))},
		"early":        {"is not trusted", is(issue(t, p.root, p.key, early))},
		"the sandbox":  {"is not trusted", is(issue(t, p.root, p.key, named("messageverificationcerts.sandbox.paypal.com")))},
		"a wildcard":   {"is not trusted", is(issue(t, p.root, p.key, named("*.paypal.com")))},
		"other name":   {"is not trusted", is(issue(t, p.root, p.key, named("api.paypal.com")))},
		"other root":   {"is not trusted", is(issue(t, other, p.key, named(payPalName)))},
		"self-signed":  {"is not trusted", is(issue(t, nil, p.key, named(payPalName)))},
		"no way":       {"is not trusted", is(issue(t, newAuthority(t, p.root), p.key, named(payPalName)))},
		"an authority": {"is not trusted", is(issue(t, p.root, p.key, authority))},
		"1024 bits":    {"is not trusted", is(issue(t, p.root, newKey(t, 1024), named(payPalName)))},
		"ECDSA":        {"is not trusted", is(issue(t, p.root, elliptical, named(payPalName)))},
		"no PEM":       {"is not trusted", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }},
		"nothing":      {"is not trusted", func(http.ResponseWriter, *http.Request) {}},
		"text behind":  {"is not trusted", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "%s<html>", inPEM(leaf)) }},
		"a key": {"is not trusted", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(p.key)}))
		}},
		"many": {"is not trusted", func(w http.ResponseWriter, _ *http.Request) {
			for range 9 {
				_, _ = w.Write(inPEM(leaf))
			}
		}},
		"an error": {"cannot be fetched", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500); _, _ = w.Write(inPEM(leaf)) }},
		"created":  {"cannot be fetched", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(201); _, _ = w.Write(inPEM(leaf)) }},
		"a redirect": {"cannot be fetched", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", payPalPath+"0")
			w.WriteHeader(302)
			_, _ = w.Write(inPEM(leaf))
		}},
		"cut": {"cannot be fetched", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
		"64 KiB and a byte": {"is larger than 64 KiB", func(w http.ResponseWriter, _ *http.Request) {
			text := inPEM(leaf)
			_, _ = w.Write(append(text, strings.Repeat("\n", 64<<10+1-len(text))...))
		}},
	} {
		h.reload(t, site)
		p.says(one.answer)
		before := p.asked.Load()
		h.counts(func() {
			if a := h.Send(p.signs(t, captured("SO-1"))); a.Status != 503 || a.Header.Get("Retry-After") == "" || !strings.Contains(a.Body, one.why) {
				t.Errorf("%s: %s", name, status(a))
			}
		}, "provider_failed 1")
		if n := p.asked.Load() - before; n != 1 {
			t.Errorf("%s: it was asked %d times", name, n)
		}
	}
	h.states("held", "r1")
	h.reload(t, site)
	p.says(http.NotFound)
	if a := h.Send(p.signs(t, captured("SO-1"))); a.Status != 401 || !strings.Contains(a.Body, "has no certificate") {
		t.Error(status(a))
	}
	p.says(func(w http.ResponseWriter, _ *http.Request) {
		text := inPEM(leaf)
		_, _ = w.Write(append(text, strings.Repeat("\n", 64<<10-len(text))...))
	})
	if a := h.Send(p.signs(t, captured("SO-1"))); a.Status != 200 || h.took() != 1 {
		t.Errorf("64 KiB: %s", status(a))
	}
	h.states("confirmed", "r1")
}

func mustEC(t *testing.T) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// A certificate comes from PayPal's host alone, at a public address, over a connection that is trusted.
func TestPayPalHosts(t *testing.T) {
	h, p := openPaid(t)
	refused := func(name string) {
		t.Helper()
		before := p.asked.Load()
		if a := h.Send(p.signs(t, captured("SO-1"))); a.Status != 503 || !strings.Contains(a.Body, "cannot be fetched") || p.asked.Load() != before {
			t.Errorf("%s: %s", name, status(a))
		}
	}
	trusting := payPalSite("verify paypal " + payPalWebhook + " {\nca " + p.ca + "\n}")
	h.reload(t, payPalSite("verify paypal "+payPalWebhook))
	refused("the system's roots")
	wrong := openPayPal(t, "api.paypal.com.example.com")
	wrong.reach(t)
	h.reload(t, payPalSite("verify paypal "+payPalWebhook+" {\nca "+wrong.ca+"\n}"))
	refused("another name")
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	for name, dial := range map[string]resolve.Dial{
		"no TLS": func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, plain.Listener.Addr().String())
		},
		"a private address": func(ctx context.Context, network, _ string) (net.Conn, error) {
			return resolve.RealDialIssuer(ctx, network, p.address)
		},
	} {
		resolve.DialIssuer(t, dial)
		h.reload(t, trusting)
		refused(name)
	}
	resolve.FetchWithin(t, 100*time.Millisecond)
	p.reach(t)
	h.reload(t, trusting)
	let := make(chan struct{})
	defer close(let)
	p.says(func(http.ResponseWriter, *http.Request) { <-let })
	if a := h.Send(p.signs(t, captured("SO-1"))); a.Status != 503 || !strings.Contains(a.Body, "cannot be fetched") {
		t.Errorf("too slow: %s", status(a))
	}
}

// While an id changes, two are accepted, with one certificate.
func TestPayPalTwoIDs(t *testing.T) {
	h, p := openPaid(t)
	block := " {\nca " + p.ca + "\n}\n"
	h.reload(t, payPalSite("verify paypal 8XL90610J3647323C"+block+"verify paypal "+payPalWebhook+block))
	if a := h.Send(p.signs(t, captured("SO-1"))); a.Status != 200 || p.asked.Load() != 1 {
		t.Errorf("%s, it was asked %d times", status(a), p.asked.Load())
	}
	for verify, says := range map[string]string{
		"verify paypal 8XL90610J3647323C\nverify paypal " + payPalWebhook + block:     "has two ca",
		"verify paypal " + payPalWebhook + " {\nca /nowhere/ca.pem\n}":                "no such file",
		"verify paypal " + payPalWebhook + " 97h":                                     "the tolerance must be 1s to 96h",
		"verify paypal WH-9UG43882HX7271132":                                          "take it from the list of webhooks at PayPal",
		"verify paypal " + payPalWebhook + "\nverify paypal_sandbox " + payPalWebhook: "give each provider",
	} {
		if err := h.LoadCaddyfile(payPalSite(verify)(h.shop.Addr(), "")); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", verify, err)
		}
	}
	stripe := `{"handler":"stockgate_resolve","verify":[{"scheme":"stripe","key":"whsec_1","ca":"/etc/ca.pem"}],"ref":["{json.a}"],"events":{"a":{"json":[{"path":"b"}]}},"rules":[{"outcome":"confirm","when":["@a"]}]}`
	if err := h.LoadGate(stripe); err == nil || !strings.Contains(err.Error(), "whose certificates are fetched") {
		t.Error(err)
	}
}

// The sandbox has a host and a name of its own.
func TestPayPalSandbox(t *testing.T) {
	p := openPayPal(t, "api.sandbox.paypal.com")
	p.reach(t)
	h := openHooks(t, payPalSite("verify paypal_sandbox "+payPalWebhook+" {\nca "+p.ca+"\n}"))
	at := "https://api.sandbox.paypal.com" + payPalPath
	if a := h.Send(p.signs(t, captured("SO-1"), "Paypal-Cert-Url", at)); a.Status != 503 || !strings.Contains(a.Body, "is not trusted") {
		t.Errorf("a live certificate: %s", status(a))
	}
	p.serve(inPEM(issue(t, p.root, p.key, named("messageverificationcerts.sandbox.paypal.com"))))
	if a := h.Send(p.signs(t, captured("SO-1"), "Paypal-Cert-Url", at)); a.Status != 200 {
		t.Error(status(a))
	}
	if a := h.Send(p.signs(t, captured("SO-1"))); a.Status != 400 || p.asked.Load() != 2 {
		t.Errorf("the live host: %s", status(a))
	}
}

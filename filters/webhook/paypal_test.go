package webhook_test

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/filters/webhook"
)

// payPalVector is a webhook that another implementation has signed.
type payPalVector struct {
	Webhook string            `json:"webhook"`
	Key     string            `json:"key"`
	Body    string            `json:"body"`
	SHA512  string            `json:"sha512"` // a signature of the same with SHA-512
	Headers map[string]string `json:"headers"`
}

var payPalNow = time.Date(2026, 9, 21, 22, 3, 0, 0, time.UTC)

func readPayPal(t testing.TB) (v payPalVector, key *rsa.PublicKey) {
	t.Helper()
	text, err := os.ReadFile("testdata/paypal.json")
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode([]byte(v.Key))
	found, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return v, found.(*rsa.PublicKey)
}

// delivery is the vector with other headers.
func (v *payPalVector) delivery(key *rsa.PublicKey, changed map[string]string) *webhook.Delivery {
	all, h := maps.Clone(v.Headers), make(http.Header)
	maps.Copy(all, changed)
	for name, value := range all {
		h.Set(name, value)
	}
	return &webhook.Delivery{Header: h, Body: []byte(v.Body), Certificate: func(string) (*rsa.PublicKey, error) { return key, nil }}
}

func TestPayPal(t *testing.T) {
	v, key := readPayPal(t)
	live, err := webhook.Presets["paypal"].Verifier(v.Webhook, "", 5*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	good := v.delivery(key, nil)
	if err := errors.Join(live.Look(good, payPalNow), live.Verify(good, payPalNow)); err != nil {
		t.Fatal(err)
	}
	const certificates = "https://api.paypal.com/v1/notifications/certs/"
	for _, c := range []struct {
		name, value string
		status      int
		says        string
	}{
		{"Paypal-Transmission-Sig", v.SHA512, 401, "does not fit"},
		{"Paypal-Transmission-Sig", "AAAA", 401, "does not fit"},
		{"Paypal-Transmission-Sig", "%", 400, "no base64"},
		{"Paypal-Transmission-Sig", "", 400, "Paypal-Transmission-Sig is missing"},
		{"Paypal-Transmission-Id", "d938e770-8046-11e6-8103-6b62a8a99ac5", 401, "does not fit"},
		{"Paypal-Transmission-Id", "d938e770|8046", 400, "is no id"},
		{"Paypal-Transmission-Id", "", 400, "is missing"},
		{"Paypal-Transmission-Time", "2026-09-21T22:00:47Z", 401, "does not fit"},
		{"Paypal-Transmission-Time", "2026-09-21T21:57:59Z", 401, "5m1s old"},
		{"Paypal-Transmission-Time", "2026-09-21T22:08:01Z", 401, "5m1s ahead"},
		{"Paypal-Transmission-Time", "1790000000", 400, "is no time"},
		{"Paypal-Transmission-Time", "2026-09-21T22:00:46Z|x", 400, "is no time"},
		{"Paypal-Auth-Algo", "SHA1withRSA", 400, "SHA256withRSA"},
		{"Paypal-Auth-Algo", "SHA512withRSA", 400, "SHA256withRSA"},
		{"Paypal-Cert-Url", "https://api.sandbox.paypal.com/v1/notifications/certs/CERT-1", 400, "no URL of a certificate at api.paypal.com"},
	} {
		m := v.delivery(key, map[string]string{c.name: c.value})
		fault, ok := errors.AsType[*webhook.Fault](live.Verify(m, payPalNow))
		if !ok || fault.Status != c.status || !strings.Contains(fault.Text, c.says) {
			t.Errorf("%s %q: %v", c.name, c.value, fault)
		}
	}
	for _, at := range []string{
		"http://api.paypal.com/v1/notifications/certs/CERT-1", "https://API.paypal.com/v1/notifications/certs/CERT-1", "HTTPS://api.paypal.com/v1/notifications/certs/CERT-1",
		"https://api.paypal.com./v1/notifications/certs/CERT-1", "https://api.paypal.com:443/v1/notifications/certs/CERT-1", "https://api.paypal.com:8443/v1/notifications/certs/CERT-1",
		"https://me@api.paypal.com/v1/notifications/certs/CERT-1", "https://api.paypal.com@evil.example/v1/notifications/certs/CERT-1", "https://api.paypal.com.evil.example/v1/notifications/certs/CERT-1",
		"https://evil.example/https://api.paypal.com/v1/notifications/certs/CERT-1", "https://api-m.paypal.com/v1/notifications/certs/CERT-1", "https://paypal.com/v1/notifications/certs/CERT-1",
		"https://api.paypal.com\\@evil.example/v1/notifications/certs/CERT-1", "https:api.paypal.com/v1/notifications/certs/CERT-1", "//api.paypal.com/v1/notifications/certs/CERT-1",
		certificates, certificates + "CERT-", certificates + "1", certificates + "CERT-1/", certificates + "CERT-1?x=1", certificates + "CERT-1#x", certificates + "CERT-1/../x", certificates + "CERT-%31",
		certificates + "CERT-1\n", certificates + "CERT-é", certificates + "../certs/CERT-1", certificates + "CERT-" + strings.Repeat("a", 101), " " + certificates + "CERT-1",
		"https://api.paypal.com/v1/notifications//certs/CERT-1", "https://api.paypal.com/v1/notifications/webhooks/CERT-1", "https://api.paypal.com",
	} {
		m := v.delivery(key, map[string]string{"Paypal-Cert-Url": at})
		if fault, ok := errors.AsType[*webhook.Fault](live.Look(m, payPalNow)); !ok || fault.Status != 400 || !strings.Contains(fault.Text, "no URL of a certificate") {
			t.Errorf("%s: %v", at, fault)
		}
	}
}

// An error of Certificate is passed on, and nothing is asked where the head tells enough.
func TestPayPalCertificateThatIsNotThere(t *testing.T) {
	v, _ := readPayPal(t)
	live, err := webhook.PayPal(webhook.PayPalLive, v.Webhook, 0)
	if err != nil {
		t.Fatal(err)
	}
	away, asked := errors.New("away"), ""
	m := v.delivery(nil, nil)
	m.Certificate = func(url string) (*rsa.PublicKey, error) { asked = url; return nil, away }
	if err := live.Verify(m, payPalNow); !errors.Is(err, away) || asked != v.Headers["Paypal-Cert-Url"] {
		t.Errorf("%v, it asked %q", err, asked)
	}
	asked = ""
	if live.Verify(m, payPalNow.Add(webhook.PayPalTolerance)) == nil || live.Look(m, payPalNow) != nil || asked != "" {
		t.Errorf("it asked %q", asked)
	}
}

// The sandbox has another host, and the id of a webhook is part of what is signed.
func TestPayPalSandboxAndIDs(t *testing.T) {
	v, key := readPayPal(t)
	sandbox, err := webhook.Presets["paypal_sandbox"].Verifier(v.Webhook, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	if sandbox.Verify(v.delivery(key, nil), payPalNow) == nil {
		t.Error("the sandbox accepts what is live")
	}
	m := v.delivery(key, map[string]string{"Paypal-Cert-Url": "https://api.sandbox.paypal.com/v1/notifications/certs/CERT-360caa42"})
	if err := sandbox.Verify(m, payPalNow); err != nil {
		t.Error(err)
	}
	other, err := webhook.PayPal(webhook.PayPalLive, "8XL90610J3647323C", 0)
	if err != nil || other.Verify(v.delivery(key, nil), payPalNow) == nil {
		t.Errorf("another webhook's: %v", err)
	}
	for id, tolerance := range map[string]time.Duration{
		"": 0, "WH-9UG43882HX7271132-6E0871324L7949614": 0, "9XL|0": 0, strings.Repeat("A", 51): 0, "9XL90610J3647323C": time.Millisecond, "9XL90610J3647323D": 97 * time.Hour, "A": -time.Second,
	} {
		if _, err := webhook.PayPal(webhook.PayPalLive, id, tolerance); err == nil {
			t.Errorf("%q %v is accepted", id, tolerance)
		}
	}
}

// A URL that is asked is one of PayPal's, however it is read.
func FuzzPayPalURL(f *testing.F) {
	v, key := readPayPal(f)
	live, err := webhook.PayPal(webhook.PayPalLive, v.Webhook, 0)
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{v.Headers["Paypal-Cert-Url"], "https://api.paypal.com@x/v1/notifications/certs/CERT-1", "https://api.paypal.com/v1/notifications/certs/CERT-1?x#y"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m := v.delivery(key, nil)
		m.Header["Paypal-Cert-Url"] = []string{text}
		if live.Look(m, payPalNow) != nil {
			return
		}
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "https" || u.Host != "api.paypal.com" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.RawPath != "" ||
			!strings.HasPrefix(u.Path, "/v1/notifications/certs/CERT-") || strings.Count(u.Path, "/") != 4 || u.String() != text {
			t.Errorf("%q is asked: %v", text, err)
		}
	})
}

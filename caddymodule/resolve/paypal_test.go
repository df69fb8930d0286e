package resolve_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"hash/crc32"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/caddymodule/resolve"
)

const (
	payPalWebhook = "9XL90610J3647323C"
	payPalHost    = "api.paypal.com"
	payPalName    = "messageverificationcerts.paypal.com"
	payPalPath    = "/v1/notifications/certs/CERT-360caa42-fca2a594-a5cafa77"
)

// authority issues certificates.
type authority struct {
	*x509.Certificate
	key *rsa.PrivateKey
}

func newAuthority(t *testing.T, by *authority) *authority {
	a := &authority{key: newKey(t, 2048)}
	a.Certificate = issue(t, by, a.key, x509.Certificate{
		Subject: pkix.Name{CommonName: "an authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	return a
}

// made are keys of RSA, which take long to make: each test has each of them once.
var made = struct {
	test string
	bits map[int][]*rsa.PrivateKey
	used map[int]int
}{bits: make(map[int][]*rsa.PrivateKey)}

// newKey is a key that the test does not have yet.
func newKey(t *testing.T, bits int) *rsa.PrivateKey {
	t.Helper()
	if test, _, _ := strings.Cut(t.Name(), "/"); test != made.test {
		made.test, made.used = test, make(map[int]int)
	}
	n := made.used[bits]
	made.used[bits]++
	if n == len(made.bits[bits]) {
		key, err := rsa.GenerateKey(rand.Reader, bits)
		if err != nil {
			t.Fatal(err)
		}
		made.bits[bits] = append(made.bits[bits], key)
	}
	return made.bits[bits][n]
}

// issue makes a certificate; by nil: by itself.
func issue(t *testing.T, by *authority, key crypto.Signer, c x509.Certificate) *x509.Certificate {
	t.Helper()
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	if c.NotAfter.IsZero() {
		c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	}
	parent, signer := &c, key
	if by != nil {
		parent, signer = by.Certificate, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, &c, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func named(name string) x509.Certificate {
	return x509.Certificate{Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}}
}

func inPEM(certificates ...*x509.Certificate) []byte {
	var text []byte
	for _, c := range certificates {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return text
}

// payPal is PayPal's host of certificates, over https, and its key.
type payPal struct {
	root    *authority
	ca      string // the file with root
	key     *rsa.PrivateKey
	address string
	dialed  chan string
	asked   atomic.Int32
	answer  atomic.Pointer[http.HandlerFunc]
}

func openPayPal(t *testing.T, host string) *payPal {
	t.Helper()
	p := &payPal{root: newAuthority(t, nil), key: newKey(t, 2048), dialed: make(chan string, 256)}
	p.ca = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(p.ca, inPEM(p.root.Certificate), 0o600); err != nil {
		t.Fatal(err)
	}
	served := newKey(t, 2048)
	c := issue(t, p.root, served, named(host))
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		(*p.answer.Load())(w, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // a client that does not trust it is expected
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{c.Raw}, PrivateKey: served}}}
	s.StartTLS()
	t.Cleanup(s.Close)
	p.address = s.Listener.Addr().String()
	p.serve(inPEM(issue(t, p.root, p.key, named(payPalName))))
	return p
}

func (p *payPal) says(answer http.HandlerFunc) { p.answer.Store(&answer) }

// serve makes it have one certificate.
func (p *payPal) serve(certificate []byte) {
	p.says(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(certificate) })
}

// reach makes the edge reach it by its name, as it would reach a public address.
func (p *payPal) reach(t *testing.T) {
	resolve.DialIssuer(t, func(ctx context.Context, network, address string) (net.Conn, error) {
		p.dialed <- address
		return new(net.Dialer).DialContext(ctx, network, p.address)
	})
}

// signs returns a webhook, with other headers where some are given.
func (p *payPal) signs(t *testing.T, body string, header ...string) *http.Request {
	t.Helper()
	r := from("/hook", body, "Paypal-Transmission-Id", "d938e770-8046-11e6-8103-6b62a8a99ac4", "Paypal-Transmission-Time", time.Now().UTC().Format(time.RFC3339),
		"Paypal-Cert-Url", "https://"+payPalHost+payPalPath, "Paypal-Auth-Algo", "SHA256withRSA")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	if r.Header.Get("Paypal-Transmission-Sig") == "" {
		text := fmt.Sprintf("%s|%s|%s|%d", r.Header.Get("Paypal-Transmission-Id"), r.Header.Get("Paypal-Transmission-Time"), payPalWebhook, crc32.ChecksumIEEE([]byte(body)))
		digest := sha256.Sum256([]byte(text))
		signature, err := rsa.SignPKCS1v15(rand.Reader, p.key, crypto.SHA256, digest[:])
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Paypal-Transmission-Sig", base64.StdEncoding.EncodeToString(signature))
	}
	return r
}

func payPalSite(verify string) func(shop, more string) string {
	return func(shop, more string) string {
		return "route {\nstockgate_resolve /hook {\n" + verify + `
		ref {json.resource.custom_id}
		@paid {
			json event_type PAYMENT.CAPTURE.COMPLETED
			json resource.status COMPLETED
		}
		@dead {
			json event_type PAYMENT.CAPTURE.DECLINED
		}
		confirm @paid
		release @dead
		` + more + "\n}\nreverse_proxy " + shop + "\n}"
	}
}

// openPaid is a site with PayPal's webhook.
func openPaid(t *testing.T) (*hooks, *payPal) {
	t.Helper()
	p := openPayPal(t, payPalHost)
	p.reach(t)
	return openHooks(t, payPalSite("verify paypal "+payPalWebhook+" {\nca "+p.ca+"\n}")), p
}

func captured(ref string) string {
	return `{"event_type":"PAYMENT.CAPTURE.COMPLETED","resource":{"status":"COMPLETED","custom_id":"` + ref + `"}}`
}

// reload loads the site again, which forgets all certificates.
func (h *hooks) reload(t *testing.T, site func(shop, more string) string) {
	t.Helper()
	if err := h.LoadCaddyfile(site(h.shop.Addr(), "")); err != nil {
		t.Fatal(err)
	}
}

func status(a sitetest.Answer) string { return fmt.Sprintf("%d %s", a.Status, a.Body) }

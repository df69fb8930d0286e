package caddymodule_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/stockgate/stockgate/internal/test/sitetest"
)

// openCaddyfile starts a Caddy with a real Redis and the directives of one site,
// applies SaleFile and opens the sale.
func openCaddyfile(t *testing.T, directives string) *site {
	t.Helper()
	_, app := sitetest.Redis(t)
	s := openSite(t, app)
	s.OpenSale()
	s.Redis = app["redis"].(map[string]any)["addresses"].([]string)[0]
	if err := s.loadCaddyfile(directives); err != nil {
		t.Fatal(err)
	}
	s.refresh()
	return s
}

// loadCaddyfile gives the Caddy the directives of one site.
func (s *site) loadCaddyfile(directives string) error {
	s.t.Helper()
	return s.loadSites("", directives)
}

// loadSites gives the Caddy blocks of their own, and the directives of sites: the first
// at any host, the second at the host elsewhere.
func (s *site) loadSites(blocks string, directives ...string) error {
	s.t.Helper()
	s.Loads++
	sites := blocks
	for i, host := range []string{"", "elsewhere"}[:len(directives)] {
		sites += fmt.Sprintf("http://%s {\n\tbind unix/%s\n\t%s\n}\n", host, s.Socket("http"), directives[i])
	}
	text := fmt.Sprintf(`{
	admin %s
	persist_config off
	auto_https off
	storage file_system %s
	log {
		output file %s
	}
	stockgate {
		redis %s {
			timeout 20s
		}
		%s
	}
}
%s`, s.AdminAddress(), s.Path("storage"), s.Path("log"), s.Redis, s.options, sites)
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
	if err == nil {
		err = caddy.Load(config, true)
	}
	if err != nil {
		s.Loads-- // the one before goes on
	}
	return err
}

// loadGate gives the Caddy one handler in JSON.
func (s *site) loadGate(handler string) error {
	s.t.Helper()
	s.Loads++
	config := fmt.Sprintf(`{"admin":{"listen":%q,"config":{"persist":false}},"storage":{"module":"file_system","root":%q},
		"apps":{"stockgate":{"redis":{"addresses":[%q],"timeout":"1m"}},"http":{"servers":{"site":{"listen":[%q],"automatic_https":{"disable":true},
		"routes":[{"handle":[%s]}]}}}}}`, s.AdminAddress(), s.Path("storage"), s.Redis, "unix/"+s.Socket("http"), handler)
	err := caddy.Load([]byte(config), true)
	if err != nil {
		s.Loads-- // the one before goes on
	}
	return err
}

// refresh makes the edge look for the sale, which it would do by itself soon.
func (s *site) refresh() {
	s.t.Helper()
	do[any](s, "POST", "/stockgate/sales/double11/open", "")
}

// order is a request for one unit of plain, with these headers.
func order(headers ...string) *http.Request {
	r, err := http.NewRequest("POST", "http://127.0.0.1/api/order", strings.NewReader(`{"sku":"plain"}`))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

// withBody gives a request another body.
func withBody(r *http.Request, body string) *http.Request {
	r.Body, r.ContentLength, r.GetBody = io.NopCloser(strings.NewReader(body)), int64(len(body)), nil
	return r
}

// send sends a request to the site.
func (s *site) send(r *http.Request) sitetest.Answer {
	s.t.Helper()
	return s.sendBy(s.client(), r)
}

// sendBy sends a request by a client, which may send others on the same connection.
func (s *site) sendBy(c *http.Client, r *http.Request) sitetest.Answer {
	s.t.Helper()
	resp, err := c.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return sitetest.Answer{Status: resp.StatusCode, Header: resp.Header, Body: string(raw)}
}

func (s *site) client() *http.Client {
	socket := s.Socket("http")
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{CheckRedirect: stay, Transport: &http.Transport{
		DisableKeepAlives:     true,
		ExpectContinueTimeout: time.Minute, // of a request with Expect
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
}

// backend is a server that notes what it gets.
type backend struct {
	*httptest.Server
	mu  sync.Mutex
	got []seen
}

type seen struct {
	method, uri, body string
	header            http.Header
}

func newBackend(t *testing.T, answer http.HandlerFunc) *backend {
	b := new(backend)
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		b.mu.Lock()
		b.got = append(b.got, seen{r.Method, r.RequestURI, string(body), r.Header.Clone()})
		b.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer(w, r)
	}))
	t.Cleanup(b.Close)
	return b
}

func created(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }

func (b *backend) addr() string { return b.Listener.Addr().String() }

// take returns what came since the last call.
func (b *backend) take() []seen {
	b.mu.Lock()
	defer b.mu.Unlock()
	got := b.got
	b.got = nil
	return got
}

// cell returns the stock of a cell of the site's only sale.
func (s *site) cell(sku string) string {
	s.t.Helper()
	return do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", "").Cell(sku, "")
}

// claimsOf reads the claims of a reservation token, unverified.
func claimsOf(t *testing.T, token string) (claims struct{ Sub, Sale string }) {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("no token: %q", token)
	}
	raw, err := b64.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &claims); err != nil {
		t.Fatal(err)
	}
	return claims
}

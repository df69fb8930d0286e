package sitetest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
)

// AnswerTo sends a request verbatim, with \n for its line ends, and reads one answer.
func (s *Site) AnswerTo(request string) Answer {
	s.T.Helper()
	conn, err := net.Dial("unix", s.Socket("http"))
	if err != nil {
		s.T.Fatal(err)
	}
	defer conn.Close()
	head, body, _ := strings.Cut(request, "\n\n")
	if _, err := io.WriteString(conn, strings.ReplaceAll(head, "\n", "\r\n")+"\r\n\r\n"+body); err != nil {
		s.T.Fatal(err)
	}
	method, _, _ := strings.Cut(request, " ")
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		s.T.Fatalf("%q: %v", request, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.T.Fatal(err)
	}
	return Answer{Status: resp.StatusCode, Header: resp.Header, Body: string(text)}
}

// OpenCaddyfile starts a Caddy with a real Redis and the directives of one site,
// applies SaleFile and opens the sale.
func OpenCaddyfile(t *testing.T, directives string) *Site {
	t.Helper()
	_, app := Redis(t)
	s := Open(t, app)
	s.OpenSale()
	s.Redis = app["redis"].(map[string]any)["addresses"].([]string)[0]
	if err := s.LoadCaddyfile(directives); err != nil {
		t.Fatal(err)
	}
	s.Refresh()
	return s
}

// LoadCaddyfile gives the Caddy the directives of one site.
func (s *Site) LoadCaddyfile(directives string) error {
	s.T.Helper()
	return s.LoadSites("", directives)
}

// LoadSites gives the Caddy blocks of their own, and the directives of sites: the first
// at any host, the second at the host elsewhere.
func (s *Site) LoadSites(blocks string, directives ...string) error {
	s.T.Helper()
	s.Loads++
	sites := blocks
	for i, host := range []string{"", "elsewhere"}[:len(directives)] {
		sites += fmt.Sprintf("http://%s {\n\tbind unix/%s\n\t%s\n}\n", host, s.Socket("http"), directives[i])
	}
	text := s.caddyfile("off", s.Options, "", sites)
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
	if err == nil {
		err = caddy.Load(config, true)
	}
	if err != nil {
		s.Loads-- // the one before goes on
	}
	return err
}

// caddyfile is a configuration with these options of automatic HTTPS, of the app and of Caddy, and these sites.
func (s *Site) caddyfile(https, app, global, sites string) string {
	return fmt.Sprintf(`{
	admin %s
	persist_config off
	auto_https %s
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
	%s
}
%s`, s.AdminAddress(), https, s.Path("storage"), s.Path("log"), s.Redis, app, global, sites)
}

// LoadGate gives the Caddy one handler in JSON.
func (s *Site) LoadGate(handler string) error {
	s.T.Helper()
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

// Refresh makes the edge look for the sale, which it would do by itself soon.
func (s *Site) Refresh() {
	s.T.Helper()
	Do[any](s, "POST", "/stockgate/sales/double11/open", "")
}

// NewOrder is a request for one unit of plain, with these headers.
func NewOrder(headers ...string) *http.Request {
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

// WithBody gives a request another body.
func WithBody(r *http.Request, body string) *http.Request {
	r.Body, r.ContentLength, r.GetBody = io.NopCloser(strings.NewReader(body)), int64(len(body)), nil
	return r
}

// Send sends a request to the site.
func (s *Site) Send(r *http.Request) Answer {
	s.T.Helper()
	return s.SendBy(s.Client(), r)
}

// SendBy sends a request by a client, which may send others on the same connection.
func (s *Site) SendBy(c *http.Client, r *http.Request) Answer {
	s.T.Helper()
	resp, err := c.Do(r)
	if err != nil {
		s.T.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		s.T.Fatal(err)
	}
	return Answer{Status: resp.StatusCode, Header: resp.Header, Body: string(raw)}
}

// Client sends each request on a connection of its own, and follows no redirect.
func (s *Site) Client() *http.Client {
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

// StockOf returns the stock of a cell of the site's only sale.
func (s *Site) StockOf(sku string) string {
	s.T.Helper()
	return Do[SaleStock](s, "GET", "/stockgate/sales/double11", "").Cell(sku, "")
}

// ClaimsOf reads the claims of a reservation token, unverified.
func ClaimsOf(t *testing.T, token string) (claims struct{ Sub, Sale string }) {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("no token: %q", token)
	}
	raw, err := B64.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &claims); err != nil {
		t.Fatal(err)
	}
	return claims
}

// OrderMatcher is the matcher @order: POST /api/order.
const OrderMatcher = "@order {\n method POST\n path /api/order\n }\n"

// BeginOrder sends a request, and returns when the shop works on it.
func (s *Site) BeginOrder(r *http.Request, working <-chan string) chan Answer {
	s.T.Helper()
	done := make(chan Answer, 1)
	go func() { done <- s.Send(r) }()
	select {
	case <-working:
	case a := <-done:
		s.T.Fatalf("it did not come to the shop: %d %s", a.Status, a.Body)
	}
	return done
}

// TryAt runs `caddy stockgate try` with a saved request.
func (s *Site) TryAt(request string, args ...string) Ran {
	s.T.Helper()
	return Run(s.T, request, append([]string{"try", "--address", s.AdminAddress()}, args...)...)
}

// SavedOrder is an order as `caddy stockgate try` reads it.
const SavedOrder = `POST /api/order HTTP/1.1
Host: shop.example.com
Content-Type: application/json
X-User-Id: u42

{"sku":"two","quantity":2,"region":"beijing","phone":"138 0000","note":"é"}
`

package caddymodule_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/internal/redistest"
	"github.com/stockgate/stockgate/reservation"
	"github.com/stockgate/stockgate/sale"
)

// patience bounds what should come soon: generous, because the machine may be busy.
const patience = 2 * time.Minute

// site is a running Caddy with a stockgate app. Its admin endpoint and its server
// listen on sockets, so that no other test can be in the way.
type site struct {
	t         *testing.T
	dir       string
	gate      map[string]any // before /order; nil: none
	shop      string         // what /order leads to
	closeShop func()
	gates     []any  // before the shop of static answers, which answers 418
	redis     string // its address, where the site is of a Caddyfile
	loads     int    // every configuration has sockets of its own: the servers of the last one may still accept
}

// openSite starts a Caddy with that stockgate app; nil: without one.
func openSite(t *testing.T, app map[string]any) *site {
	t.Helper()
	dir, err := os.MkdirTemp("", "site") // t.TempDir is too long a name for a socket
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, dir: dir}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
		os.RemoveAll(dir)
	})
	s.load(app)
	return s
}

// load gives the Caddy a configuration.
func (s *site) load(app map[string]any) {
	s.t.Helper()
	if err := s.tryLoad(app); err != nil {
		s.t.Fatal(err)
	}
}

// tryLoad is load that may fail.
func (s *site) tryLoad(app map[string]any) error {
	s.t.Helper()
	s.loads++
	return caddy.Load(s.config(app), true)
}

// config is the site's configuration with that stockgate app.
func (s *site) config(app map[string]any) []byte {
	s.t.Helper()
	status := []any{}
	apps := map[string]any{}
	if app != nil {
		status = append(status, map[string]any{"handler": "stockgate_status"})
		apps["stockgate"] = app
	}
	status = append(status, s.gates...)
	order := []any{}
	if s.gate != nil && app != nil {
		order = append(order, s.gate, map[string]any{"handler": "reverse_proxy", "upstreams": []any{map[string]any{"dial": s.shop}}})
	}
	apps["http"] = map[string]any{
		"servers": map[string]any{"site": map[string]any{
			"listen":               []string{"unix/" + s.socket("http")},
			"automatic_https":      map[string]any{"disable": true},
			"trusted_proxies_unix": true,
			"routes": []any{
				map[string]any{"match": []any{map[string]any{"path": []string{"/metrics"}}}, "handle": []any{map[string]any{"handler": "metrics"}}},
				map[string]any{"handle": status},
				map[string]any{"match": []any{map[string]any{"path": []string{"/order"}}}, "handle": order},
				map[string]any{"handle": []any{map[string]any{"handler": "static_response", "status_code": 418}}},
			},
		}},
	}
	config, err := json.Marshal(map[string]any{
		"admin":   map[string]any{"listen": s.adminAddress(), "config": map[string]any{"persist": false}},
		"logging": map[string]any{"logs": map[string]any{"default": map[string]any{"level": "INFO", "writer": map[string]any{"output": "file", "filename": s.path("log")}}}},
		"storage": map[string]any{"module": "file_system", "root": s.path("storage")},
		"apps":    apps,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return config
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

func (s *site) socket(server string) string { return s.path(fmt.Sprint(server, s.loads)) }

func (s *site) adminAddress() string { return "unix/" + s.socket("admin") }

// answer is what a server answered.
type answer struct {
	status int
	header http.Header
	body   string
}

// admin asks the admin endpoint.
func (s *site) admin(method, path, body string) answer {
	s.t.Helper()
	return s.ask("admin", method, path, body)
}

// get asks the site.
func (s *site) get(path string) answer {
	s.t.Helper()
	return s.ask("http", http.MethodGet, path, "")
}

func (s *site) ask(server, method, path, body string) answer {
	s.t.Helper()
	return s.askWith(server, method, path, body, nil)
}

// askWith asks with these headers.
func (s *site) askWith(server, method, path, body string, header map[string]string) answer {
	s.t.Helper()
	req, err := http.NewRequest(method, "http://127.0.0.1"+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Stockgate-By", "ann\tof\x80 accounts")
	for name, value := range header {
		req.Header.Set(name, value)
	}
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", s.socket(server))
		},
	}}
	resp, err := client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(raw)}
}

// do asks the admin endpoint for what must succeed, and reads the answer into T.
func do[T any](s *site, method, path, body string) T {
	s.t.Helper()
	a := s.admin(method, path, body)
	if a.status != http.StatusOK {
		s.t.Fatalf("%s %s: %d %s", method, path, a.status, a.body)
	}
	var v T
	dec := json.NewDecoder(strings.NewReader(a.body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		s.t.Fatalf("%s %s: %v in %s", method, path, err, a.body)
	}
	return v
}

// logged returns the fields of the log entries with a message.
func (s *site) logged(message string) []map[string]any {
	s.t.Helper()
	raw, err := os.ReadFile(s.path("log"))
	if err != nil {
		s.t.Fatal(err)
	}
	var found []map[string]any
	for line := range bytes.Lines(raw) {
		var entry map[string]any
		if err := json.Unmarshal(line, &entry); err != nil {
			s.t.Fatalf("%v in %s", err, line)
		}
		if entry["msg"] == message {
			found = append(found, entry)
		}
	}
	return found
}

// realRedis starts a redis-server, and gives an app that uses it and has time enough.
func realRedis(t *testing.T) (*redistest.Server, map[string]any) {
	t.Helper()
	server := redistest.Start(t)
	return server, map[string]any{"redis": map[string]any{"addresses": []string{server.Addr()}, "timeout": "1m"}}
}

// saleFile has items for most of what can happen to one.
const saleFile = `
id: double11
starts_at: 2020-11-11T00:00:00+08:00
ends_at: 2090-11-12T00:00:00+08:00
items:
  - {sku: plain, stock: 100}
  - {sku: few, stock: 3}
  - {sku: two, regions: {beijing: 40, shanghai: 60}}
  - {sku: "a/b%c?d#e", stock: 5}
  - {sku: "..", stock: 7}
`

// books is what the API says of a sale.
type books struct {
	ID, Status string
	StartsAt   time.Time `json:"starts_at"`
	EndsAt     time.Time `json:"ends_at"`
	Version    int64
	Items      []reservation.Cell
	Balanced   bool
	Oldest     time.Time `json:"oldest_in_doubt"`
	Unbacked   int64
}

// cell is sku, region: stock available held in_doubt confirmed.
func (b books) cell(sku, region string) string {
	for _, c := range b.Items {
		if c.SKU == sku && c.Region == region {
			return fmt.Sprint(c.Stock, c.Available, c.Held, c.InDoubt, c.Confirmed)
		}
	}
	return "none"
}

// openSale applies and opens saleFile.
func (s *site) openSale() {
	s.t.Helper()
	do[any](s, "PUT", "/stockgate/sales/double11", saleFile)
	do[any](s, "POST", "/stockgate/sales/double11/open", "")
}

// shopper does a gate's part on the same Redis: it reserves.
type shopper struct {
	t *testing.T
	*reservation.Store
}

func newShopper(t *testing.T, server *redistest.Server) shopper {
	t.Helper()
	store, err := reservation.Open(reservation.Options{Addresses: []string{server.Addr()}, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return shopper{t, store}
}

// reserve holds units under an id.
func (p shopper) reserve(id, sku string, units int64, holdFor time.Duration) {
	p.t.Helper()
	p.reserveAs(reservation.Response, id, sku, units, holdFor)
}

func (p shopper) reserveAs(mode reservation.Mode, id, sku string, units int64, holdFor time.Duration) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	b, err := p.Books(ctx, "double11")
	if err != nil {
		p.t.Fatal(err)
	}
	_, refusal, err := p.Reserve(ctx, &reservation.Claim{
		ID: id, Sale: "double11", Version: b.Version, Buyer: "b",
		Lines:   []sale.Line{{SKU: sku, Quantity: units}},
		HoldFor: holdFor, Mode: mode,
	})
	if refusal != nil || err != nil {
		p.t.Fatalf("reserve %s: %v %v", id, refusal, err)
	}
}

// must is for what a store is told.
func (p shopper) must(state reservation.State, err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatalf("%s: %v", state, err)
	}
}

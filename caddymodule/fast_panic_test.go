package caddymodule_test

import (
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// testSource is a module of trusted proxies that panics, as often as mistakes says.
type testSource struct{}

var mistakes atomic.Int32

func (testSource) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.ip_sources.test_source", New: func() caddy.Module { return new(testSource) }}
}

func (*testSource) UnmarshalCaddyfile(*caddyfile.Dispenser) error { return nil }

func (*testSource) GetIPRanges(*http.Request) []netip.Prefix {
	if mistakes.Add(-1) >= 0 {
		panic("a mistake")
	}
	return nil
}

func init() { caddy.RegisterModule(testSource{}) }

var _ caddyhttp.IPRangeSource = (*testSource)(nil)

// A module that panics while a request is judged ends neither the process nor the connection: the
// handlers get the request, and answer it.
func TestFastPanic(t *testing.T) {
	s := openFast(t, "protocols h1 h2 h2c\ntrusted_proxies test_source", addressSites)
	const ask = "GET /buy?sku=soon HTTP/1.1\r\nHost: shop.example.com\r\nX-User-Id: u\r\n\r\n"
	for name, answer := range map[string]func() string{
		"HTTP/1": func() string { return strings.Join(first(s.raw(s.fast, ask, 1)), "") },
		"HTTP/2": func() string {
			c := s.openH2(s.fast)
			defer c.conn.Close()
			return c.ask(ask)
		},
	} {
		before := s.fastAnswers()
		mistakes.Store(1)
		if got := answer(); !strings.Contains(got, "409") && !strings.Contains(got, "429") {
			t.Errorf("%s: %s", name, got)
		}
		if mistakes.Load() > 0 || s.fastAnswers() != before {
			t.Errorf("%s: nothing panicked while it was judged", name)
		}
	}
}

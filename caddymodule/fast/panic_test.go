package fast_test

import (
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// mistakes is how often the modules below panic.
var mistakes atomic.Int32

func mistake() {
	if mistakes.Add(-1) >= 0 {
		panic("a mistake")
	}
}

// testSource is a module of trusted proxies.
type testSource struct{}

func (testSource) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.ip_sources.test_source", New: func() caddy.Module { return new(testSource) }}
}

func (*testSource) UnmarshalCaddyfile(*caddyfile.Dispenser) error { return nil }

func (*testSource) GetIPRanges(*http.Request) []netip.Prefix {
	mistake()
	return nil
}

// testMatcher matches no request.
type testMatcher struct{}

func (testMatcher) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.matchers.test_matcher", New: func() caddy.Module { return new(testMatcher) }}
}

func (*testMatcher) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	return nil
}

func (*testMatcher) MatchWithError(*http.Request) (bool, error) {
	mistake()
	return false, nil
}

func init() {
	caddy.RegisterModule(testSource{})
	caddy.RegisterModule(testMatcher{})
}

var (
	_ caddyhttp.IPRangeSource           = (*testSource)(nil)
	_ caddyhttp.RequestMatcherWithError = (*testMatcher)(nil)
)

// A module that panics while a request is judged ends neither the process nor the connection: the
// handlers get the request, and answer it.
func TestFastPanic(t *testing.T) {
	guarded := strings.NewReplacer("PORT {", "PORT {\n\t@odd test_matcher\n\troute {\n\tstockgate_guard", "\trespond 201", `	stockgate @odd odd {
		buyer {header.X-User-Id}
		line {query.sku}
	}
	respond 201
	}`).Replace(addressSites)
	for name, test := range map[string]struct{ servers, sites string }{
		"trusted proxies": {"trusted_proxies test_source", addressSites},
		"a matcher":       {"", guarded},
	} {
		t.Run(name, func(t *testing.T) {
			s := sitetest.OpenFast(t, "protocols h1 h2 h2c\n"+test.servers, test.sites)
			const ask = "GET /buy?sku=soon HTTP/1.1\r\nHost: shop.example.com\r\nX-User-Id: u\r\n\r\n"
			for protocol, answer := range map[string]func() string{
				"HTTP/1": func() string { return strings.Join(first(s.Raw(s.Fast, ask, 1)), "") },
				"HTTP/2": func() string {
					c := openH2(s, s.Fast)
					defer c.conn.Close()
					return c.ask(ask)
				},
			} {
				before := s.FastAnswers()
				mistakes.Store(1)
				if got := answer(); !strings.Contains(got, "409") && !strings.Contains(got, "429") {
					t.Errorf("%s: %s", protocol, got)
				}
				if mistakes.Load() > 0 || s.FastAnswers() != before {
					t.Errorf("%s: nothing panicked while it was judged", protocol)
				}
			}
		})
	}
}

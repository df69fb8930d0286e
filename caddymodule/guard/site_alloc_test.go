//go:build !race

package guard_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// noTransport sends nothing.
type noTransport struct{}

func (noTransport) RoundTrip(*http.Request) (*http.Response, error) { return nil, nil }

// TestPlainRequestsDoNotAllocate counts what the guard, and the second look where no gate
// has the method, allocate for a request that all servers read alike.
func TestPlainRequestsDoNotAllocate(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	sitetest.OpenCaddyfile(t, "stockgate_guard\n"+orderGate+"reverse_proxy "+shop.Addr())
	gate := sitetest.GateNamed(t, "main")
	guard, exit := guardOf(t, gate), exitOf(gate, noTransport{})
	next := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return nil })
	for line, most := range map[string]struct{ guard, exit float64 }{
		"GET /wiki/%e6%97%a5?x=1":    {0, 0},
		"GET /resize/http%3A%2F%2Fh": {0, 0},
		"POST /other":                {0, 40},
	} {
		var method, target string
		fmt.Sscan(line, &method, &target)
		r, err := http.NewRequest(method, target, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.RequestURI, r.RemoteAddr = target, "192.0.2.1:1"
		r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), nil, nil)
		if n := testing.AllocsPerRun(100, func() { guard.ServeHTTP(nil, r, next) }); n > most.guard {
			t.Errorf("%s: the guard makes %v allocations", line, n)
		}
		if n := testing.AllocsPerRun(100, func() { exit.RoundTrip(r) }); n > most.exit {
			t.Errorf("%s: the second look makes %v allocations", line, n)
		}
	}
}

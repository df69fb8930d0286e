//go:build shops

package shoptest_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
)

// between passes requests on to a shop, and answers those for which refuses is true with 503. It
// returns its address.
func between(t *testing.T, shop string, refuses func(r *http.Request, body []byte) bool) string {
	t.Helper()
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: shop})
	proxy.Transport = &http.Transport{DisableKeepAlives: true}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || refuses(r, body) {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// probed waits until the only order, about which no question in the buyer's name was answered,
// is confirmed by the recipe's probe.
func (g *gates) probed() {
	g.t.Helper()
	g.edges[0].until(g.t, "the probe has found the order", func() bool { return g.units("confirmed") == 1 })
	if metrics := string(g.ask(0, "/metrics")); !strings.Contains(metrics, `stockgate_probes_total{sale="flash",verdict="present"} 1`) {
		g.t.Error("the order was confirmed by other means")
	}
}

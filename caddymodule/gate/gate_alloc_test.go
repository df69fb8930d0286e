//go:build !race

package gate_test

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// noWriter takes an answer and keeps its status.
type noWriter struct {
	header http.Header
	status int
}

func (w *noWriter) Header() http.Header         { return w.header }
func (w *noWriter) WriteHeader(code int)        { w.status = code }
func (w *noWriter) Write(p []byte) (int, error) { return len(p), nil }

// leastAllocs is what do allocates in the round of several in which the process did the least beside it.
// It ends with the first round in which that is at most enough.
func leastAllocs(enough float64, do func()) float64 {
	least := math.Inf(1)
	for range 48 { // a round sells two of a hundred units
		if least = min(least, testing.AllocsPerRun(1, do)); least <= enough {
			break
		}
	}
	return least
}

// TestGateAllocatesLittle counts what guard and gate allocate for an attempt, beside what
// Caddy does: for one that they refuse, and for one that is reserved in a real Redis, signed,
// and confirmed. The edge's own work beside that, such as looks at Redis, is counted in some rounds only.
func TestGateAllocatesLittle(t *testing.T) {
	s := sitetest.OpenCaddyfile(t, "stockgate_guard\n@get method GET\nstockgate @get get {\n buyer {header.X-User-Id}\n line {query.sku}\n}\n"+
		"stockgate post {\n buyer {header.X-User-Id}\n line {json.sku} {json.quantity}\n}\n"+
		"stockgate asked {\n buyer {header.X-User-Id}\n line {json.sku}\n challenge pow {\n above 1 1h\n}\n}\nrespond 201")
	sitetest.Do[any](s, "PUT", "/stockgate/sales/later", sitetest.MoreSales["later"])
	sitetest.Do[any](s, "POST", "/stockgate/sales/later/open", "")
	s.Refresh()
	var guard guard.Guard
	if err := guard.Provision(caddy.Context{}); err != nil {
		t.Fatal(err)
	}
	w := &noWriter{header: make(http.Header)}
	buyer := 0
	request := func(method, query, body string) *http.Request {
		buyer++
		r, err := http.NewRequest(method, "/api/order?"+query, io.NopCloser(strings.NewReader(body)))
		if err != nil {
			t.Fatal(err)
		}
		if r.ContentLength = int64(len(body)); body != "" {
			r.Header.Set("Content-Type", "application/json")
		} else {
			r.Body = http.NoBody
		}
		r.RequestURI = r.URL.RequestURI() // as net/http's server sets it
		r.Header.Set("X-User-Id", fmt.Sprint("buyer-", 1000+buyer))
		clear(w.header)
		return caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, nil)
	}
	shop := caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		if r.Header.Get("Stockgate-Token") == "" {
			t.Error("there is no token")
		}
		w.WriteHeader(http.StatusCreated)
		return nil
	})
	for name, c := range map[string]struct {
		method, gate, query, body string
		status                    int
		most                      float64
	}{
		"refused get":  {"GET", "get", "sku=soon", "", http.StatusConflict, 7},
		"refused post": {"POST", "post", "", `{"sku":"soon","quantity":1}`, http.StatusConflict, 10},
		"challenged":   {"POST", "asked", "", `{"sku":"soon"}`, http.StatusForbidden, 12},
		"reserved":     {"POST", "post", "", `{"sku":"plain","quantity":1}`, http.StatusCreated, 200},
	} {
		gate := sitetest.GateNamed(t, c.gate)
		if err := gate.ServeHTTP(w, request(c.method, c.query, c.body), shop); err != nil { // the first is below the rate
			t.Fatal(err)
		}
		before := leastAllocs(0, func() { request(c.method, c.query, c.body) })
		allocs := leastAllocs(before+c.most, func() {
			w.status = 0
			err := guard.ServeHTTP(w, request(c.method, c.query, c.body), caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
				return gate.ServeHTTP(w, r, shop)
			}))
			if err != nil || w.status != c.status {
				t.Fatalf("%s: %d %v %v", name, w.status, w.header, err)
			}
		}) - before
		t.Logf("%s: %v allocations", name, allocs)
		if allocs > c.most {
			t.Errorf("%s: %v allocations, more than %v", name, allocs, c.most)
		}
	}
}

package status_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/token"
)

const statusFile = `
id: double11
starts_at: 2020-11-11T00:00:00+08:00
ends_at: 2090-11-12T00:00:00+08:00
items:
  - {sku: untouched, stock: 100}
  - {sku: tenth, stock: 100}
  - {sku: less, stock: 100}
  - {sku: held, stock: 2}
  - {sku: doubt, stock: 2}
  - {sku: sold, stock: 2}
  - {sku: none, stock: 0}
  - {sku: rest, stock: 3, min: 2}
  - {sku: restheld, stock: 3, min: 2}
  - {sku: two, regions: {a: 10, b: 1}}
  - {sku: "a/b%c?d#e", stock: 1}
  - {sku: "..", stock: 1}
`

// publicState is the status handler's answer about an item.
type publicState struct {
	State      string
	ServerTime string `json:"server_time"`
	StartsAt   string `json:"starts_at"`
}

// stateAt asks again while the edge has not read the stock in time.
func stateAt(s *sitetest.Site, path string) publicState {
	s.T.Helper()
	var a sitetest.Answer
	s.Eventually("told", func() (string, bool) {
		a = s.Get(path)
		return a.Body, a.Status != http.StatusServiceUnavailable
	})
	var v publicState
	if err := json.Unmarshal([]byte(a.Body), &v); a.Status != http.StatusOK || err != nil {
		s.T.Fatalf("%s: %d %s", path, a.Status, a.Body)
	}
	if a.Header.Get("Cache-Control") != "public, max-age=1" || a.Header.Get("Content-Type") != "application/json" {
		s.T.Errorf("%s: %v", path, a.Header)
	}
	return v
}

func TestStatusOfItems(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	sitetest.Do[any](s, "PUT", "/stockgate/sales/double11", statusFile)
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/open", "")
	p := sitetest.NewShopper(t, server)
	for sku, units := range map[string]int64{"tenth": 90, "less": 91, "held": 2, "doubt": 2, "sold": 2, "rest": 2, "restheld": 2, "two@b": 1} {
		p.Hold(sku, sku, units, time.Hour)
	}
	p.Must(p.Doubt(t.Context(), "double11", "doubt", "timeout"))
	for _, id := range []string{"sold", "rest", "two@b"} {
		p.Must(p.Store.Confirm(t.Context(), "double11", id, "answer", "2xx"))
	}
	for path, want := range map[string]string{
		"untouched":           "on_sale",
		"untouched?region=x":  "on_sale", // its stock has no regions
		"tenth":               "on_sale",
		"less":                "low",
		"held":                "all_held",
		"doubt":               "all_held",
		"sold":                "sold_out",
		"none":                "sold_out",
		"rest":                "sold_out", // one is left, an order takes two
		"restheld":            "all_held",
		"two":                 "on_sale",
		"two?region=a":        "on_sale",
		"two?region=b":        "sold_out",
		"a%2Fb%25c%3Fd%23e":   "on_sale",
		"%2E%2E":              "on_sale",
		"untouched?utm=x&y=1": "on_sale",
	} {
		got := stateAt(s, "/sales/double11/items/"+path)
		if got.State != want {
			t.Errorf("%s is %s, not %s", path, got.State, want)
		}
		if got.StartsAt != "2020-11-10T16:00:00.000Z" {
			t.Errorf("%s starts at %s", path, got.StartsAt)
		}
		// by Redis's clock, which on one machine is this one's
		if at, err := time.Parse("2006-01-02T15:04:05.000Z", got.ServerTime); err != nil || time.Since(at).Abs() > time.Minute {
			t.Errorf("%s: server_time %s: %v", path, got.ServerTime, err)
		}
	}
}

func TestStatusOfSales(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	sale := func(id, window string, words ...string) {
		sitetest.Do[any](s, "PUT", "/stockgate/sales/"+id, "id: "+id+"\n"+window+"\nitems: [{sku: x, stock: 1}]\n")
		for _, w := range words {
			sitetest.Do[any](s, "POST", "/stockgate/sales/"+id+"/"+w, "")
		}
	}
	const now, past, future = "starts_at: 2020-01-01T00:00:00Z\nends_at: 2090-01-01T00:00:00Z",
		"starts_at: 2020-01-01T00:00:00Z\nends_at: 2020-01-02T00:00:00Z",
		"starts_at: 2089-01-01T00:00:00Z\nends_at: 2090-01-01T00:00:00Z"
	sale("draft", now)
	sale("open", now, "open")
	sale("paused", now, "open", "pause")
	sale("closed", now, "close")
	sale("over", past, "open")
	sale("overpaused", past, "open", "pause")
	sale("coming", future, "open")
	sale("comingpaused", future, "open", "pause")
	sale("comingdraft", future)
	for id, want := range map[string]string{
		"open": "on_sale", "paused": "paused", "closed": "ended", "over": "ended", "overpaused": "ended",
		"coming": "not_started", "comingpaused": "not_started",
	} {
		if got := stateAt(s, "/sales/"+id+"/items/x"); got.State != want {
			t.Errorf("%s is %s, not %s", id, got.State, want)
		}
	}
	for _, path := range []string{
		"/sales/draft/items/x", "/sales/comingdraft/items/x", "/sales/nosuch/items/x", "/sales/open/items/y", "/sales/%2e/items/x",
	} {
		if a := s.Get(path); a.Status != http.StatusNotFound || !strings.HasPrefix(a.Body, `{"error":`) {
			t.Errorf("%s: %d %s", path, a.Status, a.Body)
		}
	}
	// what an operator does is seen at once
	sitetest.Do[any](s, "POST", "/stockgate/sales/open/pause", "")
	if got := stateAt(s, "/sales/open/items/x"); got.State != "paused" {
		t.Errorf("after a pause: %s", got.State)
	}
}

// Sales change the state soon, although the handler answers from memory.
func TestStatusFollowsTheStock(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	if got := stateAt(s, "/sales/double11/items/few"); got.State != "on_sale" {
		t.Fatal(got.State)
	}
	sitetest.NewShopper(t, server).Hold("r", "few", 3, time.Hour)
	ctx, cancel := context.WithTimeout(t.Context(), sitetest.Patience)
	defer cancel()
	for stateAt(s, "/sales/double11/items/few").State != "all_held" {
		if ctx.Err() != nil {
			t.Fatal("it never becomes all_held")
		}
	}
}

// The handler answers two paths only, and only in their exact form.
func TestStatusLeavesTheRestAlone(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/sales/double11/items/plain", 200},
		{"HEAD", "/sales/double11/items/plain", 200},
		{"HEAD", "/.well-known/jwks.json", 200},
		{"POST", "/sales/double11/items/plain", 405},
		{"DELETE", "/.well-known/jwks.json", 405},
		{"OPTIONS", "/sales/double11/items/plain", 418},
		{"GET", "/", 418},
		{"GET", "/sales", 418},
		{"GET", "/sales/double11", 418},
		{"GET", "/sales/double11/items", 418},
		{"GET", "/sales/double11/items/", 418},
		{"GET", "/sales//items/plain", 418},
		{"GET", "/sales/double11/items/plain/", 418},
		{"GET", "/sales/double11/items/plain/x", 418},
		{"GET", "/sales/a/b/items/plain", 418},
		{"GET", "/x/sales/double11/items/plain", 418},
		{"GET", "/Sales/double11/items/plain", 418},
		{"GET", "/.well-known/jwks.json/", 418},
		{"GET", "/.well-known/other", 418},
	} {
		a := s.Ask("http", c.method, c.path, "")
		if a.Status != c.status {
			t.Errorf("%s %s: %d, not %d", c.method, c.path, a.Status, c.status)
		}
		if c.method == "HEAD" && (a.Body != "" || a.Header.Get("Content-Length") == "") {
			t.Errorf("HEAD %s: %q %v", c.path, a.Body, a.Header)
		}
		if c.status == 405 && a.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s %s: %v", c.method, c.path, a.Header)
		}
	}
}

func TestStatusPublishesKeys(t *testing.T) {
	_, app := sitetest.Redis(t)
	key, pem, err := token.GenerateEd25519()
	if err != nil {
		t.Fatal(err)
	}
	app["token"] = map[string]any{"keys": []any{
		map[string]any{"kind": "ed25519", "material": string(pem)},
		map[string]any{"kind": "hmac", "material": strings.Repeat("secret", 6)},
	}}
	s := sitetest.Open(t, app)
	s.OpenSale() // then Redis has answered
	a := s.Get("/.well-known/jwks.json")
	public, _ := key.PublicJWK()
	if want := `{"keys":[` + string(public) + `]}`; a.Status != 200 || a.Body != want {
		t.Errorf("%d %s, not %s", a.Status, a.Body, want)
	}
	if a.Header.Get("Cache-Control") != "public, max-age=60" || a.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%v", a.Header)
	}
}

// An edge that Redis has never answered knows neither stock nor the other edges' keys.
func TestStatusWithoutRedis(t *testing.T) {
	server, app := sitetest.Redis(t)
	server.Stop()
	s := sitetest.Open(t, app)
	for _, path := range []string{"/sales/double11/items/plain", "/.well-known/jwks.json"} {
		a := s.Get(path)
		if a.Status != http.StatusServiceUnavailable || a.Header.Get("Cache-Control") != "no-store" || !strings.Contains("123", a.Header.Get("Retry-After")) || a.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %v %s", path, a.Status, a.Header, a.Body)
		}
		if strings.Contains(a.Body, "redis") {
			t.Errorf("%s: the public learns %s", path, a.Body)
		}
	}
	if a := s.Get("/other"); a.Status != 418 {
		t.Errorf("the rest of the site: %d", a.Status)
	}
}

// While Redis is away for a short time, keys and stock are still known.
func TestStatusBridgesAnAbsence(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	stateAt(s, "/sales/double11/items/plain")
	server.Kill()
	if got := stateAt(s, "/sales/double11/items/plain"); got.State != "on_sale" {
		t.Error(got)
	}
	if a := s.Get("/.well-known/jwks.json"); a.Status != 200 {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

// Clients that ask at once cost Redis one read together, not one each.
func TestStatusSparesRedis(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	s := sitetest.Open(t, map[string]any{"redis": map[string]any{"addresses": []string{proxy.Addr()}, "timeout": "1m"}})
	s.OpenSale()
	began := time.Now()
	var crowd sync.WaitGroup
	for range 100 {
		crowd.Go(func() { stateAt(s, "/sales/double11/items/plain") })
	}
	crowd.Wait()
	most := 1 + int(time.Since(began)/time.Second) // once a second
	if n := proxy.Requests("zcard"); n == 0 || n > most {
		t.Errorf("the stock was read %d times, %d times are enough", n, most)
	}
}

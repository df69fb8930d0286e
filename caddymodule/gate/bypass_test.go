package gate_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

// bypass begins one, in a data directory of the test's own.
func bypass(s *sitetest.Site, gate string) {
	s.T.Helper()
	sitetest.Do[any](s, "POST", "/stockgate/gates/"+gate+"/bypass", `{"for":"1h"}`)
}

// At a path where a shop takes all its operations, those that buy are counted in a bypass. Each reaches the shop whole.
func TestBypassOfOperations(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	shop := sitetest.NewBackend(t, sitetest.Created)
	s := graphQLSite(t, shop)
	bypass(s, "pay")
	counted := 0
	for _, c := range []struct {
		body  string
		order bool
	}{
		{`{"query":"{ products { sku } }"}`, false},
		{`{"query":"mutation { placeOrder(input: {sku: \"plain\", quantity: 1}) { code } }"}`, true},
		{`{"query":"mutation { addItem(id: 1) { code } }"}`, false},
		{`[{"query":"mutation { placeOrder(input: {}) { code } }"}]`, true},
		{`{"query":"{ a }","more":"` + strings.Repeat("x", 2<<20) + `"}`, true}, // too long to know
		{`no JSON`, true},
	} {
		r := sitetest.WithBody(sitetest.NewOrder("X-User-Id", "u1"), c.body)
		r.URL.Path = "/shop-api"
		s.Send(r).Is(t, 201, "")
		if got := shop.Take(); len(got) != 1 || got[0].Body != c.body || got[0].Header.Get("Stockgate-Token") != "" {
			t.Errorf("%.80s: the shop got %d requests", c.body, len(got))
		}
		if c.order {
			counted++
		}
		list := sitetest.Do[adminapi.BypassList](s, "GET", "/stockgate/bypasses", "")
		if len(list.Bypasses) != 1 || list.Bypasses[0].Orders != int64(counted) {
			t.Errorf("%.80s: counted %+v, want %d", c.body, list, counted)
		}
	}
}

// A file that another program has spoilt or written is no bypass, and a bypass does not overwrite it.
func TestBypassFile(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	file := filepath.Join(caddy.AppDataDir(), "stockgate", "bypass.json")
	write := func(text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("{ half a file")
	s := sitetest.OpenCaddyfile(t, `stockgate /order pay {
		buyer {header.X-User-Id}
		line  {json.sku}
	}
	respond 201`)
	begin := func(status int, want string) {
		t.Helper()
		if a := s.Admin("POST", "/stockgate/bypass", `{"for":"1h"}`); a.Status != status || !strings.Contains(a.Body, want) {
			t.Errorf("%d %s, want %d %s", a.Status, a.Body, status, want)
		}
	}
	doctor := func(want string) {
		t.Helper()
		if d := s.Admin("GET", "/stockgate/doctor", ""); !strings.Contains(d.Body, want) {
			t.Errorf("the doctor does not say %s: %s", want, d.Body)
		}
	}
	doctor("bypass.json cannot be read, so no gate is bypassed")
	begin(409, "delete it, and say the same again")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	begin(200, `"gate":"pay"`)
	doctor("pass without a reservation until")
	write(`{"bypasses":[]}`)
	begin(409, "was changed by another program")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	begin(200, `"gate":"pay"`)
	if a := s.Admin("DELETE", "/stockgate/bypass", ""); a.Status != 200 || !strings.Contains(a.Body, `"ended":true`) {
		t.Errorf("%+v", a)
	}
	s.Eventually("forgotten, because no order has passed", func() (string, bool) {
		a := s.Admin("GET", "/stockgate/bypasses", "")
		_, err := os.Stat(file)
		return a.Body, strings.Contains(a.Body, `"bypasses":[]`) && os.IsNotExist(err)
	})
	if b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", ""); b.Status != "open" {
		t.Errorf("the sale is %s", b.Status)
	}
	s.Eventually("the gate decides", func() (string, bool) {
		r := sitetest.WithBody(sitetest.NewOrder("X-User-Id", "u1"), `{"sku":"nosuch"}`)
		r.URL.Path = "/order"
		a := s.Send(r)
		return a.Body, a.Status == 404
	})
}

// An edge says which gates other edges have bypassed, until that has ended.
func TestBypassElsewhere(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	s := sitetest.OpenCaddyfile(t, `stockgate /order pay {
		buyer {header.X-User-Id}
		line  {json.sku}
	}
	respond 201`)
	note := func(id, edge string, until time.Duration) {
		t.Helper()
		text, err := json.Marshal(adminapi.Bypass{ID: id, Gate: "pay", Edge: edge, From: time.Now(), Until: time.Now().Add(until), By: "bob", Sales: []string{"double11"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := redisOf(s).HSet(t.Context(), "stockgate:bypasses", id, text).Err(); err != nil {
			t.Fatal(err)
		}
	}
	note("over", "web-3", -time.Second)
	note("on", "web-2", time.Hour)
	for _, path := range []string{"/stockgate/health", "/stockgate/doctor", "/stockgate/sales/double11"} {
		s.Eventually("told", func() (string, bool) {
			a := s.Admin("GET", path, "")
			return a.Body, strings.Contains(a.Body, "orders of the gate pay at web-2 pass without a reservation until ") && !strings.Contains(a.Body, "web-3")
		})
	}
	r := sitetest.NewOrder("X-User-Id", "u1")
	r.URL.Path = "/order"
	s.Send(r).Is(t, 201, "") // this edge reserves
	if got := s.StockOf("plain"); got != "100 99 0 0 1" {
		t.Errorf("stock %s", got)
	}
	if a := s.Admin("DELETE", "/stockgate/bypass", ""); a.Status != 404 || !strings.Contains(a.Body, "no bypass is on at this edge") {
		t.Errorf("%+v", a)
	}
}

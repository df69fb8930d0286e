package command_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// bypassSite is a site with a gate and a check before a shop.
const bypassSite = `
	metrics /metrics
	stockgate_status
	stockgate_guard
	@order {
		method POST
		path /order /moved
	}
	stockgate @order pay {
		buyer {header.X-User}
		line  {json.sku} {json.quantity}
		ref   {json.ref}
	}
	@cart {
		method POST
		path /cart
	}
	stockgate_check @cart cart {
		line {json.sku}
	}
	reverse_proxy SHOP`

// Orders of a gate pass while an operator says so, without Redis, over a reload and a restart. The sale is paused then, until it
// is compared with the shop; what the shop has sold is not sold again.
func TestBypass(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	file := filepath.Join(caddy.AppDataDir(), "stockgate", "bypass.json")
	shop := sitetest.NewBackend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-User") == "poor" {
			w.WriteHeader(http.StatusPaymentRequired)
			return
		}
		w.WriteHeader(http.StatusCreated)
	})
	server := redistest.Start(t, redistest.Config("appendonly yes", "appendfsync always"))
	app := map[string]any{"redis": map[string]any{"addresses": []string{server.Addr()}, "timeout": "1m"}}
	s := sitetest.Open(t, app)
	s.OpenSale()
	s.Redis = server.Addr()
	load := func(more string) {
		t.Helper()
		if err := s.LoadCaddyfile(strings.Replace(bypassSite, "SHOP", shop.Addr(), 1) + more); err != nil {
			t.Fatal(err)
		}
	}
	load("")
	s.Refresh()
	order := func(ref, user string) sitetest.Answer {
		t.Helper()
		return s.AskWith("http", "POST", "/order", `{"sku":"plain","quantity":2,"ref":"`+ref+`"}`,
			map[string]string{"X-User": user, "Content-Type": "application/json", "Stockgate-Token": "forged"})
	}
	refused := func(want string, args ...string) {
		t.Helper()
		if r := s.Run(append([]string{"bypass"}, args...)...); r.Status == 0 || !strings.Contains(r.Errors, want) {
			t.Errorf("%q: %d, it does not say %q:\n%s%s", args, r.Status, want, r.Out, r.Errors)
		}
	}
	refused("say for how long", "pay")
	refused("such as 15m", "pay", "--for", "soon")
	refused("from 1s to 24h", "pay", "--for", "25h")
	refused("from 1s to 24h", "pay", "--for", "-5m")
	refused("there are 2 gates: name one", "--for", "15m")
	refused(`no gate is named "nosuch"`, "nosuch", "--for", "15m")
	refused("one gate at a time", "pay", "cart", "--for", "1m")
	refused("leave one of them out", "pay", "off", "--for", "1m")
	refused(`no bypass of "pay" is on`, "off", "pay")
	refused(`no bypass of "pay" is on`, "pay", "off")
	refused("no bypass is on", "off")
	refused("up to 200 bytes", "pay", "--for", "1m", "--reason", strings.Repeat("x", 201))
	if said := s.OK("bypass"); said != "no gate is bypassed\n" {
		t.Error(said)
	}
	if a := order("before", "u1"); a.Status != 201 {
		t.Fatalf("%+v", a)
	}
	if got := shop.Take(); len(got) != 1 || got[0].Header.Get("Stockgate-Token") == "" {
		t.Fatalf("the shop got %+v", got)
	}

	server.Stop()
	end := sitetest.Silence(t)
	s.Eventually("redis is away", func() (string, bool) {
		a := order("away", "u2")
		return a.Body, a.Status == 503
	})
	shop.Take()
	said := s.OK("bypass", "pay", "--for", "10m", "--reason", "redis is away")
	if !strings.Contains(said, "Orders of the gate pay at ") || !strings.Contains(said, "redis is away") || !strings.Contains(said, "decide as before: the gate cart") {
		t.Errorf("it says\n%s", said)
	}
	passes := func(when, ref string) {
		t.Helper()
		if a := order(ref, "u3"); a.Status != 201 {
			t.Errorf("%s: %d %s", when, a.Status, a.Body)
		}
		if got := shop.Take(); len(got) != 1 || !strings.Contains(got[0].Body, ref) || got[0].Header.Get("Stockgate-Token") != "" {
			t.Errorf("%s: the shop got %+v", when, got)
		}
	}
	passes("at once", "past-1")
	if a := order("past-2", "poor"); a.Status != 402 {
		t.Errorf("what the shop answers is not told: %+v", a)
	}
	shop.Take()
	load("\n\theader /nothing X-Y z")
	passes("after a reload", "past-3")
	if a := s.Ask("http", "POST", "/cart", `{"sku":"plain"}`); a.Status == 201 {
		t.Errorf("the check is bypassed with the gate: %+v", a)
	}
	for path, want := range map[string]string{"/health": `"ready":true,"orders":"ready","degraded":true`, "/health?for=orders": `"ready":true`, "/metrics": `stockgate_bypass{gate="pay"} 1`} {
		if a := s.Get(path); a.Status != 200 || !strings.Contains(a.Body, want) {
			t.Errorf("%s: %d %s", path, a.Status, a.Body)
		}
	}
	if m := s.Get("/metrics").Body; !strings.Contains(m, `stockgate_bypassed_total{answer="2xx",gate="pay"} 2`) || !strings.Contains(m, `stockgate_bypassed_total{answer="other",gate="pay"} 1`) {
		t.Errorf("orders are not counted: %s", m)
	}
	if health := s.OK("health"); !strings.HasPrefix(health, "orders: bypassed\nbypassed: orders of the gate pay at ") || !strings.Contains(health, "3 orders, of which the shop has taken 2") {
		t.Errorf("health says\n%s", health)
	}
	if d := s.Admin("GET", "/stockgate/doctor", ""); !strings.Contains(d.Body, `"check":"bypass","text":"orders of the gate pay`) {
		t.Errorf("the doctor says\n%s", d.Body)
	}

	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	if kept, err := os.ReadFile(file); err != nil || !strings.Contains(string(kept), `"orders": 3`) {
		t.Errorf("%v %s", err, kept)
	}
	load("")
	passes("after a restart without Redis", "past-4")

	server.Restart()
	end()
	s.Eventually("all edges can know", func() (string, bool) {
		told, err := server.Client().HVals(t.Context(), "stockgate:bypasses").Result()
		return strings.Join(told, ""), err == nil && len(told) == 1 && strings.Contains(told[0], `"orders":4`)
	})
	s.Eventually("ready again", func() (string, bool) {
		r := s.Run("health")
		return r.Out, strings.HasPrefix(r.Out, "orders: ready\nbypassed: ")
	})
	if shown := s.OK("sale", "show", "double11"); !strings.Contains(shown, "orders of the gate pay at ") {
		t.Errorf("sale show says\n%s", shown)
	}
	passes("with Redis", "past-5")
	if said := s.OK("bypass", "off", "pay"); !strings.Contains(said, "has ended: 5 orders have passed, of which the shop has taken 4") {
		t.Errorf("it says\n%s", said)
	}
	s.Eventually("paused", func() (string, bool) {
		shown := s.OK("sale", "show", "double11")
		return shown, strings.Contains(shown, "double11 is paused") && strings.Contains(shown, "the shop sold without reservations")
	})
	if a := order("late", "u9"); a.Status == 201 {
		t.Errorf("it sells before it is compared: %+v", a)
	}
	if tail := s.OK("journal", "tail", "double11", "--no-follow"); !strings.Contains(tail, "bypass of gate") || !strings.Contains(tail, "5 orders passed, 4 were taken") || !strings.Contains(tail, "redis is away") {
		t.Errorf("the journal is\n%s", tail)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file is left: %v", err)
	}

	list := s.File("orders.csv", "ref,sku,quantity\nbefore,plain,2\npast-1,plain,2\npast-3,plain,2\npast-4,plain,2\npast-5,plain,2\n")
	if r := s.Run("reconcile", "double11", "--shop", list); r.Status != 1 || !strings.Contains(r.Out, "--take-over takes its units out of the stock") {
		t.Errorf("%+v", r)
	}
	for range 2 {
		s.OK("reconcile", "double11", "--shop", list, "--take-over", "--repair")
	}
	s.OK("sale", "open", "double11")
	shop.Take()
	s.Eventually("it sells", func() (string, bool) {
		a := order("after", "u10")
		return a.Body, a.Status == 201
	})
	if b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", ""); b.Status != "open" || b.Cell("plain", "") != "92 88 0 0 4" {
		t.Errorf("the sale is %+v", b)
	}
}

package command_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/caddymodule/internal/timing"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

// A command believes only Stockgate: another server that answers 200 with JSON has changed
// nothing.
func TestCommandsCheckWhoAnswers(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "{}") }))
	defer other.Close()
	address := strings.TrimPrefix(other.URL, "http://")
	for _, args := range [][]string{{"sale", "show", "s"}, {"sale", "close", "s"}, {"doctor"}, {"health"}, {"journal", "tail", "s"}} {
		r := sitetest.Run(t, "", append(args, "--address", address)...)
		if r.Status != 3 || r.Out != "" || !strings.Contains(r.Errors, "is not a Caddy with stockgate") {
			t.Errorf("%q: %+v", args, r)
		}
	}
}

// An address may be written as a URL.
func TestAddressAsURL(t *testing.T) {
	stockgate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(adminapi.ServedHeader, "1")
		fmt.Fprint(w, `{"sales":[]}`)
	}))
	defer stockgate.Close()
	for _, address := range []string{stockgate.URL, stockgate.URL + "/", strings.TrimPrefix(stockgate.URL, "http://")} {
		if r := sitetest.Run(t, "", "sale", "list", "--address", address); r.Status != 0 || !strings.Contains(r.Out, "(none)") {
			t.Errorf("%s: %+v", address, r)
		}
	}
	for address, says := range map[string]string{
		strings.Replace(stockgate.URL, "http", "https", 1): "speaks plain HTTP",
		stockgate.URL + "/stockgate":                       "has a path",
	} {
		if r := sitetest.Run(t, "", "sale", "list", "--address", address); r.Status != 2 || !strings.Contains(r.Errors, says) {
			t.Errorf("%s: %+v", address, r)
		}
	}
}

const zonedSale = `
id: double11
starts_at: 2020-11-11T00:00:00+08:00
ends_at: 2090-11-12T00:00:00+08:00
timezone: Asia/Shanghai
items:
  - {sku: plain, stock: 100}
limits:
  - {per: buyer, every: day, max: 2, count: units}
`

// `sale show` has the limits, and the window in the sale's time zone; what is valid and
// probably a mistake is warned about.
func TestSaleShowAndWarnings(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	if out := s.OK("sale", "apply", s.File("zoned.yaml", zonedSale)); strings.Contains(out, "warning") {
		t.Errorf("a warning without a reason: %s", out)
	}
	out := s.OK("sale", "show", "double11")
	for _, want := range []string{"from 2020-11-11 00:00:00 +0800 to 2090-11-12 00:00:00 +0800 (Asia/Shanghai)\n", "limit: at most 2 units per buyer and day\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	if out := s.OK("sale", "list"); !strings.Contains(out, "2020-11-11 00:00:00 +0800  2090-11-12 00:00:00 +0800") {
		t.Errorf("the list has another time zone:\n%s", out)
	}
	unzoned := strings.Replace(strings.Replace(zonedSale, "timezone: Asia/Shanghai\n", "", 1), "double11", "other", 1)
	if out := s.OK("sale", "apply", s.File("unzoned.yaml", unzoned)); !strings.Contains(out, "warning: the window is written with the offset +08:00 and the sale has no timezone") || !strings.Contains(out, "which is 08:00 there") {
		t.Errorf("no warning about the time zone: %s", out)
	}
	past := s.File("past.yaml", strings.Replace(zonedSale, "2090-", "2021-", 1))
	for _, args := range [][]string{{"sale", "apply", past, "--dry-run"}, {"sale", "apply", past}} {
		if out := s.OK(args...); !strings.Contains(out, "warning: ends_at 2021-11-12T00:00:00+08:00 is in the past") {
			t.Errorf("%q: no warning about the end: %s", args, out)
		}
	}
}

// `sale close` says what stays held.
func TestCloseSaysWhatStays(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	p := sitetest.NewShopper(t, server)
	p.Hold("r1", "plain", 2, time.Hour)
	p.Hold("r2", "plain", 3, time.Hour)
	p.Must(p.Doubt(t.Context(), "double11", "r2", "timeout"))
	out := s.OK("sale", "close", "double11")
	for _, want := range []string{"double11 is closed\n", "2 units stay held", "3 units stay in doubt", "caddy stockgate holds double11"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q: %s", want, out)
		}
	}
}

// A deleted sale is gone and is not missed; one that still has something to decide stays.
func TestSaleDelete(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	p := sitetest.NewShopper(t, server)
	p.Hold("r1", "plain", 2, time.Hour)
	refused := func(says string) {
		t.Helper()
		if r := s.Run("sale", "delete", "double11"); r.Status != 1 || !strings.Contains(r.Errors, says) {
			t.Errorf("%+v does not say %q", r, says)
		}
	}
	refused("is open: only a closed sale is deleted")
	s.OK("sale", "close", "double11")
	refused("has 1 open holds and 0 orders without stock")
	s.OK("reservation", "confirm", "r1")
	if out := s.OK("sale", "purge", "--ended", "1h", "--dry-run"); !strings.Contains(out, "0 sales") { // it ends in 2090
		t.Error(out)
	}
	for range 2 { // the same again answers the same
		if out := s.OK("sale", "delete", "double11"); out != "double11 is deleted\n" {
			t.Error(out)
		}
	}
	s.Eventually("no sale", func() (string, bool) {
		m := s.Get("/metrics").Body
		return m, !strings.Contains(m, `stockgate_sale_lost{sale="double11"}`)
	})
	if keys, err := server.Client().Keys(t.Context(), "stockgate:{double11.0}:*").Result(); err != nil || len(keys) != 0 {
		t.Errorf("%v %v are left", keys, err)
	}
	s.OpenSale() // its file makes a new sale, without --new
	if b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", ""); b.Cell("plain", "") != "100 100 0 0 0" {
		t.Errorf("%+v", b)
	}
	if r := s.Run("sale", "delete", "nosuch"); r.Status != 1 || !strings.Contains(r.Errors, "no such sale") {
		t.Errorf("%+v", r)
	}
}

// A sale whose new life Redis loses is lost, although an older one was deleted.
func TestLostAfterDelete(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	s.OK("sale", "close", "double11")
	s.OK("sale", "delete", "double11")
	s.OpenSale()
	keys, err := server.Client().Keys(t.Context(), "stockgate:{double11.0}:*").Result()
	if err == nil {
		err = server.Client().Del(t.Context(), keys...).Err()
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Eventually("lost", func() (string, bool) {
		h := sitetest.Do[adminapi.Health](s, "GET", "/stockgate/health", "")
		return fmt.Sprint(h), len(h.Lost) == 1 && h.Lost[0] == "double11"
	})
}

// A follower of a quiet journal asks once a minute, not twice a second, and prints lines for
// people on request.
func TestJournalTailIsQuiet(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	type page = adminapi.MovementPage[map[string]any]
	last := sitetest.Do[adminapi.JournalState](s, "GET", "/stockgate/sales/double11/journal", "").Last
	answers := make(chan int, 1)
	go func() {
		p := sitetest.Do[page](s, "GET", fmt.Sprintf("/stockgate/sales/double11/journal/movements?after=%d&wait=60", last), "")
		answers <- len(p.Movements)
	}()
	s.Eventually("the request", func() (string, bool) {
		n := len(s.Logged("received request"))
		return fmt.Sprint(n), strings.Contains(s.Read("log"), "wait=60")
	})
	sitetest.NewShopper(t, server).Hold("r1", "plain", 2, time.Hour)
	if n := <-answers; n != 1 {
		t.Errorf("it has %d movements, not the one that came", n)
	}
	if n := strings.Count(s.Read("log"), "wait=60"); n != 1 {
		t.Errorf("%d requests are logged, not 1", n)
	}
	if r := s.Run("journal", "tail", "double11", "--format", "xml"); r.Status != 2 || !strings.Contains(r.Errors, "text or json") {
		t.Errorf("%+v", r)
	}
}

// Errors of the admin API leave < and > as they are.
func TestErrorsAreNotEscaped(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	a := s.Admin("GET", "/stockgate/sales?a%3Cb%3E=1", "")
	if a.Status != 400 || !strings.Contains(a.Body, `a<b>`) {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

// `caddy stockgate health` and the endpoint say whether this edge sells.
func TestHealth(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.Eventually("ready", func() (string, bool) {
		r := s.Run("health")
		return fmt.Sprint(r), r.Status == 0 && strings.HasPrefix(r.Out, "orders: ready\n")
	})
	if a := s.Get("/health"); a.Status != 200 || a.Body != `{"ready":true,"orders":"ready","degraded":false}` {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	server.Stop()
	usual := timing.Silence.Set(0)
	t.Cleanup(func() { timing.Silence.Set(usual) })
	s.Eventually("not ready", func() (string, bool) {
		r := s.Run("health")
		return fmt.Sprint(r), r.Status == 3 && strings.Contains(r.Errors, "this edge does not sell")
	})
	if a := s.Get("/health"); a.Status != 200 || !strings.Contains(a.Body, `"ready":false`) {
		t.Errorf("the rest of the site is served: %d %s", a.Status, a.Body)
	}
	if a := s.Get("/health?for=orders"); a.Status != 503 {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if a := s.Admin("GET", "/stockgate/health", ""); a.Status != 503 || !strings.Contains(a.Body, `"ready":false`) {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if m := s.Get("/metrics").Body; !strings.Contains(m, `stockgate_degraded{part="sale"} 0`) {
		t.Error("no stockgate_degraded")
	}
}

// An edge whose storage is lost can be given back its place: with a copy of the key, limits go
// on counting; without, they start over and the command says so.
func TestKeyReplace(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	key := s.Path("storage/stockgate/token.ed25519.pem")
	old, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	if r := s.Run("key", "replace", "--begin-anew"); r.Status != 1 || !strings.Contains(r.Errors, "nothing is lost") {
		t.Errorf("%+v", r)
	}
	lose := func() {
		t.Helper()
		if err := os.Remove(key); err != nil {
			t.Fatal(err)
		}
		s.Load(nil) // the edge that has the key ends
		s.Load(app)
		s.Eventually("another key", func() (string, bool) {
			a := s.Admin("GET", "/stockgate/health", "")
			return a.Body, strings.Contains(a.Body, "sign with another key") && strings.Contains(a.Body, "caddy stockgate key replace")
		})
	}
	ready := func() {
		t.Helper()
		s.Eventually("ready", func() (string, bool) {
			a := s.Admin("GET", "/stockgate/health", "")
			return a.Body, a.Status == 200
		})
	}
	lose()
	if r := s.Run("key", "replace"); r.Status != 1 || !strings.Contains(r.Errors, "purchase limits and unpaid holds count from 0 again") {
		t.Errorf("it does not say what it costs: %+v", r)
	}
	if out := s.OK("key", "replace", "--old-key", s.File("old.pem", string(old)), "--force"); !strings.Contains(out, "limits go on counting") {
		t.Error(out)
	}
	ready()
	lose()
	if out := s.OK("key", "replace", "--begin-anew", "--force"); !strings.Contains(out, "start over") {
		t.Error(out)
	}
	ready()
}

package gate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// hour is a window in which nothing is refilled while a test runs.
const hour = 3_600_000_000_000

// ratedGate is a gate for one unit of "plain", with rates.
func ratedGate(name string, rates ...map[string]any) map[string]any {
	return map[string]any{
		"handler": "stockgate", "name": name,
		"buyer": []string{"{query.buyer}"},
		"lines": []any{map[string]any{"sku": []string{"plain"}}},
		"rates": rates,
	}
}

// perKey is a rate of {query.key} with so many events an hour.
func perKey(events int) map[string]any {
	return map[string]any{"key": []string{"{query.key}"}, "events": events, "window": hour}
}

func shared(rate map[string]any) map[string]any {
	rate = maps.Clone(rate)
	rate["shared"] = true
	return rate
}

// attemptBy tries to buy, and returns what was refused and why, or the shop's 418.
func attemptBy(s *sitetest.Site, query string) sitetest.Answer {
	s.T.Helper()
	return s.Ask("http", http.MethodPost, "/order?"+query, "")
}

// verdicts tries to buy with each query, and returns the reasons; - is none.
func verdicts(s *sitetest.Site, queries ...string) string {
	s.T.Helper()
	var reasons []string
	for _, q := range queries {
		a := attemptBy(s, q)
		reason := a.Header.Get("Stockgate-Refusal")
		if reason == "" && a.Status == http.StatusTeapot {
			reason = "-"
		}
		reasons = append(reasons, reason)
	}
	return strings.Join(reasons, " ")
}

// untilSelling waits until the gate knows the sale, with attempts whose keys no other attempt
// has.
func untilSelling(s *sitetest.Site) {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.T.Context(), sitetest.Patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		got := verdicts(s, fmt.Sprintf("buyer=b&key=warm%d&local=warm%d", i, i))
		if got == "-" {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			s.T.Fatalf("the gate does not sell: %s", got)
		}
	}
}

func TestRateRefusesBeforeTheSale(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, nil)
	s.Gates = []any{ratedGate("order", perKey(2))}
	s.Load(app)

	began := time.Now()
	// No sale lists the item, or Redis has not been heard yet: either way an attempt
	// counts; what cannot be read does not.
	for range 3 {
		if got := verdicts(s, "key=a&key=b&buyer=b", "key=a"); got != "malformed no_buyer" {
			t.Errorf("unread: %s", got)
		}
	}
	for i := range 2 {
		if got := verdicts(s, "buyer=b&key=a"); got != "unknown_item" && got != "unavailable" {
			t.Errorf("attempt %d: %s", i, got)
		}
	}
	a := attemptBy(s, "buyer=c&key=a")
	if a.Status != http.StatusTooManyRequests || a.Header.Get("Stockgate-Refusal") != "rate_limited" || a.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %v %s", a.Status, a.Header, a.Body)
	}
	if got := a.Header.Get("RateLimit-Policy"); got != `"order-1";q=2;w=3600` {
		t.Errorf("RateLimit-Policy: %s", got)
	}
	// an attempt leaves the bucket each half hour, counted from the first
	least := 1800 - int(time.Since(began)/time.Second)
	var wait int
	if _, err := fmt.Sscanf(a.Header.Get("RateLimit"), `"order-1";r=0;t=%d`, &wait); err != nil || wait < least || wait > 1800 {
		t.Errorf("RateLimit: %s, want %d to 1800", a.Header.Get("RateLimit"), least)
	}
	var problem struct {
		Type, Reason string
		RetryAfter   int `json:"retry_after"`
	}
	if err := json.Unmarshal([]byte(a.Body), &problem); err != nil {
		t.Fatal(err)
	}
	after, err := strconv.Atoi(a.Header.Get("Retry-After"))
	if err != nil || after < wait || after > wait+2 || problem.RetryAfter != after || problem.Reason != "rate_limited" {
		t.Errorf("Retry-After %s, body %s", a.Header.Get("Retry-After"), a.Body)
	}
	if !strings.Contains(s.Get("/metrics").Body, `stockgate_attempts_total{outcome="refused",reason="rate_limited",sale=""} `) {
		t.Error("the refusal is not counted")
	}

	// A refused attempt charges no purchase limit and no stock.
	sitetest.Do[any](s, "PUT", "/stockgate/sales/double11", sitetest.SaleFile)
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/open", "")
	untilSelling(s)
	if got := verdicts(s, "buyer=b&key=a", "buyer=b&key=other", "buyer=b", "buyer=b", "buyer=b"); got != "rate_limited - - - rate_limited" {
		t.Errorf("on sale: %s", got)
	}
	b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", "")
	if !b.Balanced || b.Cell("plain", "") != "100 100 0 0 0" { // the shop refuses all with 418
		t.Errorf("stock %+v", b)
	}
}

// A late rate counts only attempts that the edge cannot refuse by itself: a buyer who is over the
// rate hears all the same what the edge knows.
func TestLateRate(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenCaddyfile(t, `stockgate_guard
	stockgate /api/order main {
		buyer {header.X-User-Id}
		line  {json.sku} {json.quantity}
		rate  {header.X-User-Id} 2 1h late
	}
	reverse_proxy `+shop.Addr())
	buy := func(user, sku string, n int) sitetest.Answer {
		return s.Send(sitetest.WithBody(sitetest.NewOrder("X-User-Id", user), fmt.Sprintf(`{"sku":%q,"quantity":%d}`, sku, n)))
	}
	for range 2 {
		buy("eve", "plain", 1).Is(t, 201, "")
	}
	buy("eve", "plain", 1).Is(t, 429, "rate_limited")
	buy("eve", "unlisted", 1).Is(t, 404, "unknown_item")
}

func TestRatesSurviveAReload(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, nil)
	s.Gates = []any{ratedGate("reload", perKey(2))}
	s.Load(app)
	verdicts(s, "buyer=b&key=a", "buyer=b&key=a")
	over := func(when, want string) {
		t.Helper()
		if got := verdicts(s, "buyer=b&key=a"); (got == "rate_limited") != (want == "over") {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}
	over("before", "over")
	for range 3 {
		s.Load(app)
		over("after a reload", "over")
	}

	// A configuration that does not load takes nothing away.
	s.Gates = []any{ratedGate("reload", perKey(2)), ratedGate("reload", perKey(2), perKey(0))}
	if err := s.TryLoad(app); err == nil || !strings.Contains(err.Error(), "rate, number 2: 0 events") {
		t.Fatalf("a bad configuration: error %v", err)
	}
	s.Gates = s.Gates[:1]
	s.Load(app)
	over("after a bad configuration", "over")

	s.Gates = []any{ratedGate("renamed", perKey(2))}
	s.Load(app)
	over("another name", "free")
	s.Gates = []any{ratedGate("reload", perKey(2))}
	s.Load(app)
	over("the first name again, whose table is gone", "free")
}

// Local rates come first, and cost no call; an attempt that one of them refuses has
// not counted for those behind it.
func TestLocalRatesComeBeforeSharedOnes(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	app := map[string]any{
		"redis":      map[string]any{"addresses": []string{server.Addr()}, "timeout": "10s"},
		"rate_redis": map[string]any{"addresses": []string{proxy.Addr()}, "timeout": "10s"},
	}
	s := sitetest.Open(t, app)
	s.OpenSale()
	local := map[string]any{"key": []string{"{query.local}"}, "events": 2, "window": hour}
	s.Gates = []any{ratedGate("order", shared(perKey(3)), local)}
	s.Load(app)
	untilSelling(s)
	calls := func(queries ...string) string {
		before := proxy.Requests("EVALSHA")
		got := verdicts(s, queries...)
		return fmt.Sprintf("%s: %d", got, proxy.Requests("EVALSHA")-before)
	}
	for _, step := range []struct{ local, want string }{
		{"x", "- - rate_limited rate_limited: 2"},            // the local one
		{"y", "- rate_limited rate_limited rate_limited: 2"}, // one of three was left of the shared one; then it is remembered
	} {
		q := "buyer=b&key=k&local=" + step.local
		if got := calls(q, q, q, q); got != step.want {
			t.Errorf("%s: %s, want %s", step.local, got, step.want)
		}
	}
	a := attemptBy(s, "buyer=b&key=k&local=z")
	if got := a.Header.Get("RateLimit"); !strings.HasPrefix(got, `"order-1";r=0;t=`) || a.Status != http.StatusTooManyRequests {
		t.Errorf("%d, RateLimit %s", a.Status, got)
	}
	if a := attemptBy(s, "buyer=b&key=new&local=x"); a.Header.Get("RateLimit-Policy") != `"order-2";q=2;w=3600` {
		t.Errorf("%d, RateLimit-Policy %s", a.Status, a.Header.Get("RateLimit-Policy"))
	}

	// Without the Redis of the rates the gate refuses as unavailable, unless the edge knows the
	// answer itself.
	proxy.DropAll()
	if got := verdicts(s, "buyer=b&key=n&local=n", "buyer=b&key=k&local=n", "buyer=b&key=n&local=n"); got != "unavailable rate_limited rate_limited" {
		t.Errorf("without redis: %s", got)
	}
	const deaf, again = "redis gives no answer about shared rates: attempts are refused as unavailable until it does", "redis answers about shared rates again"
	if got := verdicts(s, "buyer=b&key=o&local=o", "buyer=b&key=k&local=p"); got != "unavailable rate_limited" || len(s.Logged(deaf)) != 1 || len(s.Logged(again)) != 0 {
		t.Errorf("without redis: %s, logged %v %v", got, s.Logged(deaf), s.Logged(again))
	}
	proxy.Heal()
	if got := verdicts(s, "buyer=b&key=n&local=m"); got != "-" {
		t.Errorf("with redis again: %s", got)
	}
	if len(s.Logged(deaf)) != 1 || len(s.Logged(again)) != 1 {
		t.Errorf("with redis again: logged %v %v", s.Logged(deaf), s.Logged(again))
	}
}

// A shared rate outlives the edge.
func TestSharedRateOutlivesTheEdge(t *testing.T) {
	_, app := sitetest.Redis(t)
	app["redis"].(map[string]any)["timeout"] = "10s"
	// each edge has the same key, whatever is in its storage
	app["token"] = map[string]any{"keys": []any{map[string]any{"kind": "hmac", "material": strings.Repeat("k", 32)}}}
	for _, want := range []string{"- rate_limited", "rate_limited rate_limited"} {
		s := sitetest.Open(t, nil)
		s.Gates = []any{ratedGate("order", shared(perKey(1)))}
		s.Load(app)
		s.OpenSale()
		untilSelling(s)
		if got := verdicts(s, "buyer=b&key=a", "buyer=b&key=a"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if err := caddy.Stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// An edge runtime that has closed takes no attempts of the configuration that had it: a shared rate neither
// asks Redis through it nor counts one attempt too few in flight.
func TestSharedRateOfClosedRuntime(t *testing.T) {
	_, config := sitetest.Redis(t)
	s := sitetest.Open(t, nil)
	s.Gates = []any{ratedGate("order", shared(perKey(1)))}
	s.Load(config)
	s.OpenSale()
	untilSelling(s)
	old, edge := sitetest.GateNamed(t, "order"), app.Active().Runtime()
	s.Gates = nil
	s.Load(nil)
	sitetest.Until(t, "the edge runtime has closed", func() bool {
		begun := edge.Begin()
		if begun {
			edge.End()
		}
		return !begun
	})
	w := httptest.NewRecorder()
	r := caddyhttp.PrepareRequest(httptest.NewRequest(http.MethodPost, "/order?buyer=a&key=k", nil), caddy.NewReplacer(), w, nil)
	if err := old.ServeHTTP(w, r, nil); err != nil || w.Header().Get("Stockgate-Refusal") != "unavailable" {
		t.Errorf("%v, %d %v", err, w.Code, w.Header())
	}
	if n := edge.InFlight(); n != 0 {
		t.Errorf("%d in flight", n)
	}
}

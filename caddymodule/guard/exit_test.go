package guard_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/fcgi"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/gate"
	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// around reads the counter of requests that leave around a gate.
func around(s *sitetest.Site, answer string) (n int) {
	s.T.Helper()
	name := fmt.Sprintf(`stockgate_around_total{answer=%q} `, answer)
	for line := range strings.Lines(s.Admin("GET", "/metrics", "").Body) {
		if value, ok := strings.CutPrefix(line, name); ok {
			fmt.Sscan(value, &n)
			return n
		}
	}
	s.T.Fatalf("there is no %s", name)
	return 0
}

const orderGate = `
	@order {
		method POST
		path   /api/order
	}
	stockgate @order main {
		buyer {header.X-User-Id}
		line  {json.sku}
	}
`

// TestSecondLook rewrites requests into the gated route behind the guard and beside the
// gate, in every kind of route. Such a request does not reach the shop.
func TestSecondLook(t *testing.T) {
	shop := sitetest.NewBackend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hop" {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.WriteHeader(http.StatusCreated)
	})
	rest := strings.ReplaceAll(`
	error /broken 500
	invoke /named pay
	handle /old/* {
		uri replace /old /api
		reverse_proxy SHOP
	}
	handle /twice/* {
		rewrite * /api%252forder
		reverse_proxy SHOP
	}
	reverse_proxy /inside SHOP {
		rewrite /api/order
		lb_try_duration 0
		health_uri      /
		health_upstream HEALTH
		fail_duration   1m
		max_fails       1
	}
	reverse_proxy /method SHOP {
		method  POST
		rewrite /api/order
	}
	reverse_proxy /hop SHOP {
		@accepted status 202
		handle_response @accepted {
			rewrite * /api/order
			reverse_proxy SHOP
		}
	}
	reverse_proxy SHOP
	handle_errors {
		rewrite * /api/order
		reverse_proxy SHOP
	}
`, "SHOP", shop.Addr())
	rest = strings.ReplaceAll(rest, "HEALTH", sitetest.NewBackend(t, func(http.ResponseWriter, *http.Request) {}).Addr())
	text := func(guard string) string {
		// a named route is a block of its own, before the site
		return guard + orderGate + rest
	}
	named := "&(pay) {\n rewrite * /api/order\n reverse_proxy " + shop.Addr() + "\n}\n"
	s := sitetest.OpenCaddyfile(t, "respond 418")
	if err := s.LoadSites(named, text("stockgate_guard")); err != nil {
		t.Fatal(err)
	}
	s.Refresh()
	lines := []string{"POST /old/order", "POST /twice/x", "POST /inside", "GET /method", "POST /hop", "POST /named", "POST /broken"}
	for i, line := range lines {
		before := around(s, "refused")
		for range 3 { // none of them is a failure of the upstream
			answer := s.AnswerTo(asks(line))
			if answer.Status != http.StatusBadRequest || answer.Header.Get("Stockgate-Refusal") != "malformed" {
				t.Errorf("%s: %d %s", line, answer.Status, answer.Body)
			}
		}
		for _, got := range shop.Take() {
			if got.URI != "/hop" {
				t.Errorf("%s: the shop got %+v", line, got)
			}
		}
		if after := around(s, "refused"); after != before+3 {
			t.Errorf("%s: counted %d times, want 3", line, after-before)
		}
		for _, fine := range []string{"POST /api/order", "POST /other", "GET /api/order"} {
			answer := s.AnswerTo(strings.Replace(asks(fine), "u1", fmt.Sprint("u", i), 1))
			if got := shop.Take(); answer.Status != http.StatusCreated || len(got) != 1 || (got[0].Header.Get("Stockgate-Token") != "") != (fine == "POST /api/order") {
				t.Errorf("%s: %d %s, the shop got %+v", fine, answer.Status, answer.Body, got)
			}
		}
	}
	if err := s.LoadSites(named, text("")); err != nil {
		t.Fatal(err)
	}
	s.Refresh()
	for _, line := range lines {
		before := around(s, "passed")
		s.AnswerTo(asks(line))
		if after := around(s, "passed"); after == before { // an error route may send one again
			t.Errorf("%s without a guard is not counted", line)
		}
		shop.Take()
	}
}

// TestSecondLookKnowsUpstreams: the route of a gate is one of its shop.
func TestSecondLookKnowsUpstreams(t *testing.T) {
	shop, other := sitetest.NewBackend(t, sitetest.Created), sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenCaddyfile(t, "respond 418")
	if err := s.LoadSites("", "@here host shop\nhandle @here {\nstockgate_guard\n"+orderGate+"reverse_proxy "+shop.Addr()+"\n}\n",
		"stockgate_guard\nhandle /a {\nrewrite * /api/order\nreverse_proxy "+other.Addr()+"\n}\nreverse_proxy "+shop.Addr()+"\n"); err != nil {
		t.Fatal(err)
	}
	s.Refresh()
	elsewhere := func(line string) string { return strings.Replace(asks(line), "Host: shop", "Host: elsewhere", 1) }
	if answer := s.AnswerTo(elsewhere("POST /a")); answer.Status != http.StatusCreated || len(other.Take()) != 1 {
		t.Errorf("another upstream: %d %s", answer.Status, answer.Body)
	}
	if answer := s.AnswerTo(elsewhere("POST /api/order")); answer.Status != http.StatusBadRequest || len(shop.Take()) != 0 {
		t.Errorf("the shop's order route on a site without its gate: %d %s", answer.Status, answer.Body)
	}
	if answer := s.AnswerTo(elsewhere("POST /other")); answer.Status != http.StatusCreated || len(shop.Take()) != 1 {
		t.Errorf("another route: %d %s", answer.Status, answer.Body)
	}
}

// TestExitsAs: Caddy rewrites orders behind the gate, and no other request may leave so.
func TestExitsAs(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenCaddyfile(t, `
	@buy {
		method POST
		path   /buy
	}
	stockgate_guard
	stockgate @buy {
		buyer {header.X-User-Id}
		line  {json.sku}
		exits_as /api/order
	}
	reverse_proxy @buy `+shop.Addr()+` {
		rewrite /api/order
	}
	reverse_proxy `+shop.Addr())
	if answer := s.AnswerTo(asks("POST /buy")); answer.Status != http.StatusCreated {
		t.Errorf("an order: %d %s", answer.Status, answer.Body)
	}
	if got := shop.Take(); len(got) != 1 || got[0].URI != "/api/order" || got[0].Header.Get("Stockgate-Token") == "" {
		t.Errorf("the shop got %+v", got)
	}
	for _, line := range []string{"POST /api/order", "POST /API/order/", "POST /api/order;x=y", "POST /index.php/api/order", "POST /api%252forder"} {
		if answer := s.AnswerTo(asks(line)); answer.Status != http.StatusBadRequest || len(shop.Take()) != 0 {
			t.Errorf("%s: %d %s", line, answer.Status, answer.Body)
		}
	}
	for _, line := range []string{"GET /api/order", "POST /api/orders", "POST /other"} {
		if answer := s.AnswerTo(asks(line)); answer.Status != http.StatusCreated || len(shop.Take()) != 1 {
			t.Errorf("%s: %d %s", line, answer.Status, answer.Body)
		}
	}
}

// TestSecondLookAtFastCGI checks the target that the client has sent, which PHP reads even if
// Caddy has rewritten it.
func TestSecondLookAtFastCGI(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	var orders atomic.Int32
	go fcgi.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		env := fcgi.ProcessEnv(r)
		if r.Method == http.MethodPost && (r.URL.Path == "/api/order" || env["PATH_INFO"] == "/api/order") && r.Header.Get("Stockgate-Token") == "" {
			orders.Add(1)
		}
		w.WriteHeader(http.StatusCreated)
	}))
	s := sitetest.OpenCaddyfile(t, `
	rewrite /api/order /index.php
	rewrite /path /index.php/api/order
	stockgate_guard
	`+orderGate+`
	reverse_proxy `+ln.Addr().String()+` {
		transport fastcgi {
			split .php
		}
	}`)
	for _, line := range []string{"POST /api/order", "POST /path"} {
		if answer := s.AnswerTo(asks(line)); answer.Status != http.StatusBadRequest || orders.Load() != 0 {
			t.Errorf("%s: %d %s", line, answer.Status, answer.Body)
		}
	}
	if answer := s.AnswerTo(asks("POST /index.php/api/orders")); answer.Status != http.StatusCreated {
		t.Errorf("another route: %d %s", answer.Status, answer.Body)
	}
}

// TestChecksDecideNothing checks that a gate that only checks does not replace the one that
// sells.
func TestChecksDecideNothing(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenCaddyfile(t, `
	stockgate_guard
	stockgate_check /api/* check {
		line {json.sku}
	}
	`+orderGate+`
	reverse_proxy /api/old `+shop.Addr()+` {
		rewrite /api/order
	}
	reverse_proxy `+shop.Addr())
	if answer := s.AnswerTo(asks("POST /api/old")); answer.Status != http.StatusBadRequest || len(shop.Take()) != 0 {
		t.Errorf("checked, and rewritten into an order: %d %s", answer.Status, answer.Body)
	}
	for _, line := range []string{"POST /api/order", "POST /api/other"} {
		if answer := s.AnswerTo(asks(line)); answer.Status != http.StatusCreated || len(shop.Take()) != 1 {
			t.Errorf("%s: %d %s", line, answer.Status, answer.Body)
		}
	}
}

// exitOf is the second look on a gate's server, around a transport.
func exitOf(g *gate.Gate, inner http.RoundTripper) http.RoundTripper {
	return guard.NewExit(inner, judge.CaddyServer(&g.Judge), zap.NewNop())
}

// guardOf is a guard on a gate's server.
func guardOf(t *testing.T, g *gate.Gate) *guard.Guard {
	t.Helper()
	made := new(guard.Guard)
	if err := made.Provision(caddy.Context{}); err != nil {
		t.Fatal(err)
	}
	made.Routes().Of(g.Server())
	return made
}

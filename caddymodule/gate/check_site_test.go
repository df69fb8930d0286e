package gate_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// With a check in front of forward_auth, an attempt that the rules refuse costs no call to the
// authentication, and the gate behind it reserves.
func TestCheckBeforeForwardAuth(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	auth := sitetest.NewBackend(t, func(w http.ResponseWriter, r *http.Request) {
		if user := r.Header.Get("X-Session"); user != "" {
			w.Header().Set("X-User-Id", user)
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
	})
	s := sitetest.OpenCaddyfile(t, sitetest.OrderMatcher+`stockgate_guard
	route {
		stockgate_check @order before {
			line {json.sku} {json.quantity}
		}
		forward_auth @order `+auth.Addr()+` {
			uri /check
		}
		stockgate @order main {
			buyer {rp.header.X-User-Id}
			line {json.sku} {json.quantity}
		}
		reverse_proxy `+shop.Addr()+`
	}`)
	ask := func(body string, headers ...string) sitetest.Answer {
		return s.Send(sitetest.WithBody(sitetest.NewOrder(headers...), body))
	}
	for body, want := range map[string]struct {
		status int
		reason string
	}{
		`{"sku":"nothing"}`:                             {404, "unknown_item"},
		`{"sku":"two"}`:                                 {404, "unknown_region"},
		`{"sku":"plain","quantity":10001}`:              {400, "quantity"},
		`{"sku":"plain","sku":"two"}`:                   {400, "malformed"},
		`{"sku":"` + strings.Repeat("x", 64<<10) + `"}`: {413, "body_too_large"},
	} {
		// a body that is too large is refused, and the connection closed, before the client has sent it all
		ask(body, "X-Session", "u1", "Expect", "100-continue").Is(t, want.status, want.reason)
	}
	if got := auth.Take(); len(got) != 0 {
		t.Errorf("the authentication was asked: %v", got)
	}
	ask(`{"sku":"plain"}`).Is(t, 401, "") // by the authentication, which alone asks for the user
	if a, s := auth.Take(), shop.Take(); len(a) != 1 || len(s) != 0 {
		t.Errorf("the authentication got %v, the shop %v", a, s)
	}
	const body = `{ "sku" : "plain", "quantity" : 2 }`
	ask(body, "X-Session", "u1").Is(t, 201, "")
	a, b := auth.Take(), shop.Take()
	if len(a) != 1 || a[0].Header.Get("Stockgate-Token") != "" || len(b) != 1 || b[0].Body != body || sitetest.ClaimsOf(t, b[0].Header.Get("Stockgate-Token")).Sub != "u1" {
		t.Errorf("the authentication got %v, the shop %v", a, b)
	}
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/pause", "")
	ask(body, "X-Session", "u1").Is(t, 409, "paused")
	if got := auth.Take(); len(got) != 0 {
		t.Errorf("the authentication was asked: %v", got)
	}
	if got := s.StockOf("plain"); got != "100 98 0 0 2" {
		t.Errorf("stock %s", got)
	}
}

// The other order, Caddy's own: the authentication comes first, and its user buys.
func TestGateAfterForwardAuth(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	auth := sitetest.NewBackend(t, func(w http.ResponseWriter, r *http.Request) {
		if user := r.Header.Get("X-Session"); user != "" {
			w.Header().Set("X-User-Id", user)
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
	})
	s := sitetest.OpenCaddyfile(t, sitetest.OrderMatcher+`stockgate_guard
	stockgate @order {
		buyer {rp.header.X-User-Id}
		line {json.sku}
	}
	forward_auth @order `+auth.Addr()+` {
		uri /check
	}
	reverse_proxy `+shop.Addr())
	s.Send(sitetest.NewOrder("X-Session", "u9")).Is(t, 201, "")
	s.Send(sitetest.NewOrder()).Is(t, 401, "")
	s.Send(sitetest.NewOrder("X-User-Id", "u9")).Is(t, 401, "")
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/pause", "")
	s.Send(sitetest.NewOrder("X-Session", "u9")).Is(t, 409, "paused")
	if a, b := auth.Take(), shop.Take(); len(a) != 4 || len(b) != 1 || sitetest.ClaimsOf(t, b[0].Header.Get("Stockgate-Token")).Sub != "u9" {
		t.Errorf("the authentication got %v, the shop %v", a, b)
	}
}

// A check forwards the client's own request: without a token and a
// reservation, with the same bytes, and it ends when the client disconnects.
func TestCheckPassesRequestsOn(t *testing.T) {
	leaves, left := make(chan struct{}), make(chan struct{})
	shop := sitetest.NewBackend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/cart/wait" {
			close(leaves)
			<-r.Context().Done()
			close(left)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	})
	s := sitetest.OpenCaddyfile(t, `@cart {
		method POST
		path /cart/*
	}
	stockgate_guard
	stockgate_check @cart cart {
		buyer {header.X-User-Id}
		line {json.sku}
	}
	reverse_proxy `+shop.Addr())
	post := func(path, body string, headers ...string) *http.Request {
		r := sitetest.NewOrder(headers...)
		r.URL.Path = path
		return sitetest.WithBody(r, body)
	}
	const body = "{\"sku\":\"few\",\r\n \"note\":\"\\u00e9\"}"
	a := s.Send(post("/cart/add", body, "X-User-Id", "u1", "Stockgate-Token", "forged", "X-HTTP-Method-Override", "PUT", "Accept-Encoding", "br"))
	a.Is(t, 202, "")
	if a.Header.Get("Stockgate-Reservation") != "" {
		t.Errorf("header %v", a.Header)
	}
	got := shop.Take()
	if len(got) != 1 || got[0].Body != body || got[0].Header.Get("X-Http-Method-Override") != "PUT" || got[0].Header.Get("Accept-Encoding") != "br" ||
		got[0].Header.Get("Stockgate-Token") != "" || got[0].Method != "POST" || got[0].URI != "/cart/add" {
		t.Errorf("the shop got %+v", got)
	}
	s.Send(post("/cart/add", body)).Is(t, 401, "no_buyer")
	s.Send(post("/cart/add", `{"sku":"nothing"}`, "X-User-Id", "u1")).Is(t, 404, "unknown_item")
	if got := shop.Take(); len(got) != 0 {
		t.Errorf("the shop got %v", got)
	}

	ctx, leave := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		resp, err := s.Client().Do(post("/cart/wait", body, "X-User-Id", "u1").WithContext(ctx))
		if err == nil {
			resp.Body.Close()
		}
		done <- err
	}()
	<-leaves
	leave()
	if err := <-done; err == nil {
		t.Error("the client got an answer")
	}
	<-left
	if got := s.StockOf("few"); got != "3 3 0 0 0" {
		t.Errorf("stock %s", got)
	}
	if metrics := s.Admin("GET", "/metrics", "").Body; !strings.Contains(metrics, `stockgate_attempts_total{outcome="passed",reason="",sale="double11"}`) {
		t.Error("what passed is not counted")
	}
}

// Both gates verify one token once: they share the verifier.
func TestCheckWithABearerToken(t *testing.T) {
	l, shop := sitetest.NewLogin(t), sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenCaddyfile(t, sitetest.OrderMatcher+`stockgate_guard
	route {
		stockgate_check @order before {
			jwt `+l.KeysURL()+`
			buyer {jwt.sub}
			line {json.sku}
		}
		stockgate @order main {
			jwt `+l.KeysURL()+`
			buyer {jwt.sub}
			line {json.sku}
		}
		reverse_proxy `+shop.Addr()+`
	}`)
	a := s.Send(sitetest.NewOrder())
	a.Is(t, 401, "no_buyer")
	if a.Header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("header %v", a.Header)
	}
	s.Send(bearerOf(l.TokenOf("u1", time.Hour))).Is(t, 201, "")
	if n := len(l.Take()); n != 1 {
		t.Errorf("%d requests for keys", n)
	}
}

// A check bounds what it lets pass at a time. What it refuses anyway, and what no sale lists, needs
// no room.
func TestCheckInFlight(t *testing.T) {
	arrived, let := make(chan struct{}, 3), make(chan struct{})
	shop := sitetest.NewBackend(t, func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-let
		w.WriteHeader(http.StatusCreated)
	})
	s := sitetest.OpenCaddyfile(t, sitetest.OrderMatcher+`stockgate_guard
	stockgate_check @order {
		line {json.sku} {json.quantity}
		max_in_flight 2
		other_items pass
	}
	reverse_proxy `+shop.Addr())
	ask := func(sku string) sitetest.Answer {
		return s.Send(sitetest.WithBody(sitetest.NewOrder(), `{"sku":"`+sku+`"}`))
	}
	var done sync.WaitGroup
	for _, sku := range []string{"plain", "few", "ordinary"} {
		done.Go(func() { ask(sku).Is(t, 201, "") })
		<-arrived
	}
	ask("plain").Is(t, 503, "busy")
	ask("two").Is(t, 404, "unknown_region")
	close(let)
	done.Wait()
	ask("plain").Is(t, 201, "")
}

package gate_test

import (
	"net/http"
	"strings"
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

package gate_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

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

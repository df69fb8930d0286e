package gate_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// The second look lets an order of a bypassed gate leave that has not met it, and no order of another gate. Closed doors stay
// closed, and not more orders are at the shop than the gate lets there.
func TestBypassAndTheRest(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	entered, leave := make(chan struct{}, 2), make(chan struct{})
	shop := sitetest.NewBackend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Slow") != "" {
			entered <- struct{}{}
			<-leave
		}
		w.WriteHeader(http.StatusCreated)
	})
	s := sitetest.OpenCaddyfile(t, strings.ReplaceAll(`stockgate_guard {
		close /api/closed
	}
	stockgate /api/order pay {
		buyer {header.X-User-Id}
		line  {json.sku}
		max_in_flight 1
	}
	stockgate /api/gift gift {
		buyer {header.X-User-Id}
		line  {json.sku}
	}
	stockgate /api/trial trial {
		buyer {header.X-User-Id}
		line  {json.sku}
		shadow
	}
	handle /old/* {
		uri replace /old /api
		reverse_proxy SHOP
	}
	reverse_proxy SHOP`, "SHOP", shop.Addr()))
	if a := s.Admin("POST", "/stockgate/gates/trial/bypass", `{"for":"1h"}`); a.Status != 400 || !strings.Contains(a.Body, "in shadow") {
		t.Errorf("%+v", a)
	}
	order := func(path string, header ...string) sitetest.Answer {
		r := sitetest.NewOrder(append([]string{"X-User-Id", "u1"}, header...)...)
		r.URL.Path = path
		return s.Send(r)
	}
	order("/old/order").Is(t, 400, "malformed")
	bypass(s, "pay")
	order("/old/order").Is(t, 201, "")
	order("/old/gift").Is(t, 400, "malformed")
	if a := order("/api/closed"); a.Status != 404 {
		t.Errorf("a closed door: %+v", a)
	}
	done := make(chan sitetest.Answer)
	go func() { done <- order("/api/order", "X-Slow", "1") }()
	<-entered
	order("/api/order").Is(t, 503, "busy")
	close(leave)
	(<-done).Is(t, 201, "")
	order("/api/order").Is(t, 201, "")
}

// Orders that wait for the shop stay in line during a bypass, and are sent as ever.
func TestBypassBesideALine(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	shop := newSlowShop(t)
	s := sitetest.OpenCaddyfile(t, queueSite(shop.Addr(), ""))
	first := s.BeginOrder(keyed("u0", "", `{"sku":"plain","quantity":1}`), shop.working)
	waits, passes := make(chan sitetest.Answer, 1), make(chan sitetest.Answer, 1)
	go func() { waits <- s.Send(keyed("u1", "", `{"sku":"plain","quantity":1}`)) }()
	s.Eventually("an order that waits", func() (string, bool) {
		n := waitingAt(s)
		return fmt.Sprint(n), n == 1
	})
	bypass(s, "main")
	go func() { passes <- s.Send(keyed("u2", "", `{"sku":"plain","quantity":1}`)) }()
	if buyer := <-shop.working; buyer != "u2" {
		t.Errorf("the shop works on the order of %s", buyer)
	}
	if n := waitingAt(s); n != 1 {
		t.Errorf("%d orders wait", n)
	}
	for range 3 {
		shop.done <- struct{}{}
	}
	for name, answer := range map[string]chan sitetest.Answer{"the one before": first, "the one that waited": waits, "the one that passed": passes} {
		if a := <-answer; a.Status != 201 {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

package caddymodule_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/sitetest"
)

// An item that is sold out is refused by the gate, by one that only checks and by `try`, which
// asks neither Redis nor the shop. It is sold again when units come back.
func TestWhatIsGone(t *testing.T) {
	shop := newBackend(t, created)
	s := openCaddyfile(t, trySite(shop.addr()))
	do[any](s, "POST", "/stockgate/sales/double11/items/plain/stock", `{"id":"away","delta":-100}`)
	gone := func() bool {
		s.send(order("X-User-Id", "u1")).Is(t, 409, "sold_out")
		r := s.tryAt("POST /api/order HTTP/1.1\nHost: a\nContent-Type: application/json\nX-User-Id: u2\n\n{\"sku\":\"plain\"}", "--gate", "main")
		return r.Status == 1 && strings.Contains(r.Out, "409 sold_out")
	}
	until(t, "that the edge remembers", gone)
	cart := func() sitetest.Answer {
		r, err := http.NewRequest("GET", "http://127.0.0.1/cart?sku=plain", nil)
		if err != nil {
			t.Fatal(err)
		}
		return s.send(r)
	}
	passed := 0 // while the edge does not remember, the gate that checks lets through
	until(t, "that the gate that checks refuses", func() bool {
		gone()
		if cart().Header.Get("Stockgate-Refusal") == "sold_out" {
			return true
		}
		passed++
		return false
	})
	if got := shop.take(); len(got) != passed {
		t.Errorf("the shop got %d requests, %d were let through", len(got), passed)
	}
	do[any](s, "POST", "/stockgate/sales/double11/items/plain/stock", `{"id":"back","delta":1}`)
	until(t, "a unit that came back", func() bool { return s.send(order("X-User-Id", "u3")).Status == 201 })
}

// until polls a condition until it is true.
func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

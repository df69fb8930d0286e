package operator_test

import (
	"encoding/base64"
	"net/http"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

// An item that is sold out is refused by the gate, by one that only checks and by `try`, which
// asks neither Redis nor the shop. It is sold again when units come back.
func TestWhatIsGone(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenCaddyfile(t, trySite(shop.Addr()))
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/items/plain/stock", `{"id":"away","delta":-100}`)
	tried := base64.StdEncoding.EncodeToString([]byte("POST /api/order HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nX-User-Id: u2\r\nContent-Length: 15\r\n\r\n{\"sku\":\"plain\"}"))
	gone := func() bool {
		s.Send(sitetest.NewOrder("X-User-Id", "u1")).Is(t, 409, "sold_out")
		a := sitetest.Do[adminapi.TryAnswer](s, "POST", "/stockgate/gates/main/try", `{"request":"`+tried+`"}`)
		return a.Refusal != nil && a.Refusal.Reason == "sold_out"
	}
	sitetest.Until(t, "that the edge remembers", gone)
	cart := func() sitetest.Answer {
		r, err := http.NewRequest("GET", "http://127.0.0.1/cart?sku=plain", nil)
		if err != nil {
			t.Fatal(err)
		}
		return s.Send(r)
	}
	passed := 0 // while the edge does not remember, the gate that checks lets through
	sitetest.Until(t, "that the gate that checks refuses", func() bool {
		gone()
		if cart().Header.Get("Stockgate-Refusal") == "sold_out" {
			return true
		}
		passed++
		return false
	})
	if got := shop.Take(); len(got) != passed {
		t.Errorf("the shop got %d requests, %d were let through", len(got), passed)
	}
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/items/plain/stock", `{"id":"back","delta":1}`)
	sitetest.Until(t, "a unit that came back", func() bool { return s.Send(sitetest.NewOrder("X-User-Id", "u3")).Status == 201 })
}

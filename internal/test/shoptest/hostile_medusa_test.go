//go:build shops

package shoptest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// What clients can do to a shop whose carts are named in the path.
func (m *medusa) hostile(t *testing.T) {
	before := m.orders()
	_, soldBefore := m.sold("SNK-1")
	item := m.variant("SNK-1")
	g := startGates(t, 2, medusaDir+"/Caddyfile", m.addr, item, 1000, "MEDUSA_KEY="+m.key)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	buyers := 0
	fill := func(t *testing.T) (*browser, string) {
		t.Helper()
		b := newBrowser(g.urls[buyers%len(g.urls)])
		t.Cleanup(b.close)
		buyers++
		cart, e := m.fillCart(ctx, b, item, 1, fmt.Sprintf("hostile%d@example.com", buyers))
		if e != "" {
			t.Fatal(e)
		}
		return b, cart
	}
	read := func() (int, int64) {
		orders, _ := m.sold("SNK-1")
		return orders, g.units("confirmed")
	}

	t.Run("no order", func(t *testing.T) {
		b, cart := fill(t)
		for _, h := range medusaRefused(cart) {
			h.try(ctx, t, b, read)
		}
		if e := complete(ctx, b, cart); e != ordered { // so that each of them could have placed it
			t.Error(e)
		}
	})
	t.Run("odd paths", func(t *testing.T) {
		b, cart := fill(t)
		for _, path := range []string{
			"/store/carts/" + cart + "//complete", "//store/carts/" + cart + "/complete", "/store/./carts/" + cart + "/complete", "/store/x/../carts/" + cart + "/complete",
			"/store/carts/" + cart + "%2fcomplete", "/store/carts/" + cart + "/complete%2f", "/store/carts/" + cart + "/%63omplete;x", "/store%2fcarts/" + cart + "/complete",
			`/store/carts/` + cart + `\complete`, "/store/carts/x/../" + cart + "/complete", "/admin/../store/carts/" + cart + "/complete", "/auth/..%2fstore/carts/" + cart + "/complete",
		} {
			h := hostile{name: path, method: "POST", path: path, want: either}
			h.try(ctx, t, b, read)
		}
	})
	t.Run("an order in other clothes", func(t *testing.T) {
		for _, h := range []hostile{
			{name: "a body", header: asJSON, body: `{"items":[],"completed_at":null}`},
			{name: "a form", header: []string{"Content-Type", "application/x-www-form-urlencoded"}, body: "id=x&_method=GET"},
			{name: "other fields", path: "?fields=id"},
			{name: "no fields", path: "?fields=-items,-email"},
			{name: "a slash", path: "/"},
			{name: "capitals", path: "", header: []string{"X-Http-Method-Override", "GET"}},
		} {
			b, cart := fill(t)
			h.method, h.path, h.want = "POST", "/store/carts/"+cart+"/complete"+h.path, either
			h.try(ctx, t, b, read)
			if e := complete(ctx, b, cart); e != ordered { // now, or by the request before
				t.Errorf("%s: %s", h.name, e)
			}
		}
	})
	t.Run("without a payment", func(t *testing.T) {
		b, cart := fill(t)
		if r, err := b.send(ctx, "POST", "/store/carts/"+cart+"/promotions", `{"promo_codes":["FREE"]}`); medusaEnd(r, err) != "" || at(r.body, "cart", "total") != 0.0 {
			t.Fatalf("%v %s", err, r.body)
		}
		h := hostile{name: "a coupon for everything", method: "POST", path: "/store/carts/" + cart + "/complete", want: anOrder}
		h.try(ctx, t, b, read)
	})
	t.Run("one cart on two edges", func(t *testing.T) {
		b, cart := fill(t)
		other := newBrowser(g.urls[buyers%len(g.urls)])
		defer other.close()
		other.header = b.header
		orders, confirmed := read()
		err := together(
			func() error { return wants(complete(ctx, b, cart)) },
			func() error { return wants(complete(ctx, other, cart)) })
		if after, sold := read(); err != nil || after != orders+1 || sold != confirmed+1 {
			t.Errorf("%d orders, %d units: %v", after-orders, sold-confirmed, err)
		}
	})
	t.Run("the cart changes while it is paid", func(t *testing.T) {
		before := g.asks()
		race(t, carts(t), 4, func(i int) error {
			b := newBrowser(g.urls[i%2])
			defer b.close()
			cart, e := m.fillCart(ctx, b, item, 1, fmt.Sprintf("race%d@example.com", i))
			if e != "" {
				return fmt.Errorf("filling: %s", e)
			}
			return together(
				func() error { // where the change came first, Medusa wants to be told again how it is paid
					_, err := b.send(ctx, "POST", "/store/carts/"+cart+"/complete", "")
					return err
				},
				func() error {
					_, err := b.send(ctx, "POST", "/store/carts/"+cart+"/line-items", `{"variant_id":`+quoted(item)+`,"quantity":1}`)
					return err
				})
		})
		if after := g.asks(); after != before {
			t.Errorf("an order differed from what was reserved: %q, before %q", after, before)
		}
	})
	t.Run("the books", func(t *testing.T) {
		g.settled()
		if _, units := m.sold("SNK-1"); int64(units-soldBefore) != g.units("confirmed") {
			t.Errorf("the shop has sold %d units, Redis %d", units-soldBefore, g.units("confirmed"))
		}
		g.reconcile(without(m.orders(), before))
	})
	t.Run("in doubt", func(t *testing.T) {
		shop := between(t, m.addr, func(r *http.Request, _ []byte) bool { return strings.Contains(r.URL.RawQuery, "completed_at,items") })
		g := startGates(t, 1, medusaDir+"/Caddyfile", shop, item, 1, "MEDUSA_KEY="+m.key)
		b := newBrowser(g.urls[0])
		defer b.close()
		cart, e := m.fillCart(ctx, b, item, 1, "doubt@example.com")
		if e != "" {
			t.Fatal(e)
		}
		if e := complete(ctx, b, cart); e != ordered {
			t.Fatal(e)
		}
		g.probed()
	})
}

// wants is an error unless the visit ended with an order.
func wants(e end) error {
	if e != ordered {
		return errors.New(string(e))
	}
	return nil
}

// medusaRefused are requests that place no order for a cart.
func medusaRefused(cart string) []hostile {
	at := "/store/carts/" + cart
	all := []hostile{
		{name: "a GET", method: http.MethodGet, path: at + "/complete"},
		{name: "a GET that says POST", method: http.MethodGet, path: at + "/complete?_method=POST", header: []string{"X-Http-Method-Override", "POST"}},
		{name: "a PUT", method: http.MethodPut, path: at + "/complete"},
		{name: "behind the path", path: at + "/complete/x"},
		{name: "completed by an update", path: at, body: `{"completed_at":"2020-01-01T00:00:00Z"}`},
		{name: "the administrators' orders", path: "/admin/orders", body: `{"cart_id":` + quoted(cart) + `}`},
		{name: "their draft orders", path: "/admin/draft-orders", body: `{"cart_id":` + quoted(cart) + `}`},
		{name: "a payment provider's call", path: "/hooks/payment/pp_system_default", body: `{"type":"payment_intent.succeeded","data":{"cart_id":` + quoted(cart) + `}}`},
		{name: "an upgrade", path: at + "/complete", header: []string{"Connection", "Upgrade", "Upgrade", "websocket"}},
		{name: "two carts", path: "/store/carts/" + cart + "," + cart + "/complete"},
		{name: "no cart", path: "/store/carts//complete"},
		{name: "an unknown cart", path: "/store/carts/cart_x/complete"},
	}
	for i := range all {
		fillIn(&all[i], "")
	}
	return all
}

package e2e_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stockgate/stockgate/internal/test/redistest"
)

// A buyer changes the cart before the payment, and the edge does not hear in time that Redis has
// swapped the holds, or the buyer is gone by then. What the first token names stays held and
// nothing else, the shop hears nothing of the second cart, and the buyer can come again. In the sale left the buyer has
// left, in slow redis is slow.
func TestSwapThatIsNotHeard(t *testing.T) {
	t.Parallel()
	s := new(recorder)
	proxy := redistest.NewProxy(t, redistest.Start(t).Addr())
	e := startEdge(t, site{
		// fence off: an answer after the lease would be no promise
		redis: proxy.Addr() + " {\n timeout 20s\n fence off\n}",
		gate:  "ref {json.cart}\noutcome backend\nhold_for 15m", shop: serve(t, s),
	})
	for _, test := range []struct{ sale, sku string }{{"left", "7"}, {"slow", "8"}} {
		s.forget()
		e.sell(test.sale, fmt.Sprintf(`  - {sku: %q, stock: 5}`, test.sku))
		cart := func(units int) order {
			return order{buyer: "ann", body: fmt.Sprintf(`{"sku":%q,"quantity":%d,"cart":"C-1"}`, test.sku, units)}
		}
		e.mustBuy(cart(2), 201, "")
		e.expect(test.sale, 3, 2, 0, 0)

		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		proxy.HoldReplies("EVALSHA swap")
		done := make(chan result, 1)
		go func() { done <- e.buyContext(ctx, cart(4)) }()
		if err := proxy.WaitHeld(t.Context()); err != nil {
			t.Fatal(err)
		}
		if test.sale == "left" {
			leave()
			e.untilBuyersLeft()
			proxy.ReleaseReplies()
		}
		if r := await(t, "the buyer's answer", done); r.err == nil && r.reason != "unavailable" {
			t.Errorf("%s: the buyer sees %v", test.sale, r)
		}
		proxy.ReleaseReplies()
		e.untilExpected(test.sale, 3, 2, 0, 0)
		if s.orders() != 1 {
			t.Errorf("%s: the shop got %d requests, one of them was sent", test.sale, s.orders())
		}
		e.mustBuy(cart(4), 201, "")
		e.expect(test.sale, 1, 4, 0, 0)
	}
}

package resolve_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// Providers deliver events in any order. Each of these tests is one order of them; those of one webhook are in
// batch_test.go.

const dead = "checkout.session.expired"

// An event about an order that no sale knows yet goes to the shop, and settles nothing. Delivered again
// once the order is known, it settles it.
func TestEventBeforeItsOrder(t *testing.T) {
	h := openHooks(t, stripeSite)
	h.settles(stripeEvent(dead, "unpaid", "SO-1"), 200, 1, "unknown_ref 1")
	h.settles(paidFor("SO-1"), 200, 1, "unknown_ref 1")
	h.hold("r1", "SO-1", "b", "few", 1, record.ModeBackend, time.Hour)
	if got := h.StockOf("few"); h.state("r1") != "held" || got != "3 2 1 0 0" {
		t.Errorf("the order is %s, stock %s", h.state("r1"), got)
	}
	h.settles(paidFor("SO-1"), 200, 1, "confirmed 1")
	h.states("confirmed", "r1")
}

// The shop refuses an event of an order that it does not know yet either: it comes again, and settles.
func TestEventThatTheShopDoesNotKnowYet(t *testing.T) {
	h := openHooks(t, stripeSite)
	h.shopSays(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) })
	h.settles(paidFor("SO-1"), 404, 1, "unknown_ref 1")
	h.hold("r1", "SO-1", "b", "few", 1, record.ModeBackend, time.Hour)
	h.settles(paidFor("SO-1"), 404, 1, "shop_failed 1")
	h.states("held", "r1")
	h.answers.Store(nil)
	h.settles(paidFor("SO-1"), 200, 1, "confirmed 1")
	h.settles(paidFor("SO-1"), 200, 1, "settled 1")
	if got := h.StockOf("few"); got != "3 2 0 0 1" {
		t.Errorf("stock %s", got)
	}
}

// A buyer tries again under the same order number, and pays. The end of the first attempt, told late, and its
// payment, told late, change nothing of the second.
func TestEventsOfTheFirstAttemptAfterTheSecond(t *testing.T) {
	for name, first := range map[string]func(h *hooks){
		"expired": func(h *hooks) { h.expired("r1", "SO-1", "few", 2) },
		"released by the shop": func(h *hooks) {
			h.hold("r1", "SO-1", "b", "few", 2, record.ModeBackend, time.Hour)
			h.shopper.Must(h.shopper.Release(t.Context(), "double11", "r1", reservation.SourceShop, "api"))
		},
		"released by a webhook": func(h *hooks) {
			h.hold("r1", "SO-1", "b", "few", 2, record.ModeBackend, time.Hour)
			h.settles(stripeEvent(dead, "unpaid", "SO-1"), 200, 1, "released 1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := openHooks(t, stripeSite)
			first(h)
			was := h.state("r1")
			h.hold("r2", "SO-1", "b", "few", 1, record.ModeBackend, time.Hour)
			h.settles(paidFor("SO-1"), 200, 1, "confirmed 1")
			h.settles(stripeEvent(dead, "unpaid", "SO-1"), 200, 1, "settled 1")
			h.settles(paidFor("SO-1"), 200, 1, "settled 1")
			h.states(was+" confirmed", "r1", "r2")
			if got := h.StockOf("few"); got != "3 2 0 0 1" {
				t.Errorf("stock %s", got)
			}
		})
	}
}

// The end of the first attempt comes while the buyer pays the second: it names the order, whose hold it
// ends, and the payment takes the units again; where others have them, an operator hears of it.
func TestEndOfTheFirstAttemptBeforeTheSecondPayment(t *testing.T) {
	h := openHooks(t, stripeSite)
	h.expired("r1", "SO-1", "few", 3)
	h.hold("r2", "SO-1", "b", "few", 3, record.ModeBackend, time.Hour)
	h.settles(stripeEvent(dead, "unpaid", "SO-1"), 200, 1, "released 1")
	h.settles(paidFor("SO-1"), 200, 1, "confirmed 1")
	h.states("expired confirmed", "r1", "r2")

	h.hold("r3", "SO-3", "b", "plain", 100, record.ModeBackend, time.Hour)
	h.settles(stripeEvent(dead, "unpaid", "SO-3"), 200, 1, "released 1")
	h.hold("other", "SO-4", "c", "plain", 1, record.ModeBackend, time.Hour)
	h.settles(paidFor("SO-3"), 503, 0, "refund_needed 1")
	h.settles(stripeEvent(dead, "unpaid", "SO-3"), 200, 1, "settled 1")
	h.states("unbacked", "r3")
	if got := h.StockOf("plain"); got != "100 99 1 0 0" {
		t.Errorf("stock %s", got)
	}
}

// A payment that is told again after the order was sent back, released or refunded sells nothing a second
// time, and takes no unit.
func TestPaymentAfterItsRefund(t *testing.T) {
	h := openHooks(t, stripeSite)
	h.hold("r1", "SO-1", "b", "few", 2, record.ModeBackend, time.Hour)
	h.settles(paidFor("SO-1"), 200, 1, "confirmed 1")
	h.OK("reservation", "return", "r1")
	h.settles(paidFor("SO-1"), 200, 1, "settled 1")
	h.settles(stripeEvent(dead, "unpaid", "SO-1"), 200, 1, "settled 1")
	if got := h.StockOf("few"); h.state("r1") != "confirmed" || got != "3 3 0 0 0" {
		t.Errorf("returned: %s, stock %s", h.state("r1"), got)
	}

	h.hold("r2", "SO-2", "b", "few", 2, record.ModeBackend, time.Hour)
	h.shopper.Must(h.shopper.Release(t.Context(), "double11", "r2", reservation.SourceShop, "api"))
	for range 2 {
		h.settles(paidFor("SO-2"), 200, 1, "settled 1")
	}
	if got := h.StockOf("few"); h.state("r2") != "released" || got != "3 3 0 0 0" {
		t.Errorf("released by the shop: %s, stock %s", h.state("r2"), got)
	}

	h.expired("r3", "SO-3", "few", 3)
	h.hold("other", "SO-4", "b", "few", 1, record.ModeBackend, time.Hour)
	h.settles(paidFor("SO-3"), 503, 0, "refund_needed 1")
	h.OK("reservation", "release", "r3", "--force")
	h.shopper.Must(h.shopper.Release(t.Context(), "double11", "other", reservation.SourceShop, "api"))
	h.settles(paidFor("SO-3"), 200, 1, "unknown_ref 1") // there is stock again: it is not taken
	if got := h.StockOf("few"); h.state("r3") != "released" || got != "3 3 0 0 0" {
		t.Errorf("refunded: %s, stock %s", h.state("r3"), got)
	}
}

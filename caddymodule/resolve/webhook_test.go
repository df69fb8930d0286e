package resolve_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

const (
	hookSecret = "whsec_a_secret_of_stripe"
	adyenKey   = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"
)

// stripeSite is a site with a webhook of Stripe's.
func stripeSite(shop, more string) string {
	return `route {
	stockgate_resolve /hook {
		verify stripe ` + hookSecret + `_old
		verify stripe ` + hookSecret + `
		ref {json.data.object.metadata.order} {json.data.object.client_reference_id}
		@paid {
			json type checkout.session.completed
			json data.object.payment_status paid
		}
		@dead {
			json type checkout.session.expired
		}
		confirm @paid
		release @dead
		` + more + `
	}
	reverse_proxy ` + shop + `
}`
}

// hooks is a site whose shop hears of payments.
type hooks struct {
	*sitetest.Site
	server  *redistest.Server
	shopper sitetest.Shopper
	shop    *sitetest.Backend
	answers atomic.Pointer[http.HandlerFunc] // of the shop; nil: 200 [accepted]
}

func openHooks(t *testing.T, site func(shop, more string) string) *hooks {
	t.Helper()
	server, app := sitetest.Redis(t)
	return openHooksAt(t, server, server.Addr(), app, site)
}

func openHooksAt(t *testing.T, server *redistest.Server, redis string, app map[string]any, site func(shop, more string) string) *hooks {
	t.Helper()
	h := &hooks{server: server}
	h.shop = sitetest.NewBackend(t, func(w http.ResponseWriter, r *http.Request) {
		if answer := h.answers.Load(); answer != nil {
			(*answer)(w, r)
			return
		}
		w.Header().Set("X-Shop", "yes")
		fmt.Fprint(w, "[accepted]")
	})
	h.Site = sitetest.Open(t, app)
	h.OpenSale()
	h.Redis = redis
	if err := h.LoadCaddyfile(site(h.shop.Addr(), "")); err != nil {
		t.Fatal(err)
	}
	h.Refresh()
	h.shopper = sitetest.NewShopper(t, server)
	return h
}

// shopSays gives the shop another answer.
func (h *hooks) shopSays(answer http.HandlerFunc) { h.answers.Store(&answer) }

// took is how many webhooks the shop got since the last call.
func (h *hooks) took() int {
	h.shop.Mu.Lock()
	defer h.shop.Mu.Unlock()
	n := len(h.shop.Got)
	h.shop.Got = nil
	return n
}

// hold makes a hold with a ref.
func (h *hooks) hold(id, ref, buyer, sku string, units int64, mode record.Mode, holdFor time.Duration) {
	h.T.Helper()
	b, err := h.shopper.SaleStock(h.T.Context(), "double11")
	if err != nil {
		h.T.Fatal(err)
	}
	_, refusal, err := h.shopper.Reserve(h.T.Context(), &reservation.ReserveRequest{
		ID: id, Sale: "double11", Version: b.Version, Buyer: buyer, Ref: ref,
		Lines: []sale.Line{{SKU: sku, Quantity: units}}, HoldFor: holdFor, Mode: mode,
	})
	if refusal != nil || err != nil {
		h.T.Fatalf("reserve %s: %v %v", id, refusal, err)
	}
}

// expired makes a hold with a ref that has expired.
func (h *hooks) expired(id, ref, sku string, units int64) {
	h.T.Helper()
	h.hold(id, ref, "b", sku, units, record.ModeBackend, time.Millisecond)
	for h.state(id) != "expired" {
		if _, err := h.shopper.Expire(h.T.Context(), "double11"); err != nil {
			h.T.Fatal(err)
		}
	}
}

func (h *hooks) record(id string) *reservation.Record {
	h.T.Helper()
	r, err := h.shopper.ReservationIn(h.T.Context(), "double11", id)
	if err != nil {
		h.T.Fatal(err)
	}
	return r
}

func (h *hooks) state(id string) string { h.T.Helper(); return string(h.record(id).State) }

// paidFor is an event of Stripe's about an order that is paid.
func paidFor(ref string) string { return stripeEvent("checkout.session.completed", "paid", ref) }

func stripeEvent(kind, status, ref string) string {
	return fmt.Sprintf(`{"id":"evt_1","type":%q,"data":{"object":{"client_reference_id":%q,"payment_status":%q,"metadata":{}}}}`, kind, ref, status)
}

// signed is a webhook of Stripe's at that moment.
func signed(body, secret string, at time.Time) *http.Request {
	r, err := http.NewRequest("POST", "http://127.0.0.1/hook", strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	mac := hmac.New(sha256.New, []byte(secret))
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac.Write([]byte(stamp + "." + body))
	r.Header.Set("Stripe-Signature", "t="+stamp+",v1="+hex.EncodeToString(mac.Sum(nil)))
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	return r
}

// deliver delivers a webhook of Stripe's, and checks status, and text in the answer.
func (h *hooks) deliver(body string, status int, text string) {
	h.T.Helper()
	a := h.Send(signed(body, hookSecret, time.Now()))
	if a.Status != status || !strings.Contains(a.Body, text) {
		h.T.Errorf("%d %q, want %d %q: %s", a.Status, a.Body, status, text, body)
	}
	if own := a.Header.Get("Cache-Control") == "no-store"; own && (a.Header.Get("X-Shop") != "" || a.Header.Get("Retry-After") == "" || a.Header.Get("Content-Type") != "text/plain; charset=utf-8") {
		h.T.Errorf("an answer of the edge's own with headers of the shop's, or without Retry-After: %v", a.Header)
	}
}

// counts runs f and checks by how much results of webhooks went up.
func (h *hooks) counts(f func(), want string) {
	h.T.Helper()
	before := h.results()
	f()
	var got []string
	for name, n := range h.results() {
		if n != before[name] {
			got = append(got, fmt.Sprint(name, " ", n-before[name]))
		}
	}
	if len(got) != 1 || got[0] != want {
		h.T.Errorf("it counts %q, want %s", got, want)
	}
}

func (h *hooks) results() map[string]int {
	h.T.Helper()
	out := make(map[string]int)
	for line := range strings.Lines(h.Admin("GET", "/metrics", "").Body) {
		if rest, ok := strings.CutPrefix(line, `stockgate_webhooks_total{result="`); ok {
			name, value, _ := strings.Cut(strings.TrimSpace(rest), `"} `)
			out[name], _ = strconv.Atoi(value)
		}
	}
	return out
}

// A payment confirms the hold of its order when the shop has taken it, byte by byte what was
// signed. Delivered again, it changes nothing and goes to the shop.
func TestWebhookConfirms(t *testing.T) {
	h := openHooks(t, stripeSite)
	h.hold("r1", "SO-1", "b", "plain", 2, record.ModeBackend, time.Minute)
	event := paidFor("SO-1")
	before := h.record("r1").Deadline
	h.shopSays(func(w http.ResponseWriter, _ *http.Request) {
		if left := h.record("r1").Deadline.Sub(before); h.state("r1") == "held" && left < 50*time.Minute {
			t.Errorf("while the shop has the payment, the hold lasts only %v longer", left)
		}
		w.Header().Set("X-Shop", "yes")
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprint(w, "thanks")
	})
	h.counts(func() { h.deliver(event, 202, "thanks") }, "confirmed 1")
	if h.shop.Got[0].Body != event || h.shop.Got[0].Header.Get("Stripe-Signature") == "" {
		t.Errorf("the shop got %+v", h.shop.Got[0])
	}
	if got := h.StockOf("plain"); h.state("r1") != "confirmed" || got != "100 98 0 0 2" || h.record("r1").Cause != "webhook" {
		t.Errorf("%+v, stock %s", h.record("r1"), got)
	}
	h.counts(func() { h.deliver(event, 202, "thanks") }, "settled 1")
	if got := h.StockOf("plain"); h.took() != 2 || got != "100 98 0 0 2" {
		t.Errorf("after the same again, stock %s", got)
	}

	// in doubt, and by the other secret and the other ref
	h.hold("r2", "SO-2", "b", "plain", 1, record.ModeResponse, time.Minute)
	h.shopper.Must(h.shopper.Doubt(t.Context(), "double11", "r2", "timeout"))
	both := strings.Replace(paidFor("SO-1"), `"metadata":{}`, `"metadata":{"order":"SO-2"}`, 1)
	if a := h.Send(signed(both, hookSecret+"_old", time.Now())); a.Status != 202 || h.state("r2") != "confirmed" {
		t.Errorf("in doubt: %d %s, %s", a.Status, a.Body, h.state("r2"))
	}
}

// From the order to the payment on one site, behind the guard: the gate holds the units, the
// webhook of the shop's provider confirms them.
func TestWebhookOfAnOrderOfTheGate(t *testing.T) {
	h := openHooks(t, func(shop, _ string) string {
		hook := strings.TrimPrefix(stripeSite(shop, ""), "route {")
		return sitetest.OrderMatcher + "stockgate_guard\nstockgate @order main {\nbuyer {header.X-User-Id}\nline {json.sku}\nref {json.order_no}\noutcome backend\nhold_for 15m\n}\n" + strings.TrimSuffix(hook, "}")
	})
	a := h.Send(sitetest.WithBody(sitetest.NewOrder("X-User-Id", "ann"), `{"sku":"few","order_no":"SO-1"}`))
	id := a.Header.Get("Stockgate-Reservation")
	if a.Status != 200 || h.StockOf("few") != "3 2 1 0 0" {
		t.Fatalf("%d %s, stock %s", a.Status, a.Body, h.StockOf("few"))
	}
	h.counts(func() { h.deliver(paidFor("SO-1"), 200, "[accepted]") }, "confirmed 1")
	if h.took() != 2 || h.state(id) != "confirmed" || h.StockOf("few") != "3 2 0 0 1" {
		t.Errorf("%s, stock %s", h.state(id), h.StockOf("few"))
	}
	// the payment page was left, and the buyer begins again under the same number
	a = h.Send(sitetest.WithBody(sitetest.NewOrder("X-User-Id", "bob"), `{"sku":"few","order_no":"SO-2"}`))
	h.counts(func() { h.deliver(stripeEvent("checkout.session.expired", "unpaid", "SO-2"), 200, "") }, "released 1")
	again := h.Send(sitetest.WithBody(sitetest.NewOrder("X-User-Id", "bob"), `{"sku":"few","order_no":"SO-2"}`))
	h.counts(func() { h.deliver(paidFor("SO-2"), 200, "") }, "confirmed 1")
	first, second := h.state(a.Header.Get("Stockgate-Reservation")), h.state(again.Header.Get("Stockgate-Reservation"))
	if first != "released" || second != "confirmed" || h.StockOf("few") != "3 1 0 0 2" {
		t.Errorf("%s and %s, stock %s", first, second, h.StockOf("few"))
	}
}

// What is no payment and no end of one, and what is about orders of others, goes to the shop as
// it came.
func TestWebhookUntouched(t *testing.T) {
	h := openHooks(t, stripeSite)
	h.hold("r1", "SO-1", "b", "plain", 1, record.ModeBackend, time.Minute)
	for body, counts := range map[string]string{
		stripeEvent("payment_intent.payment_failed", "unpaid", "SO-1"): "other 1", // a later attempt may still pay
		stripeEvent("checkout.session.completed", "unpaid", "SO-1"):    "other 1",
		paidFor("SO-9"):  "unknown_ref 1",
		paidFor(""):      "no_ref 1",
		paidFor("SO 1"):  "no_ref 1",
		"no JSON at all": "other 1",
	} {
		h.counts(func() { h.deliver(body, 200, "[accepted]") }, counts)
		if n := h.took(); n != 1 || h.state("r1") != "held" {
			t.Errorf("%s: the shop got it %d times, the hold is %s", body, n, h.state("r1"))
		}
	}
	h.shop.Close() // what touches no hold fails as without the handler
	h.deliver(paidFor("SO-9"), 502, "")
}

// Of a webhook with several payments none is settled alone: it does not go to the shop.
func TestWebhookOfSeveral(t *testing.T) {
	h := openHooks(t, func(shop, more string) string {
		site := strings.Replace(stripeSite(shop, more), "{json.data.object.metadata.order} {json.data.object.client_reference_id}", "{json.events.0.ref}", 1)
		return strings.Replace(site, "json data.object.payment_status paid", "json events.0.status paid", 1)
	})
	h.hold("r1", "SO-1", "b", "plain", 1, record.ModeBackend, time.Minute)
	h.hold("r2", "SO-2", "b", "plain", 1, record.ModeBackend, time.Minute)
	event := func(kind string, refs ...string) string {
		var list []string
		for _, ref := range refs {
			list = append(list, `{"status":"paid","ref":"`+ref+`"}`)
		}
		return `{"type":"` + kind + `","events":[` + strings.Join(list, ",") + `]}`
	}
	for _, kind := range []string{"checkout.session.completed", "checkout.session.expired"} {
		a := h.Send(signed(event(kind, "SO-1", "SO-2"), hookSecret, time.Now()))
		if a.Status != 400 || !strings.Contains(a.Body, "more elements than stockgate_resolve reads") || h.took() != 0 {
			t.Errorf("%s: %d %s", kind, a.Status, a.Body)
		}
	}
	if got := h.state("r1") + " " + h.state("r2"); got != "held held" {
		t.Errorf("the holds are %s", got)
	}
	h.counts(func() { h.deliver(event("another", "SO-1", "SO-2"), 200, "[accepted]") }, "other 1")
	h.deliver(event("checkout.session.completed", "SO-1"), 200, "[accepted]")
	if got := h.state("r1") + " " + h.state("r2"); got != "confirmed held" {
		t.Errorf("the holds are %s", got)
	}
}

// A payment that will not come releases the hold; one that comes after all takes the units again.
func TestWebhookReleases(t *testing.T) {
	h := openHooks(t, stripeSite)
	h.hold("r1", "SO-1", "b", "few", 3, record.ModeBackend, time.Hour)
	dead := stripeEvent("checkout.session.expired", "unpaid", "SO-1")
	h.shopSays(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	h.counts(func() { h.deliver(dead, 500, "") }, "shop_failed 1")
	if h.state("r1") != "held" {
		t.Fatalf("the shop has not taken it, and the hold is %s", h.state("r1"))
	}
	h.answers.Store(nil)
	h.counts(func() { h.deliver(dead, 200, "") }, "released 1")
	h.counts(func() { h.deliver(dead, 200, "") }, "settled 1")
	if got := h.StockOf("few"); h.state("r1") != "released" || got != "3 3 0 0 0" {
		t.Errorf("%s, stock %s", h.state("r1"), got)
	}
	h.counts(func() { h.deliver(paidFor("SO-1"), 200, "") }, "confirmed 1")
	h.counts(func() { h.deliver(dead, 200, "") }, "settled 1")
	if got := h.StockOf("few"); h.state("r1") != "confirmed" || got != "3 0 0 0 3" {
		t.Errorf("%s, stock %s", h.state("r1"), got)
	}
	// what the shop or an operator has released stays so
	h.hold("r2", "SO-2", "b", "plain", 1, record.ModeBackend, time.Hour)
	h.shopper.Must(h.shopper.Release(t.Context(), "double11", "r2", reservation.SourceShop, "api"))
	h.counts(func() { h.deliver(paidFor("SO-2"), 200, "") }, "settled 1")
	if h.state("r2") != "released" {
		t.Errorf("the shop's own release became %s", h.state("r2"))
	}
}

// The end of a payment that is told twice does not take away what the token of an earlier cart names.
func TestWebhookReleasesOnce(t *testing.T) {
	h := openHooks(t, stripeSite)
	sitetest.SwappedCart(t, h.shopper)
	dead := stripeEvent("checkout.session.expired", "unpaid", "SO-1")
	h.counts(func() { h.deliver(dead, 200, "") }, "released 1")
	h.counts(func() { h.deliver(dead, 200, "") }, "settled 1")
	if got := h.StockOf("few"); h.state("B") != "released" || h.state("B+") != "held" || got != "3 1 2 0 0" {
		t.Errorf("%s and %s, stock %s", h.state("B"), h.state("B+"), got)
	}
	h.counts(func() { h.deliver(paidFor("SO-1"), 200, "") }, "confirmed 1")
	if got := h.StockOf("few"); h.state("B+") != "confirmed" || got != "3 1 0 0 2" {
		t.Errorf("%s, stock %s", h.state("B+"), got)
	}
}

// A payment that comes after its hold has expired takes the units again, if they are there.
// Otherwise the shop does not hear of it until they are, or an operator has decided.
func TestWebhookAfterTheDeadline(t *testing.T) {
	h := openHooks(t, func(shop, more string) string { return "stockgate_status\n" + stripeSite(shop, more) })
	h.expired("r1", "SO-1", "few", 2)
	h.shopSays(func(w http.ResponseWriter, _ *http.Request) {
		if h.state("r1") != "confirmed" { // nothing else takes units again
			t.Errorf("the shop has the payment, and the hold is %s", h.state("r1"))
		}
		w.WriteHeader(500)
	})
	h.deliver(paidFor("SO-1"), 500, "")
	h.answers.Store(nil)
	h.counts(func() { h.deliver(paidFor("SO-1"), 200, "") }, "settled 1")
	if got := h.StockOf("few"); got != "3 1 0 0 2" {
		t.Errorf("stock %s", got)
	}
	h.took()

	h.expired("r2", "SO-2", "few", 1)
	h.expired("r3", "SO-3", "few", 1)
	h.hold("other", "SO-4", "b", "few", 1, record.ModeBackend, time.Hour)
	const text = "refund_needed: the units of this order are sold to others"
	for range 2 {
		h.counts(func() { h.deliver(paidFor("SO-2"), 503, text) }, "refund_needed 1")
	}
	h.deliver(paidFor("SO-3"), 503, text)
	if n := h.took(); n != 0 || h.state("r2") != "unbacked" || h.state("r3") != "unbacked" {
		t.Errorf("the shop got %d of them, %s, %s", n, h.state("r2"), h.state("r3"))
	}
	if n := len(h.Logged("refund_needed: a payment came for units that are sold to others, and is not forwarded: add stock and let the provider deliver it again, or refund the buyer and release the reservation")); n != 3 {
		t.Errorf("it is logged %d times", n)
	}
	h.Eventually("health has a sentence of its own", func() (string, bool) {
		said := h.Run("health").Out
		return said, strings.Contains(said, "refund needed: 2 orders of double11 are taken by the shop or paid for without stock")
	})
	if a := h.Get("/health"); !strings.Contains(a.Body, `"refund_needed":"orders are taken`) || strings.Contains(a.Body, "double11") {
		t.Errorf("the public health is %s", a.Body)
	}
	doctor := func() string { return h.Run("doctor").Out }
	if said := doctor(); !strings.Contains(said, "2 orders of double11 are taken by the shop or paid for without stock") {
		t.Errorf("the doctor says\n%s", said)
	}
	// there is more stock: the next delivery sells it
	if _, err := h.shopper.Adjust(t.Context(), "double11", "a1", "few", 1, "test"); err != nil {
		t.Fatal(err)
	}
	h.counts(func() { h.deliver(paidFor("SO-2"), 200, "") }, "confirmed 1")
	// the buyer has the money back: the shop hears of the payment, and nothing is sold
	h.OK("reservation", "release", "r3", "--force")
	h.counts(func() { h.deliver(paidFor("SO-3"), 200, "") }, "unknown_ref 1")
	if got := h.StockOf("few"); h.took() != 2 || h.state("r2") != "confirmed" || h.state("r3") != "released" || got != "4 0 1 0 3" {
		t.Errorf("%s, %s, stock %s", h.state("r2"), h.state("r3"), got)
	}
	if said := doctor(); strings.Contains(said, "without stock") {
		t.Errorf("it is resolved, and the doctor says\n%s", said)
	}
}

// Only a 2xx of the shop itself is its word; after anything else the hold goes on, and the
// provider delivers again.
func TestWebhookThatTheShopDoesNotTake(t *testing.T) {
	h := openHooks(t, stripeSite)
	h.hold("r1", "SO-1", "b", "plain", 1, record.ModeBackend, time.Minute)
	load := func(site string) {
		t.Helper()
		if err := h.LoadCaddyfile(site); err != nil {
			t.Fatal(err)
		}
	}
	for _, status := range []int{500, 503, 404, 400, 302} {
		h.shopSays(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		h.counts(func() { h.deliver(paidFor("SO-1"), status, "") }, "shop_failed 1")
	}
	load(stripeSite(h.shop.Addr(), "forward_timeout 1s"))
	let := make(chan struct{})
	h.shopSays(func(http.ResponseWriter, *http.Request) { <-let })
	h.counts(func() { h.deliver(paidFor("SO-1"), 503, "the shop did not answer") }, "shop_failed 1")
	close(let)
	load(stripeSite(h.shop.Addr(), ""))
	h.shopSays(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	h.counts(func() { h.deliver(paidFor("SO-1"), 503, "the shop did not answer") }, "shop_failed 1")
	if h.state("r1") != "held" || time.Until(h.record("r1").Deadline) < 55*time.Minute {
		t.Errorf("%+v", h.record("r1"))
	}
	h.answers.Store(nil)
	h.deliver(paidFor("SO-1"), 200, "[accepted]")
	if h.state("r1") != "confirmed" {
		t.Errorf("at last: %s", h.state("r1"))
	}

	// a success that another handler makes of a failure is none, and neither is no answer
	h.hold("r2", "SO-2", "b", "plain", 1, record.ModeBackend, time.Minute)
	h.shopSays(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	masked := strings.Replace(stripeSite(h.shop.Addr(), ""), "reverse_proxy "+h.shop.Addr(), "reverse_proxy "+h.shop.Addr()+" {\nhandle_response {\nrespond ok 200\n}\n}", 1)
	for name, site := range map[string]string{"masked": masked, "nothing": strings.Replace(masked[:strings.Index(masked, "reverse_proxy")], "route", "route", 1) + "}"} {
		load(site)
		h.counts(func() { h.deliver(paidFor("SO-2"), 503, "deliver it again") }, "shop_failed 1")
		if h.state("r2") != "held" {
			t.Errorf("%s: %s", name, h.state("r2"))
		}
	}
	// without a proxy the status decides
	load(masked[:strings.Index(masked, "reverse_proxy")] + "respond done 200\n}")
	h.deliver(paidFor("SO-2"), 200, "done")
	if h.state("r2") != "confirmed" {
		t.Errorf("without a proxy: %s", h.state("r2"))
	}
}

// Without Redis no payment goes to the shop, and none is acknowledged that Redis does not know.
func TestWebhookWithoutRedis(t *testing.T) {
	server, app := sitetest.Redis(t)
	proxy := redistest.NewProxy(t, server.Addr())
	h := openHooksAt(t, server, proxy.Addr(), app, stripeSite)
	h.hold("r1", "SO-1", "b", "plain", 1, record.ModeBackend, time.Hour)
	proxy.DropAll()
	h.counts(func() { h.deliver(paidFor("SO-1"), 503, "the stock cannot be reached") }, "redis_failed 1")
	h.counts(func() { h.deliver(paidFor("SO-9"), 503, "the stock cannot be reached") }, "redis_failed 1")
	if n := h.took(); n != 0 {
		t.Errorf("the shop got %d payments", n)
	}
	proxy.Heal()
	h.shopSays(func(w http.ResponseWriter, _ *http.Request) {
		proxy.DropAll()
		w.Header().Set("X-Shop", "yes")
		fmt.Fprint(w, "[accepted]")
	})
	h.counts(func() { h.deliver(paidFor("SO-1"), 503, "the stock cannot be reached") }, "redis_failed 1")
	if h.took() != 1 || h.state("r1") != "held" {
		t.Errorf("after the shop took it: %s", h.state("r1"))
	}
	h.answers.Store(nil)
	proxy.Heal()
	h.deliver(paidFor("SO-1"), 200, "[accepted]")
	if got := h.StockOf("plain"); h.state("r1") != "confirmed" || got != "100 99 0 0 1" {
		t.Errorf("%s, stock %s", h.state("r1"), got)
	}
}

// A webhook that is not signed goes nowhere, and is refused with what is wrong; a client that
// sends many of them is not listened to.
func TestWebhookNotAccepted(t *testing.T) {
	h := openHooks(t, stripeSite)
	h.hold("r1", "SO-1", "b", "plain", 1, record.ModeBackend, time.Minute)
	refused := func(r *http.Request, status int, text string) {
		t.Helper()
		a := h.Send(r)
		if a.Status != status || !strings.Contains(a.Body, text) || a.Header.Get("Content-Type") != "text/plain; charset=utf-8" || strings.Contains(a.Body, hookSecret) {
			t.Errorf("%d %s %v, want %d %s", a.Status, a.Body, a.Header, status, text)
		}
	}
	now := time.Now()
	without := signed(paidFor("SO-1"), hookSecret, now)
	without.Header.Del("Stripe-Signature")
	get := signed("", hookSecret, now)
	get.Method = "GET"
	huge := strings.Repeat(" ", 1<<20+1)
	chunked := signed(huge, hookSecret, now)
	chunked.Body, chunked.ContentLength = io.NopCloser(strings.NewReader(huge)), -1
	h.counts(func() { refused(without, 400, "Stripe-Signature is missing") }, "unreadable 1")
	h.counts(func() { refused(signed(paidFor("SO-1"), "whsec_another", now), 401, "no signature fits") }, "unauthorized 1")
	h.counts(func() {
		refused(signed(paidFor("SO-1"), hookSecret, now.Add(-6*time.Minute)), 401, "old, and 5m0s are allowed")
	}, "unauthorized 1")
	h.counts(func() {
		refused(sitetest.WithBody(signed(paidFor("SO-1"), hookSecret, now), paidFor("SO-2")), 401, "no signature fits")
	}, "unauthorized 1")
	h.counts(func() { refused(get, 405, "a webhook is a POST") }, "unreadable 1")
	h.counts(func() { // before any of it has come
		a := h.AnswerTo("POST /hook HTTP/1.1\nHost: a\nConnection: close\nContent-Length: 1048577\nStripe-Signature: " + signed(huge, hookSecret, now).Header.Get("Stripe-Signature") + "\n\n")
		if a.Status != 413 {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	}, "unreadable 1")
	h.counts(func() { refused(chunked, 413, "larger than 1048576 bytes") }, "unreadable 1")
	h.deliver(paidFor("SO-1")+strings.Repeat(" ", 1<<20-len(paidFor("SO-1"))), 200, "") // as large as it may be
	h.took()
	limited := 0
	for range 40 {
		if a := h.Send(signed(paidFor("SO-1"), "whsec_another", now)); a.Status == 429 {
			limited++
			if a.Header.Get("Retry-After") == "" || !strings.Contains(a.Body, "too many webhooks of this address were not accepted") {
				t.Errorf("%v %s", a.Header, a.Body)
			}
		}
	}
	if limited == 0 || h.took() != 0 {
		t.Errorf("of 40 wrong ones %d were not listened to", limited)
	}
}

// adyenSite is a site with Adyen's webhook.
func adyenSite(shop, more string) string {
	return `route {
	stockgate_resolve /hook {
		verify adyen ` + adyenKey + `
		ref {json.merchantReference}
		@paid {
			json eventCode AUTHORISATION
			json success true
		}
		@dead {
			json eventCode CANCELLATION OFFER_CLOSED
			json success true
		}
		confirm @paid
		release @dead
		` + more + `
	}
	reverse_proxy ` + shop + `
}`
}

// adyenItem is a signed item of a notification.
func adyenItem(ref, event, success string) string {
	key, err := hex.DecodeString(adyenKey)
	if err != nil {
		panic(err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("psp1::Shop:" + ref + ":1130:EUR:" + event + ":" + success))
	return fmt.Sprintf(`{"NotificationRequestItem":{"additionalData":{"hmacSignature":%q},"amount":{"currency":"EUR","value":1130},"eventCode":%q,"merchantAccountCode":"Shop","merchantReference":%q,"pspReference":"psp1","success":%q}}`,
		base64.StdEncoding.EncodeToString(mac.Sum(nil)), event, ref, success)
}

func notification(items ...string) *http.Request {
	body := `{"live":"false","notificationItems":[` + strings.Join(items, ",") + `]}`
	r, err := http.NewRequest("POST", "http://127.0.0.1/hook", strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	return r
}

// One notification of Adyen's may be about several orders.
func TestWebhookOfAdyen(t *testing.T) {
	h := openHooks(t, adyenSite)
	for i := range 4 {
		h.hold(fmt.Sprint("r", i), fmt.Sprint("SO-", i), "b", "plain", 1, record.ModeBackend, time.Minute)
	}
	a := h.Send(notification(adyenItem("SO-0", "AUTHORISATION", "true"), adyenItem("SO-1", "AUTHORISATION", "false"), adyenItem("SO-2", "OFFER_CLOSED", "true"),
		adyenItem("elsewhere", "AUTHORISATION", "true")))
	if a.Status != 200 || a.Body != "[accepted]" || h.took() != 1 {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if got := h.state("r0") + " " + h.state("r1") + " " + h.state("r2") + " " + h.state("r3"); got != "confirmed held released held" {
		t.Error(got)
	}
	changed := strings.Replace(adyenItem("SO-1", "AUTHORISATION", "false"), `"success":"false"`, `"success":"true"`, 1)
	for want, r := range map[string]*http.Request{
		"no signature fits":     notification(adyenItem("SO-3", "AUTHORISATION", "true"), changed),
		"notificationItems":     notification(),
		"hmacSignature is miss": notification(`{"NotificationRequestItem":{"eventCode":"AUTHORISATION"}}`),
	} {
		if a := h.Send(r); a.Status/100 != 4 || !strings.Contains(a.Body, want) || h.took() != 0 || h.state("r3") != "held" {
			t.Errorf("%d %s, want %s; %s", a.Status, a.Body, want, h.state("r3"))
		}
	}
	// one of them cannot be had: alone it waits, among others it keeps none of them from the shop
	h.expired("r4", "SO-4", "few", 3)
	h.hold("other", "SO-5", "b", "few", 1, record.ModeBackend, time.Hour)
	if a := h.Send(notification(adyenItem("SO-4", "AUTHORISATION", "true"))); a.Status != 503 || h.took() != 0 || h.state("r4") != "unbacked" {
		t.Errorf("%d %s, %s", a.Status, a.Body, h.state("r4"))
	}
	both := func() sitetest.Answer {
		return h.Send(notification(adyenItem("SO-3", "AUTHORISATION", "true"), adyenItem("SO-4", "AUTHORISATION", "true")))
	}
	if a := both(); a.Status != 200 || h.took() != 1 || h.state("r3") != "confirmed" || h.state("r4") != "unbacked" {
		t.Errorf("%d %s, %s %s", a.Status, a.Body, h.state("r3"), h.state("r4"))
	}
	h.shopper.Must(h.shopper.Release(t.Context(), "double11", "other", reservation.SourceShop, "api"))
	if a := both(); a.Status != 200 || h.took() != 1 || h.state("r3") != "confirmed" || h.state("r4") != "confirmed" {
		t.Errorf("%d %s, %s %s", a.Status, a.Body, h.state("r3"), h.state("r4"))
	}
}

// Where several buyers have the ref of a payment, nothing is guessed.
func TestWebhookOfARefThatTwoHave(t *testing.T) {
	h := openHooks(t, stripeSite)
	h.hold("r1", "SO-1", "ann", "plain", 1, record.ModeBackend, time.Hour)
	h.hold("r2", "SO-1", "bob", "plain", 1, record.ModeBackend, time.Hour)
	h.counts(func() { h.deliver(paidFor("SO-1"), 503, "several reservations have this ref") }, "ambiguous 1")
	h.deliver(stripeEvent("checkout.session.expired", "unpaid", "SO-1"), 200, "")
	if h.took() != 1 || h.state("r1") != "held" || h.state("r2") != "held" {
		t.Errorf("%s %s", h.state("r1"), h.state("r2"))
	}
	h.OK("reservation", "confirm", "r2")
	h.counts(func() { h.deliver(paidFor("SO-1"), 200, "") }, "settled 1")
	if h.took() != 1 || h.state("r1") != "held" {
		t.Errorf("after an operator's word: %s", h.state("r1"))
	}
}

// Nothing is guessed either where more buyers have a ref than are found by it, and all others have
// ended since.
func TestWebhookOfARefBeyondThoseThatAreFound(t *testing.T) {
	h := openHooks(t, stripeSite)
	for i := range record.MaxNamed + 1 {
		h.hold(fmt.Sprint("r", i), "SO-1", fmt.Sprint("buyer ", i), "plain", 1, record.ModeBackend, time.Hour)
	}
	for i := range record.MaxNamed {
		h.shopper.Must(h.shopper.Release(t.Context(), "double11", fmt.Sprint("r", i), reservation.SourceUnsent, ""))
	}
	h.counts(func() { h.deliver(paidFor("SO-1"), 503, "several reservations have this ref") }, "ambiguous 1")
	if last := fmt.Sprint("r", record.MaxNamed); h.took() != 0 || h.state(last) != "held" {
		t.Errorf("it is not known whose payment it is, and %s is %s", last, h.state(last))
	}
	h.OK("reservation", "confirm", fmt.Sprint("r", record.MaxNamed))
	h.counts(func() { h.deliver(paidFor("SO-1"), 200, "") }, "settled 1")
	if h.took() != 1 {
		t.Error("after an operator's word the shop does not get it")
	}
}

// edge is another Caddy, in a process of its own, with the same webhook.
type edge struct {
	cmd    *exec.Cmd
	client *http.Client
}

func (h *hooks) edge(name, redis string) *edge {
	h.T.Helper()
	socket := h.Path(name)
	text := fmt.Sprintf("{\nadmin off\npersist_config off\nauto_https off\nstorage file_system %s\nlog {\noutput file %s\n}\nstockgate {\nredis %s {\ntimeout 20s\n}\n}\n}\nhttp:// {\nbind unix/%s\n%s\n}\n",
		h.Path("storage"), h.Path(name+".log"), redis, socket, stripeSite(h.shop.Addr(), ""))
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		h.T.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		h.T.Fatal(err)
	}
	e := &edge{cmd: exec.Command(self, "run", "--config", h.File(name+".json", string(config)))}
	e.cmd.Env = append(os.Environ(), sitetest.BeCaddyEnv+"=1", "GORACE=atexit_sleep_ms=0", "HOME="+h.T.TempDir())
	if err := e.cmd.Start(); err != nil {
		h.T.Fatal(err)
	}
	h.T.Cleanup(func() {
		e.cmd.Process.Kill()
		e.cmd.Wait()
	})
	e.client = &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	h.Eventually("serving", func() (string, bool) {
		resp, err := e.client.Do(signed(paidFor("warm-up"), hookSecret, time.Now()))
		if err != nil {
			return err.Error(), false
		}
		resp.Body.Close()
		return resp.Status, resp.StatusCode == 200
	})
	h.took()
	return e
}

// A provider that does not wait for the answer changes nothing of how it ends.
func TestWebhookWhoseProviderLeaves(t *testing.T) {
	h := openHooks(t, func(shop, more string) string { return stripeSite(shop, more+"\nforward_timeout 10m") })
	h.hold("r1", "SO-1", "b", "plain", 1, record.ModeBackend, time.Hour)
	leaving, leave := context.WithCancel(t.Context())
	let := make(chan struct{})
	h.shopSays(func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); !strings.Contains(string(body), "paid\"") {
			return
		}
		leave()
		<-let
		if r.Context().Err() != nil {
			t.Error("the shop was left alone with it")
		}
		fmt.Fprint(w, "[accepted]")
	})
	if _, err := h.Client().Do(signed(paidFor("SO-1"), hookSecret, time.Now()).WithContext(leaving)); err == nil {
		t.Fatal("it was answered")
	}
	for range 50 { // by then the edge has seen that the provider has left
		h.deliver("another event", 200, "")
	}
	close(let)
	h.Eventually("confirmed", func() (string, bool) { return h.state("r1"), h.state("r1") == "confirmed" })
}

// A configuration that would settle holds by what is not signed is refused.
func TestWebhookConfigurations(t *testing.T) {
	h := openHooks(t, stripeSite)
	for from, c := range map[string]struct{ to, says string }{
		"verify stripe " + hookSecret + "\n":     {"verify adyen " + adyenKey + "\n", "a stockgate_resolve and a path of its own"},
		"verify stripe " + hookSecret + "_old":   {"verify stripe {env.NO_SUCH_SECRET}", "the secret is empty"},
		"verify stripe " + hookSecret + "_old\n": {"verify stripe {env:STRIPE_SECRET}\n", "the secret has a placeholder that is not known here"},
		"ref {json.data.object.metadata.order}":  {"ref {header.X-Order}", "only the body is signed"},
		"ref {json.data.object.metadata.order} ": {"ref {json.data..x} ", "is no path"},
		"confirm @paid":                          {"release @paid", "confirm is missing"},
		"release @dead":                          {"release 404", "there is no event 404"},
		"json type checkout.session.expired":     {"status 200", "unrecognized subdirective"},
		"json data.object.payment_status paid":   {"json !data.object.payment_status paid", "write either"},
	} {
		text := stripeSite(h.shop.Addr(), "")
		if !strings.Contains(text, from) {
			t.Fatalf("the site has no %q", from)
		}
		if err := h.LoadCaddyfile(strings.Replace(text, from, c.to, 1)); err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), hookSecret) {
			t.Errorf("%s: %v, want %s", c.to, err, c.says)
		}
	}
	for more, says := range map[string]string{
		"hold_for 10s": "it must be 1m0s to 24h0m0s", "forward_timeout 2h": "at most half of hold_for", "hold_for 25h": "it must be 1m0s to 24h0m0s",
		"retry 5": "unrecognized subdirective", "ref {json.x}": "given twice", "verify klarna x": "write `verify stripe",
	} {
		if err := h.LoadCaddyfile(stripeSite(h.shop.Addr(), more)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %s", more, err, says)
		}
	}
	unsigned := strings.Replace(adyenSite(h.shop.Addr(), ""), "json eventCode AUTHORISATION", "json paymentMethod visa", 1)
	if err := h.LoadCaddyfile(unsigned); err == nil || !strings.Contains(err.Error(), "adyen does not sign paymentMethod") {
		t.Error(err)
	}
	for _, handler := range []string{
		`{"handler":"stockgate_resolve"}`,
		`{"handler":"stockgate_resolve","verify":[{"scheme":"stripe","key":"whsec_1"}],"ref":["{json.a}"],"events":{"a":{"status":["200"]}},"rules":[{"outcome":"confirm","when":["@a"]}]}`,
		`{"handler":"stockgate_resolve","verify":[{"scheme":"stripe","key":"whsec_1"}],"ref":["{json.a}"],"rules":[{"outcome":"confirm","when":["200"]}]}`,
		`{"handler":"stockgate_resolve","verify":[{"scheme":"adyen","key":"` + adyenKey + `","tolerance":"5m"}],"ref":["{json.merchantReference}"],"events":{"a":{"json":[{"path":"success"}]}},"rules":[{"outcome":"confirm","when":["@a"]}]}`,
	} {
		if err := h.LoadGate(handler); err == nil || !strings.Contains(err.Error(), "stockgate_resolve: ") {
			t.Errorf("%s: %v", handler, err)
		}
	}
}

// The shop's API finds a reservation by its ref, and names those that share one.
func TestAPIByRef(t *testing.T) {
	s, shopper, _ := sitetest.OpenAPI(t)
	shopper.HoldRef("r1", "order/1", "plain")
	path := "/refs/order%2F1"
	if r := sitetest.RecordOf(t, s.API("GET", path, "")); r.ID != "r1" || r.State != record.Held {
		t.Errorf("%+v", r)
	}
	before := sitetest.RecordOf(t, s.API("GET", path, "")).Deadline
	do := func(word, body string, state record.State) reservation.Record {
		t.Helper()
		r := sitetest.RecordOf(t, s.API("POST", path+"/"+word, body))
		if r.ID != "r1" || r.State != state {
			t.Errorf("%s: %+v", word, r)
		}
		return r
	}
	if r := do("extend", `{"hold_for":"1h"}`, record.Held); r.Deadline.Before(before) {
		t.Errorf("%v, it was %v", r.Deadline, before)
	}
	for range 2 {
		do("confirm", "", record.Confirmed)
	}
	do("return", `{"id":"t1"}`, record.Confirmed)
	if p := sitetest.ProblemOf(t, s.API("POST", path+"/release", "")); p.Reason != "conflict" {
		t.Errorf("%+v", p)
	}
	shopper.HoldRef("r2", "order-2", "plain")
	for range 2 { // the same again gets the same answer
		if r := sitetest.RecordOf(t, s.API("POST", "/refs/order-2/release?sale=double11", "")); r.ID != "r2" || r.State != record.Released {
			t.Errorf("%+v", r)
		}
	}
	for _, path := range []string{"/refs/order-3", "/refs/order-3/confirm"} {
		method := map[bool]string{true: "POST", false: "GET"}[strings.HasSuffix(path, "confirm")]
		if p := sitetest.ProblemOf(t, s.API(method, path, "")); p.Status != 404 || p.Reason != "not_found" {
			t.Errorf("%s: %+v", path, p)
		}
	}
	if p := sitetest.ProblemOf(t, s.API("GET", "/refs/%20", "")); p.Reason != "malformed" || !strings.Contains(p.Detail, "the ref") {
		t.Errorf("%+v", p)
	}
	b, err := shopper.SaleStock(t.Context(), "double11")
	if err != nil {
		t.Fatal(err)
	}
	for _, buyer := range []string{"ann", "bob"} {
		if _, refusal, err := shopper.Reserve(t.Context(), &reservation.ReserveRequest{
			ID: "of-" + buyer, Sale: "double11", Version: b.Version, Buyer: buyer, Ref: "both", Lines: []sale.Line{{SKU: "plain", Quantity: 1}},
			HoldFor: time.Hour, Mode: record.ModeBackend,
		}); refusal != nil || err != nil {
			t.Fatal(refusal, err)
		}
	}
	var p struct {
		Reason       string
		Reservations []string
	}
	a := s.API("POST", "/refs/both/confirm", "")
	if err := json.Unmarshal([]byte(a.Body), &p); err != nil || a.Status != 409 || p.Reason != "ambiguous" || fmt.Sprint(p.Reservations) != "[of-ann of-bob]" {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if r := sitetest.RecordOf(t, s.API("POST", "/reservations/of-bob/confirm", "")); r.State != record.Confirmed {
		t.Errorf("%+v", r)
	}
}

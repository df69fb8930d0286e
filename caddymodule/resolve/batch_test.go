package resolve_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// batchSite is a site with a webhook that tells of several payments.
func batchSite(shop, more string) string {
	return `route {
	stockgate_resolve /hook {
		verify stripe ` + hookSecret + `
		events {json.data.events}
		ref {json.order.no}
		@paid {
			json kind paid
		}
		@dead {
			json kind expired
		}
		confirm @paid
		release @dead
		` + more + `
	}
	reverse_proxy ` + shop + `
}`
}

// batchOf is a body with events, each as "kind ref".
func batchOf(events ...string) string {
	var list []string
	for _, e := range events {
		kind, ref, _ := strings.Cut(e, " ")
		list = append(list, fmt.Sprintf(`{"kind":%q,"order":{"no":%q}}`, kind, ref))
	}
	return `{"data":{"events":[` + strings.Join(list, ",") + `]}}`
}

// settles delivers a body, and checks the status, how often the shop got it, and what is counted.
func (h *hooks) settles(body string, status, took int, counts string) {
	h.T.Helper()
	before := h.results()
	a := h.Send(signed(body, hookSecret, time.Now()))
	var got []string
	after := h.results()
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if n := after[name] - before[name]; n != 0 {
			got = append(got, fmt.Sprint(name, " ", n))
		}
	}
	if n := h.took(); a.Status != status || n != took || strings.Join(got, ", ") != counts {
		h.T.Errorf("%s: %d %q, the shop got it %d times, it counts %q; want %d, %d, %s", body, a.Status, a.Body, n, got, status, took, counts)
	}
}

func (h *hooks) states(want string, ids ...string) {
	h.T.Helper()
	var got []string
	for _, id := range ids {
		got = append(got, h.state(id))
	}
	if strings.Join(got, " ") != want {
		h.T.Errorf("%q are %q, want %s", ids, got, want)
	}
}

// Each event of a webhook is settled by itself, and what cannot be settled keeps none of them from
// the shop.
func TestWebhookOfABatch(t *testing.T) {
	h := openHooks(t, batchSite)
	for _, id := range []string{"paid", "dead", "before", "waits"} {
		h.hold(id, "SO-"+id, "b "+id, "plain", 1, record.ModeBackend, time.Hour)
	}
	h.hold("two-1", "SO-two", "ann", "plain", 1, record.ModeBackend, time.Hour)
	h.hold("two-2", "SO-two", "bob", "plain", 1, record.ModeBackend, time.Hour)
	h.expired("gone", "SO-gone", "few", 3)
	h.hold("other", "SO-other", "b", "few", 1, record.ModeBackend, time.Hour)
	h.shopper.Must(h.shopper.Confirm(t.Context(), "double11", "before", reservation.SourceShop, "api"))
	all := batchOf("paid SO-gone", "paid SO-two", "paid SO-paid", "paid SO-foreign", "expired SO-dead", "paid SO-before", "opened SO-waits", "paid ")

	h.shopSays(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	h.settles(all, 500, 1, "ambiguous 1, no_ref 1, other 1, refund_needed 1, settled 1, shop_failed 1, unknown_ref 1")
	h.states("held held held held held unbacked", "paid", "dead", "waits", "two-1", "two-2", "gone")
	h.answers.Store(nil)
	h.settles(all, 200, 1, "ambiguous 1, confirmed 1, no_ref 1, other 1, refund_needed 1, released 1, settled 1, unknown_ref 1")
	h.states("confirmed released confirmed held held held unbacked", "paid", "dead", "before", "waits", "two-1", "two-2", "gone")
	for _, text := range []string{
		"refund_needed: a payment came for units that are sold to others, and goes to the shop because others came with it: add stock and confirm the reservation, or cancel the order, refund the buyer and release the reservation",
		"a payment names a ref that several reservations have, and goes to the shop because others came with it: confirm the one that was paid for with `caddy stockgate reservation confirm` before its deadline",
	} {
		if n := len(h.Logged(text)); n != 2 {
			t.Errorf("it is logged %d times: %s", n, text)
		}
	}
	// delivered again it changes nothing; where nothing of it can be settled, the shop gets it too
	h.settles(all, 200, 1, "ambiguous 1, no_ref 1, other 1, refund_needed 1, settled 3, unknown_ref 1")
	h.settles(batchOf("paid SO-gone", "opened SO-waits"), 200, 1, "other 1, refund_needed 1")
	// alone, they wait for an operator
	h.settles(batchOf("paid SO-gone"), 503, 0, "refund_needed 1")
	h.settles(batchOf("paid SO-two"), 503, 0, "ambiguous 1")
	if got := h.StockOf("plain"); got != "100 95 3 0 2" {
		t.Errorf("stock %s", got)
	}
}

// Of two events about one order in one webhook the payment is the last word, in either order, and no
// other buyer gets its units in between.
func TestWebhookOfOneOrderTwice(t *testing.T) {
	h := openHooks(t, batchSite)
	for i, events := range [][]string{{"paid", "expired"}, {"expired", "paid"}, {"expired", "paid", "expired", "paid"}} {
		id := fmt.Sprint("r", i)
		h.hold(id, id, "b", "few", 1, record.ModeBackend, time.Hour)
		for j := range events {
			events[j] += " " + id
		}
		h.settles(batchOf(events...), 200, 1, fmt.Sprint("confirmed 1, settled ", len(events)-1))
		if got, want := h.StockOf("few"), fmt.Sprint("3 ", 2-i, " 0 0 ", 1+i); h.state(id) != "confirmed" || got != want {
			t.Errorf("%q: %s, stock %s, want %s", events, h.state(id), got, want)
		}
	}
	h.hold("r9", "r9", "b", "plain", 1, record.ModeBackend, time.Hour)
	h.settles(batchOf("expired r9", "expired r9"), 200, 1, "released 1, settled 1")
	h.expired("r10", "r10", "plain", 1)
	h.settles(batchOf("expired r10", "paid r10", "expired r10"), 200, 1, "confirmed 1, settled 2")
	h.states("released confirmed", "r9", "r10")
}

// A body without an array of events is refused; an empty one has nothing to settle.
func TestWebhookWhoseEventsCannotBeTold(t *testing.T) {
	h := openHooks(t, batchSite)
	h.hold("r1", "SO-1", "b", "plain", 1, record.ModeBackend, time.Hour)
	h.counts(func() { h.deliver(`{"data":{"events":[]}}`, 200, "[accepted]") }, "other 1")
	h.took()
	many := make([]string, 257)
	for i := range many {
		many[i] = "opened SO-1"
	}
	for body, text := range map[string]string{
		`no JSON`:                  "the body is not valid JSON: it must have its events in the array data.events",
		`[]`:                       "the body has no data.events",
		`{"data":{}}`:              "the body has no data.events",
		`{"data":[{"events":1}]}`:  "the body has no data.events",
		`{"data":{"Events":[]}}`:   "the body has no data.events",
		`{"data":{"events":null}}`: "the data.events is no array",
		`{"data":{"events":{"kind":"paid","order":{"no":"SO-1"}}}}`: "the data.events is no array",
		`{"data":{"events":[null]}}`:                                "element 0 of the array data.events is no event: it must be an object",
		strings.Replace(batchOf("paid SO-1"), "]", `,"SO-2"]`, 1):   "element 1 of the array data.events is no event: it must be an object",
		batchOf(many...): "the array data.events has 257 events: there may be 0 to 256",
	} {
		a := h.Send(signed(body, hookSecret, time.Now()))
		if a.Status != 400 || !strings.Contains(a.Body, text) || h.took() != 0 || h.state("r1") != "held" {
			t.Errorf("%s: %d %s, %s; want %s", body, a.Status, a.Body, h.state("r1"), text)
		}
	}
	for range 40 { // they are signed: none of them counts against the provider's address
		h.Send(signed(`{}`, hookSecret, time.Now()))
	}
	h.deliver(batchOf(many[:256]...), 200, "")
	h.deliver("\ufeff"+batchOf("paid SO-1"), 200, "")
	h.states("confirmed", "r1")

	// the body is the array
	if err := h.LoadCaddyfile(strings.Replace(batchSite(h.shop.Addr(), ""), "{json.data.events}", "{json}", 1)); err != nil {
		t.Fatal(err)
	}
	h.hold("r2", "SO-2", "b", "plain", 1, record.ModeBackend, time.Hour)
	h.counts(func() { h.deliver(`[{"kind":"paid","order":{"no":"SO-2"}}]`, 200, "") }, "confirmed 1")
	h.states("confirmed", "r2")
}

// Redis and the shop decide of a batch as of one event: nothing is lost, and what was settled stays so.
func TestWebhookOfABatchWithoutRedis(t *testing.T) {
	server, app := sitetest.Redis(t)
	proxy := redistest.NewProxy(t, server.Addr())
	h := openHooksAt(t, server, proxy.Addr(), app, batchSite)
	h.hold("r1", "SO-1", "b", "plain", 1, record.ModeBackend, time.Hour)
	h.hold("r2", "SO-2", "b", "plain", 1, record.ModeBackend, time.Hour)
	h.expired("gone", "SO-gone", "few", 3)
	h.hold("other", "SO-other", "b", "few", 1, record.ModeBackend, time.Hour)
	body := batchOf("paid SO-1", "paid SO-gone", "paid SO-2")
	proxy.DropAll()
	h.settles(body, 503, 0, "redis_failed 1")
	proxy.Heal()
	h.shopSays(func(w http.ResponseWriter, _ *http.Request) {
		proxy.DropAll()
		fmt.Fprint(w, "[accepted]")
	})
	h.settles(body, 503, 1, "redis_failed 1, refund_needed 1")
	h.states("held held unbacked", "r1", "r2", "gone")
	proxy.Heal()
	h.answers.Store(nil)
	h.deliver(body, 200, "") // the edge itself may have told Redis by now
	if n := h.took(); n != 1 {
		t.Errorf("the shop got it %d times", n)
	}
	h.states("confirmed confirmed unbacked", "r1", "r2", "gone")
}

// An option that can never read an event is an error when the configuration loads.
func TestBatchConfigurations(t *testing.T) {
	h := openHooks(t, batchSite)
	for to, says := range map[string]string{
		"events data.events":          "write {json.PATH}",
		"events {json.}":              "is no path",
		"events {json.a..b}":          "is no path",
		"events {jsonx}":              "write {json.PATH}",
		"events {form.events}":        "write {json.PATH}",
		"events {json.a} {json.b}":    "events",
		"events {json.a}\nevents {b}": "given twice",
	} {
		err := h.LoadCaddyfile(strings.Replace(batchSite(h.shop.Addr(), ""), "events {json.data.events}", to, 1))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %s", to, err, says)
		}
	}
	err := h.LoadCaddyfile(adyenSite(h.shop.Addr(), "events {json.notificationItems}"))
	if err == nil || !strings.Contains(err.Error(), "adyen has its events in notificationItems, and needs no events") {
		t.Error(err)
	}
}

package gate_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// differing is an option that two edges of one sale have with different values.
type differing struct {
	gate, other   string // the options of the gate
	guard         string // the other edge's
	uri, body     string
	graphql       bool
	repeated      int    // what the other edge answers to a repeat by key
	reason        string // of a refusal
	passes        bool   // the repeat goes to the shop without a token
	becomes       string // of an order that waits, after a reload: sent, skipped or released
	few, otherFew int    // units of few with each order, at both edges
}

var differences = map[string]differing{
	"absent": {
		gate: "line plain {form.plain}\nline few {form.few} absent 0", other: "line plain {form.plain}\nline few {form.few} absent 1", body: "plain=1",
		repeated: 201, becomes: "skipped", otherFew: 1,
	},
	"graphql": {
		gate: "graphql order\nline few {graphql.n}", other: "graphql query.order\nline few {graphql.n}", body: `{"query":"mutation { order(n: 1) { id } }"}`, graphql: true,
		repeated: 201, passes: true, becomes: "skipped", few: 1,
	},
	"close": {
		gate: "line few {form.n}", other: "line few {form.n}", guard: "close /api/order", body: "n=1",
		repeated: 404, reason: "closed_door", becomes: "released", few: 1,
	},
	"also_query": {
		gate: "line few {form.n}", other: "line few {form.n}\nalso_query s", uri: "?s=x", body: "n=1",
		repeated: 201, becomes: "sent", few: 1, otherFew: 1,
	},
}

// site is an edge with these options.
func (c *differing) site(shop string, isOther bool, more string) string {
	guard, gate := "", c.gate
	if isOther {
		guard, gate = c.guard, c.other
	}
	return sitetest.OrderMatcher + "stockgate_guard {\n" + guard + "\n}\nstockgate_status\nstockgate @order main {\nbuyer {header.X-User-Id}\nidempotency {header.Idempotency-Key}\n" +
		gate + "\n@sold {\nstatus 201\n}\nconfirm @sold\nhold_for 10m\n" + more + "\n}\nreverse_proxy " + shop
}

// order is an order of a buyer, to one of the edges.
func (c *differing) order(buyer string, isOther bool) *http.Request {
	r := sitetest.WithBody(sitetest.NewOrder("X-User-Id", buyer, "Idempotency-Key", "key of "+buyer), c.body)
	if !c.graphql {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	r.URL.RawQuery = strings.TrimPrefix(c.uri, "?")
	if isOther {
		r.Host = "elsewhere"
	}
	return r
}

// reservations returns those whose tokens the shop has got, and how many requests came without one.
func reservations(t *testing.T, got []sitetest.Seen) (ids []string, bare int) {
	t.Helper()
	for _, one := range got {
		token := one.Header.Get("Stockgate-Token")
		if token == "" {
			bare++
			continue
		}
		raw, err := sitetest.B64.DecodeString(strings.Split(token+"..", ".")[1])
		var claims struct{ JTI string }
		if err != nil || json.Unmarshal(raw, &claims) != nil {
			t.Fatalf("no token: %s", token)
		}
		ids = append(ids, claims.JTI)
	}
	return ids, bare
}

// Two edges of one sale have an option with different values: a repeat of an order at the other edge is no
// second order, and both together sell what there is.
func TestOptionsThatDiffer(t *testing.T) {
	for name, c := range differences {
		t.Run(name, func(t *testing.T) {
			shop := sitetest.NewBackend(t, sitetest.Created)
			s := sitetest.OpenCaddyfile(t, "respond 204")
			if err := s.LoadSites("", c.site(shop.Addr(), false, ""), c.site(shop.Addr(), true, "")); err != nil {
				t.Fatal(err)
			}
			s.Refresh()
			s.Send(c.order("u0", false)).Is(t, 201, "")
			first, _ := reservations(t, shop.Take())
			if len(first) != 1 {
				t.Fatalf("the shop got the reservations %v", first)
			}
			s.Send(c.order("u0", true)).Is(t, c.repeated, c.reason)
			switch again, bare := reservations(t, shop.Take()); {
			case len(again) > 0, bare > 0 != c.passes:
				t.Errorf("of the repeat the shop got %v, and %d requests without a token", again, bare)
			}
			left := 3 - c.few
			for i := range 8 {
				isOther := i%2 == 1
				a := s.Send(c.order(fmt.Sprint("v", i), isOther))
				units := c.few
				if isOther {
					units = c.otherFew
				}
				ids, _ := reservations(t, shop.Take())
				switch {
				case isOther && (c.reason != "" || c.passes):
					if len(ids) > 0 {
						t.Errorf("the other edge has reserved: %d %v", a.Status, ids)
					}
				case units > left:
					a.Is(t, 409, "sold_out")
				default:
					a.Is(t, 201, "")
					left -= units
				}
			}
			s.Eventually("the stock", func() (string, bool) {
				got := s.StockOf("few")
				return got, got == fmt.Sprintf("3 %d 0 0 %d", left, 3-left)
			})
		})
	}
}

// A reload changes such an option while an order waits: the order is sent once, with what was
// reserved for it, or it is skipped and that is said, or released.
func TestQueueReloadOfOptionsThatDiffer(t *testing.T) {
	for name, c := range differences {
		t.Run(name, func(t *testing.T) {
			shop := newSlowShop(t)
			const queue = "queue {\nat_once 1\nwait 5m\n}"
			base, other := c.site(shop.Addr(), false, queue), c.site(shop.Addr(), true, queue)
			s := sitetest.OpenCaddyfile(t, base)
			first := s.BeginOrder(c.order("u0", false), shop.working)
			r := c.order("u1", false)
			r.Header.Set("Prefer", "respond-async")
			a := s.Send(r)
			a.Is(t, 202, "")
			at := a.Header.Get("Location")
			reload(s, other)
			shop.done <- struct{}{}
			(<-first).Is(t, 201, "")
			sold, plain := 2, 0
			switch c.becomes {
			case "skipped":
				s.Eventually("an order that is skipped", func() (string, bool) {
					q := queueShown(s)
					return fmt.Sprintf("%+v", q), q.Skipped == 1
				})
				reload(s, base)
			case "released":
				sold = 1
				s.Eventually("its release", func() (string, bool) { got := getAt(s, at).Body; return got, strings.Contains(got, `"released"`) })
				if len(s.Logged("an order that waited does not reach its gate any more, because another handler answers it or breaks it off: its stock is released")) == 0 {
					t.Error("the log does not say it")
				}
			}
			if c.becomes != "released" {
				select {
				case got := <-shop.working:
					if got != "u1" {
						t.Fatalf("the shop works on the order of %s", got)
					}
				case <-stocktest.Soon(t).Done():
					t.Fatalf("the order waits on: %+v", queueShown(s))
				}
				shop.done <- struct{}{}
				s.Eventually("the answer", func() (string, bool) { a := getAt(s, at); return a.Body, a.Status == 201 })
			}
			if c.few == 0 {
				plain = sold
			}
			for sku, want := range map[string]string{"few": fmt.Sprintf("3 %d 0 0 %d", 3-sold*c.few, sold*c.few), "plain": fmt.Sprintf("100 %d 0 0 %d", 100-plain, plain)} {
				s.Eventually(sku, func() (string, bool) { got := s.StockOf(sku); return got, got == want })
			}
			if ids, bare := reservations(t, shop.Take()); len(ids) != sold || bare > 0 || sold == 2 && ids[0] == ids[1] {
				t.Errorf("the shop got the reservations %v, and %d requests without a token", ids, bare)
			}
		})
	}
}

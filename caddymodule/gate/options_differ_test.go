package gate_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
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

// Two gates that differ have one line of orders: the log and the doctor say so, and what to do.
func TestGatesThatShareALine(t *testing.T) {
	const gate = "@NAME {\nmethod POST\npath /NAME\nMORE\n}\nstockgate @NAME CALLED {\nbuyer {http.vars.user}\nline {json.sku}\nOPTIONS\n}\n"
	make := func(name, called, options, more string) string {
		return strings.NewReplacer("NAME", name, "CALLED", called, "OPTIONS", options, "MORE", more).Replace(gate)
	}
	const queue, other = "queue {\nat_once 1\n}", "queue {\nat_once 2\n}"
	const shares = "has a queue, and another gate with a queue that differs has the same name, hosts and sale"
	p := sitetest.Admit(t, sitetest.WellRedis, "", "", sitetest.GuardedGate)
	for name, c := range map[string]struct{ gates, want string }{
		"without names": {make("a", "", queue, "") + make("b", "", other, ""), "the gate without a name " + shares},
		"one name":      {make("a", "main", queue, "") + make("b", "main", other, ""), "the gate main " + shares},
		"names":         {make("a", "", queue, "") + make("b", "second", other, ""), ""},
		"no difference": {make("a", "", queue, "") + make("b", "", queue, ""), ""},
		"one queue":     {make("a", "", queue, "") + make("b", "", "rate {json.sku} 3 1s", ""), ""},
		"sales":         {make("a", "", queue+"\nsale one", "") + make("b", "", other+"\nsale two", ""), ""},
		"hosts":         {make("a", "", queue, "host a.example") + make("b", "", other, "host b.example"), ""},
		"one host":      {make("a", "", queue, "host a.example") + make("b", "", other, "host a.example"), "the gate without a name " + shares},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(p.Read("log"))
			p.Change("", "", "stockgate_guard\nstockgate_status\n"+c.gates+"respond 201\n")
			for place, text := range map[string]string{"the log": p.Read("log")[before:], "the doctor": p.Doctor().Out} {
				if c.want == "" && strings.Contains(text, shares) || !strings.Contains(text, c.want) || c.want != "" && !strings.Contains(text, "give each a name of its own") {
					t.Errorf("%s, want %q:\n%s", place, c.want, text)
				}
			}
		})
	}
}

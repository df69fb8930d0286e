package e2e_test

import (
	"fmt"
	"maps"
	"net/http"
	"testing"
)

// shopper is one attempt to buy, from which an obstacle makes one that is refused.
type shopper struct {
	buyer, phone, device string
	key                  string // of the rate; empty: an unused one
	encoding             string // Content-Encoding
	sale                 string
	sku                  string
	quantity             int64
}

func (s shopper) order(number int) order {
	key := s.key
	if key == "" {
		key = fmt.Sprintf("key-%d", number)
	}
	o := order{
		buyer:  s.buyer,
		body:   fmt.Sprintf(`{"sale":%q,"sku":%q,"quantity":%d,"phone":%q,"device":%q}`, s.sale, s.sku, s.quantity, s.phone, s.device),
		header: http.Header{"X-Key": {key}},
		lines:  []line{{s.sku, s.quantity, ""}},
	}
	if s.encoding != "" {
		o.header.Set("Content-Encoding", s.encoding)
	}
	return o
}

// obstacles are what can be in an attempt's way, in the order in which the gate
// must name them. Any two of them fit into one attempt.
var obstacles = []struct {
	reason string
	put    func(*shopper)
}{
	{"malformed", func(s *shopper) { s.encoding = "gzip" }},
	{"denied", func(s *shopper) { s.device = "stolen" }},
	{"rate_limited", func(s *shopper) { s.key = "used" }},
	{"paused", func(s *shopper) { s.sale = "resting" }},
	{"not_eligible", func(s *shopper) { s.buyer = "stranger" }},
	{"quantity", func(s *shopper) { s.quantity = 5 }},
	{"limit_reached", func(s *shopper) { s.phone = "222" }},
	{"sold_out", func(s *shopper) { s.sku = "rare" }},
}

// Verdicts come in one order, through one gate that has everything: of two things
// in the way the earlier one is named. None of all these refusals charges a limit
// or takes stock, and only those before the rate cost no try.
func TestOrderOfVerdicts(t *testing.T) {
	t.Parallel()
	s := new(recorder)
	e := startEdge(t, site{
		shop:   serve(t, s),
		app:    listFile(t, "bad", "device:stolen\n") + listFile(t, "members", "buyer:ann\nbuyer:bob\n"),
		source: "buyer {header.X-User-Id}\nidentity phone {json.phone}\nidentity device {json.device}\nsale {json.sale}\nline {json.sku} {json.quantity}",
		gate:   "deny bad\nallow members\nrate {header.X-Key} 1 24h",
	})
	const file = window + `items:
  - {sku: "7", stock: 20, max: 4}
  - {sku: rare, stock: 1, max: 4}
limits:
  - {per: phone, every: sale, max: 2, count: units}
  - {per: buyer, every: sale, max: 4, count: units}
`
	for _, id := range []string{"open", "resting"} {
		e.apply(id, file)
		e.must("POST", "sales/"+id+"/open", "", nil)
		e.untilSelling(id)
	}
	n := 0
	attempt := func(s shopper) result {
		n++
		return e.buy(s.order(n))
	}
	expect := func(what string, s shopper, status int, reason string) {
		t.Helper()
		if r := attempt(s); r.status != status || r.reason != reason {
			t.Errorf("%s: %v, it should be %d %s", what, r, status, reason)
		}
	}
	good := shopper{buyer: "ann", phone: "111", device: "own", sale: "open", sku: "7", quantity: 2}
	with := func(put ...func(*shopper)) shopper {
		s := good
		for _, p := range put {
			p(&s)
		}
		return s
	}
	// phone 222 is spent in both sales, and so is the key
	expect("spend", shopper{buyer: "bob", phone: "222", key: "used", sale: "open", sku: "7", quantity: 2}, 201, "")
	expect("spend", shopper{buyer: "bob", phone: "222", sale: "resting", sku: "7", quantity: 2}, 201, "")
	e.must("POST", "sales/resting/pause", "", nil)
	eventually(t, "the sale is paused", func() bool { return e.itemState("resting", "7") == "paused" })

	status := map[string]int{"malformed": 400, "denied": 403, "rate_limited": 429, "paused": 409, "not_eligible": 403,
		"quantity": 400, "limit_reached": 403, "sold_out": 409}
	for i, first := range obstacles {
		expect(first.reason, with(first.put), status[first.reason], first.reason)
		for _, second := range obstacles[i+1:] {
			expect(first.reason+" and "+second.reason, with(second.put, first.put), status[first.reason], first.reason)
		}
	}

	// a rate counts the attempts that reach it and no others
	for _, o := range obstacles {
		if o.reason == "rate_limited" {
			continue
		}
		key := func(s *shopper) { s.key = "tries-" + o.reason }
		expect("one try, "+o.reason, with(o.put, key), status[o.reason], o.reason)
		next, code := "rate_limited", 429
		if o.reason == "malformed" || o.reason == "denied" {
			next, code = "paused", 409
		}
		expect("another try after "+o.reason, with(key, func(s *shopper) { s.sale = "resting" }), code, next)
	}

	// all that was refused is still there, to the unit
	if got := s.orders(); got != 2 {
		t.Errorf("the shop got %d orders", got)
	}
	expect("the whole limit of the phone", good, 201, "")
	expect("the phone's limit", with(func(s *shopper) { s.quantity = 1 }), 403, "limit_reached")
	expect("the rest of the buyer's limit", with(func(s *shopper) { s.phone = "333" }), 201, "")
	expect("the buyer's limit", with(func(s *shopper) { s.phone, s.quantity = "444", 1 }), 403, "limit_reached")
	stock := map[string]cell{}
	for _, c := range e.stock("open").Items {
		stock[c.SKU] = c
	}
	if want := map[string]cell{
		"7":    {SKU: "7", Stock: 20, Available: 14, Confirmed: 6},
		"rare": {SKU: "rare", Stock: 1, Available: 1},
	}; !maps.Equal(stock, want) {
		t.Errorf("the stock is %v, it should be %v", stock, want)
	}
}

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/shop"
)

// order is what one buyer sends.
type order struct {
	buyer   string
	body    string // JSON
	header  http.Header
	path    string // default: /api/order
	lines   []line // what the body means, for the oracle
	chunked bool   // the body's length is not announced
}

// one is an order of one line.
func one(buyer, sku string, quantity int64, region string) order {
	body := fmt.Sprintf(`{"sku":%q,"quantity":%d}`, sku, quantity)
	if region != "" {
		body = fmt.Sprintf(`{"sku":%q,"quantity":%d,"region":%q}`, sku, quantity, region)
	}
	return order{buyer: buyer, body: body, lines: []line{{sku, quantity, region}}}
}

// result is what a buyer got.
type result struct {
	order       order
	status      int
	header      http.Header
	body        string
	reason      string // of a refusal
	reservation string
	err         error // no answer came
}

func (r result) String() string {
	return fmt.Sprintf("%s: %d %s %s %v %s", r.order.buyer, r.status, r.reason, r.reservation, r.err, strings.TrimSpace(r.body))
}

// buy sends one order.
func (e *edge) buy(o order) result { return e.buyContext(context.Background(), o) }

// buyOnceHeard is buy once the edge hears Redis again: an edge that has had no answer for 5 s sells nothing until it
// has one.
func (e *edge) buyOnceHeard(o order) (r result) {
	e.t.Helper()
	eventually(e.t, "the edge hears redis", func() bool { r = e.buy(o); return r.status != http.StatusServiceUnavailable })
	return r
}

func (e *edge) buyContext(ctx context.Context, o order) result {
	path := o.path
	if path == "" {
		path = "/api/order"
	}
	var body io.Reader = strings.NewReader(o.body)
	if o.chunked {
		body = struct{ io.Reader }{body}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+path, body)
	if err != nil {
		return result{order: o, err: err}
	}
	if o.body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if o.buyer != "" {
		request.Header.Set("X-User-Id", o.buyer)
	}
	for name, values := range o.header {
		request.Header[name] = values
	}
	r, err := e.buyers.Do(request)
	if err != nil {
		return result{order: o, err: err}
	}
	defer r.Body.Close()
	answer, err := io.ReadAll(r.Body)
	return result{
		order: o, status: r.StatusCode, header: r.Header, body: string(answer), err: err,
		reason: r.Header.Get("Stockgate-Refusal"), reservation: r.Header.Get("Stockgate-Reservation"),
	}
}

// goBuy sends an order in the background.
func (e *edge) goBuy(o order) <-chan result {
	done := make(chan result, 1)
	go func() { done <- e.buy(o) }()
	return done
}

// crowd sends all orders at once, the i-th to the i-th edge in turn, and waits for
// all answers. again: this answer makes the buyer try once more after a moment, while
// there is patience; nil: never.
func crowd(orders []order, again func(result) bool, edges ...*edge) []result {
	results := make([]result, len(orders))
	start := make(chan struct{})
	patient, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	var all sync.WaitGroup
	for i, o := range orders {
		all.Go(func() {
			<-start
			for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
				results[i] = edges[i%len(edges)].buy(o)
				if again == nil || !again(results[i]) {
					return
				}
				select { // who tries again without end leaves the edge no time for Redis
				case <-time.After(pause):
				case <-patient.Done():
					return
				}
			}
		})
	}
	close(start)
	all.Wait()
	return results
}

// buyers makes n orders.
func buyers(n int, make func(i int) order) []order {
	orders := []order{}
	for i := range n {
		orders = append(orders, make(i))
	}
	return orders
}

// tally counts results by status and reason.
func tally(results []result) map[string]int {
	out := map[string]int{}
	for _, r := range results {
		switch {
		case r.err != nil:
			out["no answer"]++
		case r.reason != "":
			out[r.reason]++
		default:
			out[fmt.Sprint(r.status)]++
		}
	}
	return out
}

// bought are the results that are an order.
func bought(results []result) []result {
	var out []result
	for _, r := range results {
		if r.err == nil && r.status/100 == 2 {
			out = append(out, r)
		}
	}
	return out
}

// audit compares the shop, the sale's cells and the buyers' answers. It holds for any
// behaviour of the shop: what the shop has sold is held, in doubt or confirmed, per
// cell never more than its stock; a buyer whose answer was a success has the order.
func audit(t *testing.T, e *edge, id string, s *shop.Shop, results []result) {
	t.Helper()
	b := e.stock(id)
	if !b.Balanced || b.Unbacked != 0 {
		t.Errorf("the books do not balance: %v", b)
	}
	orders, err := s.Orders(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	sold, confirmed := map[string]int64{}, map[string]int64{}
	byID := map[string]shop.Order{}
	for _, o := range orders {
		if _, twice := byID[o.Reservation]; twice || o.Reservation == "" {
			t.Errorf("the shop has two orders, or one without a reservation: %+v", o)
		}
		byID[o.Reservation] = o
		r := e.record(o.Reservation)
		if r.State != "confirmed" && r.State != "in_doubt" && r.State != "held" {
			t.Errorf("the shop has the order of %s, which is %s (%s)", r.ID, r.State, r.Cause)
		}
		for _, l := range r.Lines {
			sold[l.SKU+"@"+l.Region] += l.Qty
			if r.State == "confirmed" {
				confirmed[l.SKU+"@"+l.Region] += l.Qty
			}
		}
		if have, want := fmt.Sprint(o.Lines), fmt.Sprint(r.Lines); have != want && len(o.Lines) == len(r.Lines) && !sameUnits(o, r) {
			t.Errorf("the shop sold %s on a reservation of %s", have, want)
		}
	}
	for _, c := range b.Items {
		name := c.SKU + "@" + c.Region
		if sold[name] > c.Stock {
			t.Errorf("oversold: %d orders of %s, stock %d", sold[name], name, c.Stock)
		}
		if confirmed[name] != c.Confirmed {
			t.Errorf("%s: %d units confirmed, the shop has confirmed orders for %d: %v", name, c.Confirmed, confirmed[name], b)
		}
	}
	for _, r := range results {
		if r.err == nil && r.status/100 == 2 {
			o, ok := byID[r.reservation]
			if !ok || o.Buyer != r.order.buyer {
				t.Errorf("a buyer heard yes and has no order: %v", r)
			}
		}
	}
}

// sameUnits compares an order with its reservation by item.
func sameUnits(o shop.Order, r redisRecord) bool {
	units := map[string]int64{}
	for _, l := range o.Lines {
		units[l.SKU] += l.Quantity
	}
	for _, l := range r.Lines {
		units[l.SKU] -= l.Qty
	}
	for _, n := range units {
		if n != 0 {
			return false
		}
	}
	return true
}

// asJSON is v as one line of JSON.
func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

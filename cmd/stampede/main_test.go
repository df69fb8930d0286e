package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stockgate/stockgate/internal/stampede"
	"github.com/stockgate/stockgate/record"
	"github.com/stockgate/stockgate/reservation"
	"github.com/stockgate/stockgate/sale"
)

func TestFlagsThatAreWrong(t *testing.T) {
	for _, c := range []struct {
		args string
		want error
		says string
	}{
		{"-h", flag.ErrHelp, "-sku"},
		{"-x", errUsage, "-x"},
		{"-sku a b", errUsage, `unexpected argument "b"`},
		{"", errUsage, "-sku: say what the crowd wants"},
		{"-sku a -quantity two", errUsage, `-quantity "two" is not a number`},
		{"-sku a -sale s", errUsage, "give -sale, -admin and -shop together"},
		{"-sku a -shop http://shop/orders -admin localhost:2019", errUsage, "together"},
		{"-sku a -duration 5s", errUsage, "-duration needs -rate"},
		{"-sku a -rate 5 -duration -5s", errUsage, "must not be negative"},
		{"-sku a -rate 5 -duration 5s -purchases 5", errUsage, "not both"},
		{"-sku a -tolerate lies", errUsage, "there are in_doubt and phantom"},
	} {
		t.Run(c.args, func(t *testing.T) {
			var stdout, stderr strings.Builder
			err := run(t.Context(), strings.Fields(c.args), &stdout, &stderr)
			if !errors.Is(err, c.want) || !strings.Contains(stderr.String(), c.says) || stdout.Len() > 0 {
				t.Errorf("error %v, want %v; said %q, want %q", err, c.want, stderr.String(), c.says)
			}
		})
	}
}

func TestBaskets(t *testing.T) {
	for args, expected := range map[string]string{
		"-sku a":                        "[{[{a 1 }]}]",
		"-sku a,b -quantity 1,2":        "[{[{a 1 }]} {[{b 1 }]} {[{a 2 }]} {[{b 2 }]}]",
		"-sku a,b -together":            "[{[{a 1 } {b 1 }]}]",
		"-sku a -region north,south":    "[{[{a 1 north}]} {[{a 1 south}]}]",
		"-sku a -quantity 0 -region ,n": "[{[{a 0 }]} {[{a 0 n}]}]",
	} {
		c, err := parse(strings.Fields(args), new(strings.Builder))
		if got := fmt.Sprint(c.crowd.Baskets); err != nil || got != expected {
			t.Errorf("%s: %s, %v; expected %s", args, got, err, expected)
		}
	}
}

func TestFlagsOfACrowd(t *testing.T) {
	c, err := parse(strings.Fields("-sku a -rate 200 -duration 3s -tolerate phantom,in_doubt -retry 3 -impatient -max-per-buyer 2 -must-sell 7"), new(strings.Builder))
	if err != nil {
		t.Fatal(err)
	}
	if c.crowd.Purchases != 600 || c.crowd.Retry != (stampede.Retry{Times: 3, AtOnce: true}) || c.tolerance != (stampede.Tolerance{InDoubt: true, Phantom: true}) ||
		c.maxPerBuyer != 2 || c.mustSell != 7 {
		t.Errorf("%+v", c)
	}
	again, err := parse(strings.Fields("-sku a"), new(strings.Builder))
	if err != nil || again.crowd.Prefix == c.crowd.Prefix || again.crowd.Purchases != 0 {
		t.Errorf("%+v, %v", again.crowd, err)
	}
}

// world is a gate, a shop and an admin API that sell the units of one item.
// If it lies, it confirms and writes no order.
type world struct {
	stock int64
	lies  bool

	mu     sync.Mutex
	orders []stampede.Order
	sold   []string // the reservations
}

func (w *world) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := []sale.Line{{SKU: "a", Quantity: 1}}
	sold := int64(len(w.sold))
	switch path := r.URL.Path; {
	case path == "/api/order" && sold == w.stock:
		out.Header().Set("Stockgate-Refusal", "sold_out")
		out.WriteHeader(http.StatusConflict)
	case path == "/api/order":
		id := fmt.Sprint("r", sold)
		w.sold = append(w.sold, id)
		if !w.lies {
			w.orders = append(w.orders, stampede.Order{OrderNo: "o" + id, Reservation: id, Buyer: r.Header.Get("X-User-Id"), Lines: lines})
		}
		out.Header().Set("Stockgate-Reservation", id)
		out.WriteHeader(http.StatusCreated)
	case path == "/orders":
		json.NewEncoder(out).Encode(w.orders)
	case path == "/stockgate/sales/s":
		json.NewEncoder(out).Encode(reservation.SaleStock{ID: "s", Balanced: true, Items: []record.Cell{
			{SKU: "a", Stock: w.stock, Available: w.stock - sold, Confirmed: sold},
		}})
	default:
		json.NewEncoder(out).Encode(reservation.Record{State: record.Confirmed, Lines: lines})
	}
}

func stampedeInto(t *testing.T, w *world, more string) (stdout string, err error) {
	t.Helper()
	server := httptest.NewServer(w)
	defer server.Close()
	args := fmt.Sprintf("-url %[1]s/api/order -sku a -buyers 30 -concurrency 4 %[2]s", server.URL, strings.ReplaceAll(more, "SITE", server.URL))
	var out, errs strings.Builder
	err = run(t.Context(), strings.Fields(args), &out, &errs)
	return out.String() + errs.String(), err
}

const witnesses = " -shop SITE/orders -admin SITE -sale s"

func TestStampede(t *testing.T) {
	for _, c := range []struct {
		name, args string
		world      *world
		broken     bool
		says       string
	}{
		{"all is well", "-max-per-buyer 1 -must-sell 10" + witnesses, &world{stock: 10}, false, "of 10 units, in 10 orders"},
		{"as JSON", "-json" + witnesses, &world{stock: 10}, false, `"ordered":10,"stock":10,"oversold":0,"violations":[]`},
		{"no checks", "", &world{stock: 10}, false, "nothing was checked"},
		{"too few", "-must-sell 11" + witnesses, &world{stock: 10}, true, "10 units are sold, and 11 were wanted"},
		{"no orders", witnesses, &world{stock: 10, lies: true}, true, "and the shop has no such order"},
	} {
		t.Run(c.name, func(t *testing.T) {
			said, err := stampedeInto(t, c.world, c.args)
			if errors.Is(err, errBroken) != c.broken || err != nil && !c.broken || !strings.Contains(said, c.says) {
				t.Errorf("error %v; expected %q in:\n%s", err, c.says, said)
			}
		})
	}
}

func TestStampedeWithoutWitnesses(t *testing.T) {
	said, err := stampedeInto(t, &world{stock: 10}, "-shop SITE/orders -admin 127.0.0.1:1 -sale s")
	if err == nil || errors.Is(err, errBroken) || errors.Is(err, errUsage) || !strings.Contains(err.Error(), "reading the sale") {
		t.Errorf("error %v:\n%s", err, said)
	}
}

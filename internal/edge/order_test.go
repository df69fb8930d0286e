package edge_test

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// What the shop has sold is told until Redis knows it, once, with all that differs from the hold.
func TestAnOrderIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		sold               edge.SoldUnits
		available, charged int64 // of three; of the buyer's limit
		more               record.State
	}{
		"as held":  {edge.SoldUnits{"a": 1}, 2, 1, ""},
		"more":     {edge.SoldUnits{"a": 2}, 1, 2, record.Confirmed},
		"none":     {edge.SoldUnits{}, 3, 0, ""},
		"another":  {edge.SoldUnits{"a": 1, "unlisted": 5}, 2, 1, ""},
		"too many": {edge.SoldUnits{"a": 4}, 2, 1, record.Unbacked},
	} {
		t.Run(name, func(t *testing.T) {
			f := stocktest.NewFaulty(t, stocktest.Long)
			hold := stocktest.MustHold(t, f.Edge, "r1", "Ann", 1)
			f.Net.Cut()
			a := &sale.Attempt{Buyer: "Ann"}
			if _, err := f.Edge.ConfirmOrderEventually(stocktest.Soon(t), &hold, a, "asked_sold", c.sold); !errors.Is(err, shard.ErrUnavailable) {
				t.Fatal(err)
			}
			if got := stocktest.State(t, f.Direct, "r1"); got != record.Held {
				t.Fatalf("the hold is %s: the test proves nothing", got)
			}
			f.Net.Lead(f.Proxy.Addr())
			f.Told()
			for range 2 { // and once more, as by an edge that has not heard the answer
				if got := stocktest.State(t, f.Direct, "r1"); got != record.Confirmed {
					t.Errorf("the hold is %s", got)
				}
				if got := stocktest.State(t, f.Direct, reservation.MoreOf("r1")); got != c.more {
					t.Errorf("what is beyond it is %q, want %q", got, c.more)
				}
				if cell := stocktest.CellA(t, f.Direct); cell.Available != c.available {
					t.Errorf("the cell is %+v, want %d available", cell, c.available)
				}
				raw := f.Audit()
				if charged := counted(raw); charged != c.charged {
					t.Errorf("%d units are charged, want %d: %+v", charged, c.charged, raw.Limits)
				}
				if _, err := f.Edge.ConfirmOrderEventually(stocktest.Soon(t), &hold, a, "asked_sold", c.sold); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// However many reservations an order has, a limit on orders counts it once, where it concerns it.
func TestAnOrderIsCountedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		sku      string // of the limit
		sold     edge.SoldUnits
		orders   int64 // that the limit has counted
		returned int64 // of them, when what was held comes back
	}{
		"as held":                    {"", edge.SoldUnits{"a": 1}, 1, 1},
		"more":                       {"", edge.SoldUnits{"a": 2}, 1, 1},
		"another item too":           {"", edge.SoldUnits{"a": 1, "b": 1}, 1, 1},
		"another item instead":       {"", edge.SoldUnits{"b": 1}, 1, 0},
		"more of the limit's item":   {"a", edge.SoldUnits{"a": 2}, 1, 1},
		"the limit's item too":       {"b", edge.SoldUnits{"a": 1, "b": 1}, 1, 0},
		"nothing of the limit's":     {"b", edge.SoldUnits{"a": 2}, 0, 0},
		"nothing of the limit's any": {"a", edge.SoldUnits{"b": 1}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, b redistest.Backend) {
				e := stocktest.Selling(t, stocktest.Options(b), 9, sale.Limit{Per: "buyer", Every: "sale", Max: 9, Count: "orders", SKU: c.sku})
				hold := stocktest.MustHold(t, e, "r1", "Ann", 1)
				for range 2 {
					if _, err := e.ConfirmOrderEventually(stocktest.Soon(t), &hold, &sale.Attempt{Buyer: "Ann", Region: "north"}, "asked_sold", c.sold); err != nil {
						t.Fatal(err)
					}
				}
				if n := counted(stocktest.Balanced(t, b.Client(), e.Store, "s")); n != c.orders {
					t.Errorf("%d orders are counted, want %d", n, c.orders)
				}
				_, err := e.Store.Return(stocktest.Soon(t), "s", "r1", reservation.Return{ID: "all", Restock: true})
				if _, none := errors.AsType[*reservation.TooManyError](err); err != nil && !none {
					t.Fatal(err)
				}
				if n := counted(stocktest.Balanced(t, b.Client(), e.Store, "s")); n != c.orders-c.returned {
					t.Errorf("%d orders are counted when what was held is back, want %d", n, c.orders-c.returned)
				}
			})
		})
	}
}

// counted is what all purchase limits of the sale have counted.
func counted(raw *stocktest.Raw) (sum int64) {
	for _, text := range raw.Limits {
		first, _, _ := strings.Cut(text, " ")
		n, _ := strconv.ParseInt(first, 10, 64)
		sum += n
	}
	return sum
}

// Units of an item with regions are those of the regions that were held.
func TestAnOrderOfRegions(t *testing.T) {
	s, err := sale.New(sale.Sale{
		ID: "s", StartsAt: stocktest.OpenSale("s", 1).StartsAt, EndsAt: stocktest.OpenSale("s", 1).EndsAt,
		Items: []sale.Item{{SKU: "a", IDs: []string{"7"}, Regions: map[string]int64{"n": 9, "s": 9}}, {SKU: "b", Stock: 9}},
	})
	if err != nil {
		t.Fatal(err)
	}
	held := &reservation.Hold{Lines: []sale.Line{{SKU: "a", Region: "s", Quantity: 2}, {SKU: "a", Region: "n", Quantity: 1}}}
	for name, c := range map[string]struct {
		sold    edge.SoldUnits
		lines   []sale.Line
		unknown []string
	}{
		"all":      {edge.SoldUnits{"a": 3}, held.Lines, nil},
		"by an id": {edge.SoldUnits{"7": 1, "a": 2}, held.Lines, nil},
		"fewer":    {edge.SoldUnits{"a": 2}, held.Lines[:1], nil},
		"more":     {edge.SoldUnits{"a": 5}, []sale.Line{{SKU: "a", Region: "s", Quantity: 4}, held.Lines[1]}, nil},
		"another":  {edge.SoldUnits{"b": 1, "c": 1}, []sale.Line{{SKU: "b", Quantity: 1}}, []string{"c"}},
	} {
		if lines, unknown := edge.SoldLines(s, held, "n", c.sold); !reflect.DeepEqual(lines, c.lines) || !reflect.DeepEqual(unknown, c.unknown) {
			t.Errorf("%s: %+v, %v, want %+v, %v", name, lines, unknown, c.lines, c.unknown)
		}
	}
}

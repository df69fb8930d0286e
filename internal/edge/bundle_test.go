package edge_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// bundles sells twelve of "a" at a time as "box", and one of "a" with one of "b" as "pair".
func bundles(limits ...sale.Limit) *sale.Sale {
	file := stocktest.OpenSale("s", 100, limits...)
	file.Items = append(file.Items,
		sale.Item{SKU: "box", IDs: []string{"v12"}, Components: []sale.Component{{SKU: "a", Units: 12}}},
		sale.Item{SKU: "pair", Components: []sale.Component{{SKU: "a", Units: 1}, {SKU: "b", Units: 1}}})
	return file
}

func bundled(t *testing.T, b redistest.Backend, limits ...sale.Limit) *edge.Edge {
	t.Helper()
	e := stocktest.Ready(t, stocktest.Options(b))
	stocktest.Load(t, e.Store, bundles(limits...))
	if err := e.Refresh(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	return e
}

func perBuyer(count, sku string) sale.Limit {
	return sale.Limit{Per: "buyer", Every: "sale", Max: 50, Count: count, SKU: sku}
}

// counts are the counters of limits, by the limits' kinds.
func counts(raw *stocktest.Raw) string {
	var all []string
	for field, text := range raw.Limits {
		kind, _, _ := strings.Cut(field, "|")
		charged, _, _ := strings.Cut(text, " ")
		if charged != "0" {
			all = append(all, kind+" "+charged)
		}
	}
	slices.Sort(all)
	return fmt.Sprint(all)
}

// A limit counts what it is narrowed to: bundles, or units of the components whichever way they were ordered.
func TestLimitsOfBundles(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e := bundled(t, b, perBuyer("units", ""), perBuyer("units", "a"), perBuyer("units", "box"), perBuyer("orders", "box"), perBuyer("units", "pair"))
		l, _ := e.Catalogue().Sale("s")
		hold := func(id string, lines ...sale.Line) {
			t.Helper()
			a := &sale.Attempt{Sale: "s", Buyer: "Ann", Region: "north", Lines: lines}
			held, no := l.Sale.Resolve(a)
			if no != nil {
				t.Fatal(no)
			}
			if _, no, err := e.Hold(stocktest.Soon(t), id, l, a, held, stocktest.HoldOptions); no != nil || err != nil {
				t.Fatalf("%s: %+v, %v", id, no, err)
			}
			if state, err := e.Store.Confirm(stocktest.Soon(t), "s", id, reservation.SourceAnswer, ""); state != record.Confirmed {
				t.Fatal(state, err)
			}
		}
		hold("r1", sale.Line{SKU: "v12", Quantity: 2}, sale.Line{SKU: "a", Quantity: 1}, sale.Line{SKU: "pair", Quantity: 3})
		// the same units under other names are another order
		hold("r2", sale.Line{SKU: "a", Quantity: 12})
		want := "[buyer:sale:orders:box 1 buyer:sale:units 43 buyer:sale:units:a 40 buyer:sale:units:box 2 buyer:sale:units:pair 3]"
		if got := counts(stocktest.Balanced(t, b.Client(), e.Store, "s")); got != want {
			t.Errorf("counted are %s, want %s", got, want)
		}
		if _, err := e.Store.Return(stocktest.Soon(t), "s", "r1", reservation.Return{ID: "1", Restock: true, Lines: []sale.Line{{SKU: "box", Quantity: 1}}}); err != nil {
			t.Fatal(err)
		}
		want = "[buyer:sale:orders:box 1 buyer:sale:units 31 buyer:sale:units:a 28 buyer:sale:units:box 2 buyer:sale:units:pair 3]"
		if got := counts(stocktest.Balanced(t, b.Client(), e.Store, "s")); got != want {
			t.Errorf("after a part came back counted are %s, want %s", got, want)
		}
		if _, err := e.Store.Return(stocktest.Soon(t), "s", "r1", reservation.Return{ID: "2", Restock: true}); err != nil {
			t.Fatal(err)
		}
		want = "[buyer:sale:units 12 buyer:sale:units:a 12]"
		if got := counts(stocktest.Balanced(t, b.Client(), e.Store, "s")); got != want {
			t.Errorf("after all came back counted are %s, want %s", got, want)
		}
	})
}

// A token of bundles, of a Redis that has lost the reservation, takes its components and is charged for its bundles.
func TestTokenOfBundlesConfirms(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e := bundled(t, b, perBuyer("units", "a"), perBuyer("units", "box"))
		now := time.Now()
		state, err := e.ConfirmWith(stocktest.Soon(t), &reservation.Evidence{
			Sale: "s", ID: "lost", Buyer: "Ann", Epoch: 1, Created: now, Exp: now.Add(time.Hour),
			Lines: []sale.Line{{SKU: "a", Quantity: 13}}, Ordered: []sale.Line{{SKU: "box", Quantity: 1}, {SKU: "a", Quantity: 1}},
		}, "")
		if state != record.Confirmed || err != nil {
			t.Fatal(state, err)
		}
		if got, want := counts(stocktest.Balanced(t, b.Client(), e.Store, "s")), "[buyer:sale:units:a 13 buyer:sale:units:box 1]"; got != want {
			t.Errorf("counted are %s, want %s", got, want)
		}
		if c := stocktest.CellA(t, e.Store); c.Confirmed != 13 {
			t.Errorf("sold are %+v", c)
		}
	})
}

// Purchases of before that name bundles take their components.
func TestBundlesMoveIn(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e := stocktest.Ready(t, stocktest.Options(b))
		stocktest.Apply(t, e, bundles(perBuyer("units", "a"), perBuyer("orders", "box")))
		n, err := e.MoveIn(stocktest.Soon(t), "s", []edge.Before{{Name: "bought:box", Kind: "buyer", Value: "Ann", Orders: 2, Lines: []sale.Line{{SKU: "box", Quantity: 2}}}}, "test")
		if n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if got, want := counts(stocktest.Balanced(t, b.Client(), e.Store, "s")), "[buyer:sale:orders:box 2 buyer:sale:units:a 24]"; got != want {
			t.Errorf("counted are %s, want %s", got, want)
		}
	})
}

// The shop may name bundles when it says what it sold.
func TestShopSoldBundles(t *testing.T) {
	for name, c := range map[string]struct {
		sold edge.SoldUnits
		want string
		left int64
	}{
		"as ordered":        {edge.SoldUnits{"box": 1}, "[buyer:sale:orders:box 1 buyer:sale:units:a 12 buyer:sale:units:box 1]", 88},
		"as its components": {edge.SoldUnits{"a": 12}, "[buyer:sale:orders:box 1 buyer:sale:units:a 12 buyer:sale:units:box 1]", 88},
		"one more":          {edge.SoldUnits{"v12": 2}, "[buyer:sale:orders:box 1 buyer:sale:units:a 24 buyer:sale:units:box 2]", 76},
		"bottles besides":   {edge.SoldUnits{"box": 1, "a": 3}, "[buyer:sale:orders:box 1 buyer:sale:units:a 15 buyer:sale:units:box 1]", 85},
	} {
		t.Run(name, func(t *testing.T) {
			b := redistest.Start(t)
			e := bundled(t, b, perBuyer("units", "a"), perBuyer("units", "box"), perBuyer("orders", "box"))
			l, _ := e.Catalogue().Sale("s")
			a := &sale.Attempt{Sale: "s", Buyer: "Ann", Lines: []sale.Line{{SKU: "box", Quantity: 1}}}
			lines, _ := l.Sale.Resolve(a)
			hold, no, err := e.Hold(stocktest.Soon(t), "r1", l, a, lines, stocktest.HoldOptions)
			if err = errors.Join(err, noRefusal(no)); err != nil {
				t.Fatal(err)
			}
			if _, err := e.ConfirmOrderEventually(stocktest.Soon(t), &hold, a, "asked_sold", c.sold); err != nil {
				t.Fatal(err)
			}
			if got := counts(stocktest.Balanced(t, b.Client(), e.Store, "s")); got != c.want {
				t.Errorf("counted are %s, want %s", got, c.want)
			}
			if cell := stocktest.CellA(t, e.Store); cell.Available != c.left {
				t.Errorf("the stock is %+v, want %d available", cell, c.left)
			}
		})
	}
}

// A bundle that the file has no more, while the shop sells it, gives nothing of its hold back.
func TestShopSoldABundleThatIsGone(t *testing.T) {
	b := redistest.Start(t)
	e := bundled(t, b)
	l, _ := e.Catalogue().Sale("s")
	a := &sale.Attempt{Sale: "s", Buyer: "Ann", Lines: []sale.Line{{SKU: "v12", Quantity: 1}}}
	lines, _ := l.Sale.Resolve(a)
	hold, no, err := e.Hold(stocktest.Soon(t), "r1", l, a, lines, stocktest.HoldOptions)
	if err = errors.Join(err, noRefusal(no)); err != nil {
		t.Fatal(err)
	}
	without := bundles()
	without.Items = slices.DeleteFunc(without.Items, func(i sale.Item) bool { return i.SKU == "box" })
	stocktest.Apply(t, e, without)
	if state, err := e.ConfirmOrderEventually(stocktest.Soon(t), &hold, a, "asked_sold", edge.SoldUnits{"box": 1}); state != record.Confirmed || err != nil {
		t.Fatal(state, err)
	}
	if c := stocktest.CellA(t, e.Store); c.Confirmed != 12 || c.Available != 88 {
		t.Errorf("the shop sold a box, and the stock is %+v", c)
	}
}

// A bundle in another region is another order, and so are the components of a bundle under the ref of its order.
func TestOrdersOfBundlesDiffer(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e := bundled(t, b)
		l, _ := e.Catalogue().Sale("s")
		hold := func(id, region, ref string, line sale.Line) error {
			a := &sale.Attempt{Sale: "s", Buyer: "Ann", Region: region, Ref: ref, Lines: []sale.Line{line}}
			lines, no := l.Sale.Resolve(a)
			if no != nil {
				t.Fatal(no)
			}
			_, no, err := e.Hold(stocktest.Soon(t), id, l, a, lines, stocktest.HoldOptions)
			return errors.Join(err, noRefusal(no))
		}
		pair, box := sale.Line{SKU: "pair", Quantity: 1}, sale.Line{SKU: "box", Quantity: 1}
		if err := errors.Join(hold("r1", "north", "", pair), hold("r2", "south", "", pair)); err != nil {
			t.Error(err)
		}
		if b, ok := errors.AsType[*reservation.AlreadyBound](hold("r3", "north", "", pair)); !ok || b.ID != "r1" {
			t.Errorf("the same again: %+v", b)
		}
		if err := hold("r4", "", "cart", box); err != nil {
			t.Fatal(err)
		}
		if b, ok := errors.AsType[*reservation.AlreadyBound](hold("r5", "", "cart", sale.Line{SKU: "a", Quantity: 12})); !ok || b.ID != "r4" || b.Same {
			t.Errorf("twelve units under the ref of a box: %+v", b)
		}
		if state, err := e.Store.Confirm(stocktest.Soon(t), "s", "r4", reservation.SourceAnswer, ""); state != record.Confirmed {
			t.Fatal(state, err)
		}
		if b, ok := errors.AsType[*reservation.AlreadyBound](hold("r6", "", "cart", box)); !ok || b.ID != "r4" || !b.Same {
			t.Errorf("the box again: %+v", b)
		}
		if b, ok := errors.AsType[*reservation.AlreadyBound](hold("r7", "", "cart", sale.Line{SKU: "a", Quantity: 12})); !ok || b.ID != "r4" || b.Same {
			t.Errorf("twelve units under the ref of a box that is sold: %+v", b)
		}
	})
}

func noRefusal(no *sale.Refusal) error {
	if no != nil {
		return fmt.Errorf("refused: %+v", no)
	}
	return nil
}

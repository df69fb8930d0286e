package recovery_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/ledger/recovery"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// Units that a shop has sold past the gate are taken out of the stock once, also where less is left, and no others are.
func TestTakeOver(t *testing.T) {
	m := newMarket(t, redistest.Start(t))
	ctx := ledgertest.Soon(t)
	m.hold("r", "order-1", 3)
	m.confirm("r")
	if _, err := m.Adjust(ctx, "s", "few", "none", 5, "ann"); err != nil {
		t.Fatal(err)
	}
	stock := func(cell string) [2]int64 {
		t.Helper()
		b, err := m.SaleStock(ctx, "s")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range b.Items {
			if c.SKU == cell {
				return [2]int64{c.Stock, c.Available}
			}
		}
		t.Fatalf("no cell %s in %+v", cell, b.Items)
		return [2]int64{}
	}
	before := stock("a")
	units := map[string]map[string]int64{"order-1": {"a": 3}, "past-1": {"a": 2, "socks": 4}, "past-2": {"a": 1}}
	take := func(repair bool, units map[string]map[string]int64) (*recovery.Report, error) {
		shop := sold(units)
		shop.TakeOver = true
		return recovery.Reconcile(ctx, m.Store, nil, "s", recovery.Options{Repair: repair, By: "ann", Shop: shop})
	}
	if _, err := take(true, units); !errors.Is(err, shard.ErrRefused) || !strings.Contains(err.Error(), "pause it first") {
		t.Errorf("of an open sale: %v", err)
	}
	if err := m.SetStatus(ctx, "s", sale.Paused, "ann"); err != nil {
		t.Fatal(err)
	}
	if _, err := take(true, map[string]map[string]int64{"1001": {"a": 3}}); !errors.Is(err, shard.ErrRefused) || !strings.Contains(err.Error(), "other names") {
		t.Errorf("a list that names no reservation: %v", err)
	}
	look, err := take(false, units)
	if err != nil || look.Left != 2 || stock("a") != before {
		t.Errorf("a look changes nothing: %v %s, %d", err, texts(look), stock("a"))
	}
	for run := range 2 {
		report, err := take(true, units)
		if err != nil || report.Left != 0 || report.Repaired != 2*(1-run) {
			t.Errorf("run %d: %v %s", run, err, texts(report))
		}
	}
	if after := stock("a"); after != [2]int64{before[0] - 3, before[1] - 3} {
		t.Errorf("of %d units are left %d", before, after)
	}
	for name, c := range map[string]struct {
		units map[string]int64
		want  string
	}{
		"no units":      {nil, "the list has no units of it"},
		"no item":       {map[string]int64{"": 2}, "of which item"},
		"other items":   {map[string]int64{"socks": 2}, ""},
		"a region":      {map[string]int64{"b": 2}, "a stock for each region"},
		"none of it":    {map[string]int64{"a": 0}, ""},
		"more than all": {map[string]int64{"none": 8}, "8 units of none"},
	} {
		units["past-3"] = c.units
		report, err := take(true, units)
		if err != nil || (c.want == "") != (report.Found == 0) || c.want != "" && !strings.Contains(report.Differences[0].Text, c.want) {
			t.Errorf("%s: %v %s", name, err, texts(report))
		}
	}
	delete(units, "past-3")
	units["past-4"] = map[string]int64{"none": 9}
	for _, c := range []struct {
		added, left int64
		want        string
	}{{0, 9, "9 of them are held by"}, {7, 9, "2 of them are held by"}, {4, 2, ""}} {
		if c.added > 0 {
			if _, err := m.Adjust(ctx, "s", fmt.Sprint("found", c.added), "none", c.added, "ann"); err != nil {
				t.Fatal(err)
			}
		}
		report, err := take(true, units)
		if err != nil || report.Found != 1 || !strings.Contains(report.Differences[0].Text, fmt.Sprintf("%d units of none with the order past-4", c.left)) ||
			!strings.Contains(report.Differences[0].Repair, c.want) || report.Differences[0].Repaired != (c.want == "") {
			t.Errorf("with %d more units: %v %s", c.added, err, texts(report))
		}
	}
	if after := stock("none"); after != [2]int64{2, 2} {
		t.Errorf("of the units that were added is left %d", after)
	}
	m.agrees(nil)
}

// Units of unnamed items may be bundles: nothing says how many units of which item they are.
func TestTakeOverOfUnnamedBundles(t *testing.T) {
	m := newMarket(t, redistest.Start(t))
	ctx := ledgertest.Soon(t)
	now := time.Now().Truncate(time.Second)
	file := &sale.Sale{
		ID: "s", StartsAt: now.Add(-time.Hour), EndsAt: now.Add(24 * time.Hour), Timezone: "UTC",
		Items: []sale.Item{{SKU: "a", Stock: 1000}, {SKU: "six", Components: []sale.Component{{SKU: "a", Units: 6}}}},
	}
	if _, err := m.Apply(ctx, file, reservation.ApplyOptions{By: "test"}); err != nil {
		t.Fatal(err)
	}
	if err := m.SetStatus(ctx, "s", sale.Paused, "ann"); err != nil {
		t.Fatal(err)
	}
	for sku, want := range map[string]string{"": "of which item its units are", "six": "6 units of a"} {
		shop := sold(map[string]map[string]int64{"past": {sku: 1}})
		shop.TakeOver = true
		report, err := recovery.Reconcile(ctx, m.Store, nil, "s", recovery.Options{By: "ann", Shop: shop})
		if err != nil || report.Found != 1 || !strings.Contains(report.Differences[0].Text, want) {
			t.Errorf("%q: %v %s", sku, err, texts(report))
		}
	}
}

// The shop's list has purchases that were moved in too, by names that no reservation has: their units are not taken out again.
func TestTakeOverBesidePurchases(t *testing.T) {
	m := newDraft(t, redistest.Start(t))
	ctx := ledgertest.Soon(t)
	purchase := []reservation.Purchase{{ID: reservation.MovedInID("x"), Buyer: "Cid", Lines: []sale.Line{{SKU: "a", Quantity: 2}}}}
	if n, err := m.MoveIn(ctx, "s", purchase, "moved in by test"); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	shop := sold(map[string]map[string]int64{"1001": {"a": 2}})
	shop.TakeOver = true
	_, err := recovery.Reconcile(ctx, m.Store, nil, "s", recovery.Options{Repair: true, By: "ann", Shop: shop})
	if !errors.Is(err, shard.ErrRefused) || !strings.Contains(err.Error(), "purchases that were moved in") {
		t.Error(err)
	}
}

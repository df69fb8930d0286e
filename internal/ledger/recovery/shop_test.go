package recovery_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/ledger/recovery"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// hold reserves units of "a" under an id.
func (m *market) hold(id, ref string, units int64) {
	m.t.Helper()
	c := &reservation.ReserveRequest{
		ID: id, Sale: "s", Version: m.version, Buyer: "buyer of " + id, Lines: []sale.Line{{SKU: "a", Quantity: units}},
		HoldFor: time.Hour, Margin: time.Minute, Mode: record.ModeResponse, Ref: ref,
	}
	if _, no, err := m.Reserve(ledgertest.Soon(m.t), c); no != nil || err != nil {
		m.t.Fatal(no, err)
	}
}

// must fails on an error of an operation on a reservation.
func (m *market) must(_ record.State, err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *market) confirm(id string) {
	m.t.Helper()
	m.must(m.Confirm(ledgertest.Soon(m.t), "s", id, reservation.SourceAnswer, ""))
}

// withShop reconciles with the shop's orders.
func (m *market) withShop(repair bool, shop *recovery.Shop) *recovery.Report {
	m.t.Helper()
	report, err := recovery.Reconcile(ledgertest.Soon(m.t), m.Store, nil, "s", recovery.Options{Repair: repair, By: "test@here", Shop: shop})
	if err != nil {
		m.t.Fatal(err)
	}
	return report
}

// listed are orders in a file, and asking is a shop that has the same ones.
func listed(orders ...string) *recovery.Shop {
	return &recovery.Shop{Orders: orders, AsOf: time.Now().Add(time.Hour)}
}

func asking(orders ...string) *recovery.Shop {
	has := func(_ context.Context, _, id, ref string) (bool, error) { return slices.Contains(orders, id), nil }
	return &recovery.Shop{Ask: has, AskMost: 1000}
}

// What is rightly confirmed and can be in no shop's list is no difference: what came back, what was
// sold beyond a hold, and what was bought before the sale came here.
func TestConfirmedThatNoListHas(t *testing.T) {
	m := newDraft(t, redistest.Start(t))
	ctx := ledgertest.Soon(t)
	purchase := []reservation.Purchase{{ID: reservation.MovedInID("x"), Buyer: "Cid", Lines: []sale.Line{{SKU: "a", Quantity: 2}}}}
	if n, err := m.MoveIn(ctx, "s", purchase, "moved in by test"); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	m.open()
	m.hold("a", "", 3)
	m.confirm("a")
	for _, r := range []reservation.Return{{ID: "1", Lines: []sale.Line{{SKU: "a", Quantity: 1}}}, {ID: "2"}} {
		if _, err := m.Return(ctx, "s", "a", r); err != nil {
			t.Fatal(err)
		}
	}
	m.hold("b", "", 1)
	order := &reservation.ShopOrder{Lines: []sale.Line{{SKU: "a", Quantity: 2}}}
	if _, err := m.Resolve(ctx, "s", order.Sale("b", reservation.SourceAnswer, "status_201")); err != nil {
		t.Fatal(err)
	}
	for how, shop := range map[string]*recovery.Shop{"a list": listed("b"), "asked": asking("b")} {
		report := m.withShop(true, shop)
		if !report.Agrees || report.Found != 0 || !strings.Contains(texts(report), "1 purchases that were taken over are not compared") {
			t.Errorf("%s: %s", how, texts(report))
		}
	}
	// without the order, the units beyond its hold are to be returned too
	for how, shop := range map[string]*recovery.Shop{"a list": listed("a"), "asked": asking()} {
		report := m.withShop(true, shop)
		if report.Found != 2 || report.Left != 2 || !strings.Contains(texts(report), "return b") || !strings.Contains(texts(report), "return "+reservation.MoreOf("b")) {
			t.Errorf("%s: %s", how, texts(report))
		}
	}
}

// Of what came back in part, the shop must have the order.
func TestConfirmedThatCameBackInPart(t *testing.T) {
	m := newMarket(t, redistest.Start(t))
	m.hold("a", "", 2)
	m.confirm("a")
	if _, err := m.Return(ledgertest.Soon(t), "s", "a", reservation.Return{ID: "1", Lines: []sale.Line{{SKU: "a", Quantity: 1}}}); err != nil {
		t.Fatal(err)
	}
	m.hold("b", "", 1)
	m.confirm("b")
	for how, shop := range map[string]*recovery.Shop{"a list": listed("b"), "asked": asking("b")} {
		if report := m.withShop(false, shop); report.Found != 1 || report.Differences[0].Name != "a" {
			t.Errorf("%s: %s", how, texts(report))
		}
	}
}

// What has become of a hold in doubt while the sale was compared ends no run: the other holds of
// which the shop has the order are confirmed.
func TestShopsOrderWhoseHoldHasChangedMeanwhile(t *testing.T) {
	for name, change := range map[string]func(m *market, id string){
		"its units are sold": func(m *market, id string) {
			m.must(m.Release(ledgertest.Soon(m.t), "s", id, reservation.SourceShop, ""))
			m.hold("other", "", 999)
		},
		"it is gone": func(m *market, id string) {
			if err := m.client.HDel(ledgertest.Soon(m.t), tag+"records", id).Err(); err != nil {
				m.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMarket(t, redistest.Start(t))
			for _, id := range []string{"x", "y"} {
				m.hold(id, "", 1)
				m.must(m.Doubt(ledgertest.Soon(t), "s", id, "timeout"))
			}
			first := ""
			ask := func(_ context.Context, _, id, ref string) (bool, error) {
				if first == "" {
					first = id
					change(m, id)
				}
				return true, nil
			}
			report := m.withShop(true, &recovery.Shop{Ask: ask, AskMost: 9})
			if report.Found != 2 || report.Repaired != 1 || !strings.Contains(texts(report), "reservation "+first+" was in doubt, and the shop has the order, but it has changed meanwhile") {
				t.Error(texts(report))
			}
			other := map[string]string{"x": "y", "y": "x"}[first]
			if r, err := m.ReservationIn(ledgertest.Soon(t), "s", other); err != nil || r.State != record.Confirmed {
				t.Errorf("the other is %+v, %v", r, err)
			}
		})
	}
}

// An order that a list has several times, or by its id and by its ref, is reported once.
func TestShopsOrderNamedTwice(t *testing.T) {
	m := newMarket(t, redistest.Start(t))
	m.hold("x", "order-x", 1)
	m.must(m.Doubt(ledgertest.Soon(t), "s", "x", "timeout"))
	m.hold("y", "order-y", 1)
	m.must(m.Release(ledgertest.Soon(t), "s", "y", reservation.SourceShop, ""))
	m.twoBuyers()
	orders := []string{"order-x", "y", "order-1", "nosuch"}
	report := m.withShop(true, listed(append(orders, "order-1", "nosuch", "y", "order-y", "x", "order-x")...))
	if report.Found != len(orders) || report.Repaired != 1 {
		t.Error(texts(report))
	}
}

package recovery_test

import (
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

// twoBuyers reserves under one ref for each buyer.
func (m *market) twoBuyers() {
	m.t.Helper()
	for _, buyer := range []string{"Ann", "Bob"} {
		c := &reservation.ReserveRequest{
			ID: "of-" + buyer, Sale: "s", Version: m.version, Buyer: buyer, Lines: []sale.Line{{SKU: "a", Quantity: 1}},
			HoldFor: time.Hour, Margin: time.Minute, Mode: record.ModeResponse, Ref: "order-1",
		}
		if _, no, err := m.Reserve(ledgertest.Soon(m.t), c); no != nil || err != nil {
			m.t.Fatal(no, err)
		}
	}
}

// What belongs to the two buyers of one ref is found and put right.
func TestRefOfTwoBuyers(t *testing.T) {
	redistest.Each(t, func(t *testing.T, on redistest.Backend) {
		m := newMarket(t, on)
		m.twoBuyers()
		m.agrees(nil)
		before := m.shard()
		for field, spoilt := range map[string]string{
			"r|order-1": "", "m|order-1": "", "b|Ann|order-1": "", "b|Bob|order-1": "of-Ann",
			"r|order-2": "of-Ann", "m|order-2": "unknown of-Bob",
		} {
			ctx := ledgertest.Soon(t)
			if spoilt == "" {
				m.client.HDel(ctx, tag+"bindings", field)
			} else {
				m.client.HSet(ctx, tag+"bindings", field, spoilt)
			}
			if report := m.run(nil, true); report.Repaired == 0 || !report.Agrees {
				t.Errorf("%s: %s", field, texts(report))
			}
			m.agrees(nil)
			same(t, m.shard(), before)
		}
	})
}

// A key stays with the first of two sold reservations that name it, also when its time is over
// before the second one is sold: it is not a difference.
func TestKeyStaysWithTheFirst(t *testing.T) {
	redistest.Each(t, func(t *testing.T, on redistest.Backend) {
		m := newMarket(t, on)
		ctx := ledgertest.Soon(t)
		reserve := func(id string, ttl time.Duration) {
			t.Helper()
			c := &reservation.ReserveRequest{
				ID: id, Sale: "s", Version: m.version, Buyer: "Ann", Lines: []sale.Line{{SKU: "a", Quantity: 1}},
				HoldFor: time.Hour, Margin: time.Minute, Mode: record.ModeResponse, Binding: reservation.Binding{Field: "k|x", Print: "p", TTL: ttl},
			}
			if _, no, err := m.Reserve(ctx, c); no != nil || err != nil {
				t.Fatal(no, err)
			}
		}
		must := func(_ record.State, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		reserve("late", time.Hour)
		must(m.Release(ctx, "s", "late", reservation.SourceShop, ""))
		reserve("first", 0)
		must(m.Confirm(ctx, "s", "first", reservation.SourceAnswer, ""))
		if err := m.client.HSet(ctx, tag+"meta", "ends", 1).Err(); err != nil { // with the sale the time of the first key ends
			t.Fatal(err)
		}
		must(m.Confirm(ctx, "s", "late", reservation.SourceAnswer, ""))
		if got := m.shard()["bindings k|x"]; got != "first" {
			t.Errorf("the key belongs to %q", got)
		}
		m.agrees(nil)
	})
}

// An order of the shop that two buyers could have made belongs to no reservation until it
// is named by its reservation.
func TestShopsOrderOfTwoBuyers(t *testing.T) {
	m := newMarket(t, redistest.Start(t))
	m.twoBuyers()
	for _, id := range []string{"of-Ann", "of-Bob"} {
		if _, err := m.Doubt(ledgertest.Soon(t), "s", id, "timeout"); err != nil {
			t.Fatal(err)
		}
	}
	run := func(orders ...string) *recovery.Report {
		t.Helper()
		o := recovery.Options{Repair: true, By: "test@here", Shop: &recovery.Shop{Orders: orders, AsOf: time.Now()}}
		report, err := recovery.Reconcile(ledgertest.Soon(t), m.Store, nil, "s", o)
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	const both = "the shop has an order order-1, and 2 reservations go by this ref: of-Ann (in_doubt, buyer Ann), of-Bob (in_doubt, buyer Bob)"
	if report := run("order-1"); report.Agrees || report.Repaired != 0 || !strings.Contains(texts(report), both) {
		t.Errorf("by the ref: %s", texts(report))
	}
	if report := run("of-Bob"); report.Repaired != 1 {
		t.Errorf("by the id: %s", texts(report))
	}
	if r, err := m.ReservationIn(ledgertest.Soon(t), "s", "of-Ann"); err != nil || r.State != record.InDoubt {
		t.Errorf("the other is %+v, %v", r, err)
	}
}

package probe

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/ledger/recovery"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// openSale opens a sale "s" with units of "a".
func openSale(t *testing.T, ctx context.Context, redis string) *reservation.Store {
	t.Helper()
	store, err := reservation.Open(shard.Options{Addresses: []string{redis}, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	now := time.Now().Truncate(time.Second)
	file := &sale.Sale{ID: "s", StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour), Timezone: "UTC", Items: []sale.Item{{SKU: "a", Stock: 9}}}
	if _, err = store.Apply(ctx, file, reservation.ApplyOptions{By: "test"}); err == nil {
		err = store.SetStatus(ctx, "s", sale.Open, "test")
	}
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// reserve holds a unit for a buyer under the ref order-1.
func reserve(t *testing.T, ctx context.Context, store *reservation.Store, id, buyer string) {
	t.Helper()
	claim := &reservation.ReserveRequest{
		ID: id, Sale: "s", Version: 2, Buyer: buyer, Lines: []sale.Line{{SKU: "a", Quantity: 1}},
		HoldFor: time.Hour, Margin: time.Minute, Mode: record.ModeResponse, Ref: "order-1",
	}
	if _, no, err := store.Reserve(ctx, claim); no != nil || err != nil {
		t.Fatal(no, err)
	}
}

// The shop is not asked by ref alone if two buyers have used that ref: its answer could be
// about the order of the other one.
func TestProbeOfARefOfTwoBuyers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	store := openSale(t, ctx, redistest.Start(t).Addr())
	asked := 0
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked++ }))
	defer shop.Close()
	alone := compileProbe(t, &InDoubt{Probe: shop.URL + "/orders/{ref}"}, nil)
	both := compileProbe(t, &InDoubt{Probe: shop.URL + "/orders/{ref}?reservation={id}"}, nil)
	asks := func(p *Probe, times int, want reservation.ProbeAnswer, fails error) {
		t.Helper()
		asked = 0
		v, _, err := p.AskAbout(ctx, store, "s", reservation.ProbeDue{ID: "r1", Ref: "order-1"})
		if v != want || !errors.Is(err, fails) || asked != times {
			t.Errorf("%v, %v, asked %d times", v, err, asked)
		}
	}
	reserve(t, ctx, store, "r1", "Ann")
	asks(alone, 1, reservation.ProbePresent, nil)
	reserve(t, ctx, store, "r2", "Bob")
	asks(alone, 0, reservation.ProbeUnknown, errNotAsked)
	asks(both, 1, reservation.ProbePresent, nil)
	if _, err := store.Release(ctx, "s", "r2", reservation.SourceShop, ""); err != nil {
		t.Fatal(err)
	}
	asks(alone, 1, reservation.ProbePresent, nil)
}

// A buyer whose first attempt was declined, and who then bought under the same ref, has one order: the
// shop is not asked by that ref alone about the attempt that was declined.
func TestProbeOfARefThatAnotherReservationHas(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	store := openSale(t, ctx, redistest.Start(t).Addr())
	must := func(_ record.State, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	reserve(t, ctx, store, "r1", "Ann")
	must(store.Release(ctx, "s", "r1", reservation.SourceAnswer, "status_402"))
	asked := 0
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked++ }))
	defer shop.Close()
	p := compileProbe(t, &InDoubt{Probe: shop.URL + "/orders/{ref}"}, nil)
	first := reservation.ProbeDue{ID: "r1", Ref: "order-1"}
	if v, _, err := p.AskAbout(ctx, store, "s", first); v != reservation.ProbePresent || err != nil || asked != 1 {
		t.Errorf("alone: %v, %v, asked %d times", v, err, asked)
	}
	reserve(t, ctx, store, "r2", "Ann")
	must(store.Confirm(ctx, "s", "r2", reservation.SourceAnswer, "status_201"))
	if v, _, err := p.AskAbout(ctx, store, "s", first); v != reservation.ProbeUnknown || !errors.Is(err, errNotAsked) || asked != 1 {
		t.Errorf("beside the one that was sold: %v, %v, asked %d times", v, err, asked)
	}
	ask := func(ctx context.Context, _, id, ref string) (bool, error) {
		v, _, err := p.AskAbout(ctx, store, "s", reservation.ProbeDue{ID: id, Ref: ref})
		return v == reservation.ProbePresent, err
	}
	report, err := recovery.Reconcile(ctx, store, nil, "s", recovery.Options{Shop: &recovery.Shop{Ask: ask, AskMost: 9}})
	if err != nil || !report.Agrees || report.Found != 0 || asked != 2 {
		t.Errorf("%+v, %v, asked %d times", report, err, asked)
	}
}

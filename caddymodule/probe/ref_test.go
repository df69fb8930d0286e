package probe

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/redistest"
	"github.com/stockgate/stockgate/record"
	"github.com/stockgate/stockgate/reservation"
	"github.com/stockgate/stockgate/sale"
	"github.com/stockgate/stockgate/shard"
)

// The shop is not asked by ref alone if two buyers have used that ref: its answer could be
// about the order of the other one.
func TestProbeOfARefOfTwoBuyers(t *testing.T) {
	server := redistest.Start(t)
	store, err := reservation.Open(shard.Options{Addresses: []string{server.Addr()}, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	now := time.Now().Truncate(time.Second)
	file := &sale.Sale{ID: "s", StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour), Timezone: "UTC", Items: []sale.Item{{SKU: "a", Stock: 9}}}
	if _, err = store.Apply(ctx, file, reservation.ApplyOptions{By: "test"}); err == nil {
		err = store.SetStatus(ctx, "s", sale.Open, "test")
	}
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked++ }))
	defer shop.Close()
	alone := compileProbe(t, &InDoubt{Probe: shop.URL + "/orders/{ref}"}, nil)
	both := compileProbe(t, &InDoubt{Probe: shop.URL + "/orders/{ref}?reservation={id}"}, nil)
	reserve := func(id, buyer string) {
		t.Helper()
		claim := &reservation.ReserveRequest{
			ID: id, Sale: "s", Version: 2, Buyer: buyer, Lines: []sale.Line{{SKU: "a", Quantity: 1}},
			HoldFor: time.Hour, Margin: time.Minute, Mode: record.ModeResponse, Ref: "order-1",
		}
		if _, no, err := store.Reserve(ctx, claim); no != nil || err != nil {
			t.Fatal(no, err)
		}
	}
	asks := func(p *Probe, times int, want reservation.ProbeAnswer, fails error) {
		t.Helper()
		asked = 0
		v, _, err := p.AskAbout(ctx, store, "s", reservation.ProbeDue{ID: "r1", Ref: "order-1"})
		if v != want || !errors.Is(err, fails) || asked != times {
			t.Errorf("%v, %v, asked %d times", v, err, asked)
		}
	}
	reserve("r1", "Ann")
	asks(alone, 1, reservation.ProbePresent, nil)
	reserve("r2", "Bob")
	asks(alone, 0, reservation.ProbeUnknown, errNotAsked)
	asks(both, 1, reservation.ProbePresent, nil)
	if _, err := store.Release(ctx, "s", "r2", reservation.SourceShop, ""); err != nil {
		t.Fatal(err)
	}
	asks(alone, 1, reservation.ProbePresent, nil)
}

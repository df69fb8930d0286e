package command_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// enter lets a person wait for one of few.
func enter(t *testing.T, p sitetest.Shopper, buyer string) {
	t.Helper()
	replies, err := p.RunPromised(t.Context(), "double11", shard.Op(lua.Enter, "few", 1, 10, buyer, " phone=of-"+buyer))
	if err != nil || replies[0].Code() != lua.OK {
		t.Fatalf("%v, %v", replies, err)
	}
}

// The tally counts an offer as held until the sale is closed, which ends it.
func TestSaleExportWithOffers(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	p := sitetest.NewShopper(t, server)
	p.Hold("all", "few", 3, time.Hour)
	enter(t, p, "Ben")
	enter(t, p, "Cid")
	p.Must(p.Release(t.Context(), "double11", "all", reservation.SourceUnsent, ""))
	b, err := p.SaleStock(t.Context(), "double11")
	if err != nil {
		t.Fatal(err)
	}
	offer := &reservation.ReserveRequest{Sale: "double11", Version: b.Version, Buyer: "Ben", Lines: []sale.Line{{SKU: "few", Quantity: 1}}, HoldFor: time.Hour}
	if made, err := p.Offer(t.Context(), "double11", []int64{1}, []*reservation.ReserveRequest{offer}); err != nil || made[0].Refusal != nil || made[0].Gone {
		t.Fatalf("%+v, %v", made, err)
	}
	for _, want := range []string{"few,,3,2,1,0,0,0,0", "few,,3,3,0,0,0,0,0"} {
		if r := s.Run("sale", "export", "double11", "-"); !strings.Contains(r.Out, want) {
			t.Errorf("it is\n%s%s, want %s", r.Out, r.Errors, want)
		}
		s.OK("sale", "close", "double11", "--yes")
	}
}

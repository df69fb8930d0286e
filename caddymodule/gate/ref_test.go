package gate_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// A stranger who knows an order's number takes nothing from the buyer whose order it is,
// whichever of them comes first; each has their own reservation, and their own repeats.
func TestAStrangersRef(t *testing.T) {
	shop := sitetest.NewBackend(t, takesOrder)
	s := sitetest.OpenCaddyfile(t, retrySite(shop.Addr(), ""))
	const body = `{"sku":"plain","order_no":"SO-1"}`
	stranger := s.Send(keyed("stranger", "", body))
	stranger.Is(t, 201, "")
	owner := s.Send(keyed("owner", "", body))
	owner.Is(t, 201, "")
	shop.Take()
	for buyer, first := range map[string]sitetest.Answer{"stranger": stranger, "owner": owner} {
		s.Send(keyed(buyer, "", body)).Is(t, 201, "")
		got := tokensOf(shop, t)
		if len(got) != 1 || got[0].Sub != buyer || got[0].Ref != "SO-1" || got[0].Jti != first.Header.Get("Stockgate-Reservation") {
			t.Errorf("%s: the shop got %+v", buyer, got)
		}
	}
	s.Send(keyed("owner", "", `{"sku":"plain","quantity":2,"order_no":"SO-1"}`)).Is(t, 409, "already_ordered")
	if got := s.StockOf("plain"); got != "100 98 0 0 2" {
		t.Errorf("stock %s", got)
	}
}

// While a stranger's order of the same number is at the shop, or in doubt, the owner buys.
func TestAStrangersRefThatIsNotSold(t *testing.T) {
	working, status := make(chan string, 1), make(chan int)
	shop := sitetest.NewBackend(t, func(w http.ResponseWriter, r *http.Request) {
		working <- ""
		select {
		case code := <-status:
			w.WriteHeader(code)
		case <-t.Context().Done():
		}
	})
	s := sitetest.OpenCaddyfile(t, retrySite(shop.Addr(), ""))
	const body = `{"sku":"plain","order_no":"SO-1"}`
	stranger := s.BeginOrder(keyed("stranger", "", body), working)
	owner := s.BeginOrder(keyed("owner", "", body), working)
	status <- 500
	status <- 500
	(<-stranger).Is(t, 500, "")
	(<-owner).Is(t, 500, "")
	s.Send(keyed("owner", "", body)).Is(t, 409, "in_doubt")
	late := s.BeginOrder(keyed("third", "", body), working)
	status <- 201
	(<-late).Is(t, 201, "")
}

// An operator who names an order that two buyers have is told so, and names the reservation.
func TestARefOfTwoBuyers(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	address := app["redis"].(map[string]any)["addresses"].([]string)[0]
	store, err := reservation.Open(shard.Options{Addresses: []string{address}, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	version, _, _, err := store.Journal().SaleDocument(ctx, "double11")
	if err != nil {
		t.Fatal(err)
	}
	for _, buyer := range []string{"ann", "bob"} {
		claim := &reservation.ReserveRequest{
			ID: "of-" + buyer, Sale: "double11", Version: version, Buyer: buyer, Lines: []sale.Line{{SKU: "plain", Quantity: 1}},
			HoldFor: time.Hour, Margin: time.Minute, Mode: record.ModeResponse, Ref: "SO-1",
		}
		if _, no, err := store.Reserve(ctx, claim); no != nil || err != nil {
			t.Fatal(no, err)
		}
	}
	orders := s.File("orders", "SO-1\n")
	r := s.Run("holds", "double11", "--confirm-from", orders)
	const both = "refs that several buyers have used (name the reservation by its id): 1\n  SO-1: of-ann (held, buyer ann), of-bob (held, buyer bob)\n"
	if r.Status != 1 || !strings.Contains(r.Out, both) || !strings.Contains(r.Out, "confirmed: 0\n") {
		t.Errorf("%+v", r)
	}
	if r := s.Run("holds", "double11", "--confirm-from", s.File("chosen", "of-ann\n")); r.Status != 0 || !strings.Contains(r.Out, "confirmed: 1\n") {
		t.Errorf("%+v", r)
	}
	if _, err := store.Release(ctx, "double11", "of-bob", reservation.SourceShop, ""); err != nil {
		t.Fatal(err)
	}
	if r := s.Run("holds", "double11", "--confirm-from", orders); r.Status != 0 || !strings.Contains(r.Out, "already confirmed: 1\n") {
		t.Errorf("%+v", r)
	}
}

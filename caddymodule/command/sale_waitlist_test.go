package command_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
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
	sitetest.Do[any](s, "PUT", "/stockgate/sales/double11", sitetest.SaleFile+"waitlist: {}\n")
	p := sitetest.NewShopper(t, server)
	p.Hold("all", "few", 3, time.Hour)
	enter(t, p, "Ben")
	p.Must(p.Release(t.Context(), "double11", "all", reservation.SourceUnsent, ""))
	exported := func(want string) {
		s.Eventually(want, func() (string, bool) {
			r := s.Run("sale", "export", "double11", "-")
			return r.Out + r.Errors, strings.Contains(r.Out, want)
		})
	}
	exported("few,,3,2,1,0,0,0,0")
	s.OK("sale", "close", "double11", "--yes")
	exported("few,,3,3,0,0,0,0,0")
}

package command_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/store/waitlist"
)

func TestWaitlistCommands(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	sitetest.Do[any](s, "PUT", "/stockgate/sales/double11", sitetest.SaleFile+"waitlist: {max: 100}\n")
	s.Refresh()
	p := sitetest.NewShopper(t, server)
	p.Hold("r1", "few", 3, time.Hour)
	desk := waitlist.NewDesk(p.Store)
	t.Cleanup(desk.Close)
	if _, no, err := desk.Enter(t.Context(), &waitlist.Entrant{Sale: "double11", Cell: "few", Quantity: 1, Buyer: "ann", Most: 100}); no != nil || err != nil {
		t.Fatal(no, err)
	}
	var shown adminapi.WaitlistState
	s.Eventually("ann waits", func() (string, bool) {
		out := s.OK("waitlist", "show", "double11", "--json")
		if err := json.Unmarshal([]byte(out), &shown); err != nil {
			t.Fatal(err)
		}
		return out, shown.People == 1
	})
	has(t, s.OK("waitlist", "show", "double11"), "WAITING LIST   double11\n", "1 of at most 100\n", "\noffers         made\n", "\nentered        1\n", "\naccepted       0\n")
	has(t, s.OK("waitlist", "pause", "double11"), "offers of double11 are paused: 1 person waits, and 0 offers open; the sale goes on\n")
	has(t, s.OK("waitlist", "show", "double11"), "paused since 20", "'caddy stockgate waitlist resume double11' goes on")
	has(t, s.OK("sale", "show", "double11"), "waiting list: 1 of at most 100 people, 0 of them with an offer of 5m; 0 offers accepted, 0 lapsed\n", "offers: paused since 20")
	has(t, s.OK("waitlist", "resume", "double11"), "offers of double11 go on: 1 person waits\n")
}

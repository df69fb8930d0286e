package adminapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/waitlist"
)

// An operator sees the waiting list, and lets no more offers be made, by name.
func TestWaitlistOfASale(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	const path = "/stockgate/sales/double11/waitlist"
	if a := s.Admin("GET", path, ""); a.Status != http.StatusConflict || !strings.Contains(a.Body, "has no waiting list") {
		t.Errorf("without a list: %d %s", a.Status, a.Body)
	}
	sitetest.Do[any](s, "PUT", "/stockgate/sales/double11", sitetest.SaleFile+"waitlist: {max: 3}\n")
	s.Refresh()
	p := sitetest.NewShopper(t, server)
	p.Hold("r1", "few", 3, time.Hour)
	desk := waitlist.NewDesk(p.Store)
	t.Cleanup(desk.Close)
	for _, name := range []string{"ann", "ben", "cid"} {
		if _, no, err := desk.Enter(t.Context(), &waitlist.Entrant{Sale: "double11", Cell: "few", Quantity: 1, Buyer: name, Most: 3}); no != nil || err != nil {
			t.Fatal(no, err)
		}
	}
	state := func() adminapi.WaitlistState { return sitetest.Do[adminapi.WaitlistState](s, "GET", path, "") }
	until := func(what string, so func(adminapi.WaitlistState) bool) {
		t.Helper()
		s.Eventually(what, func() (string, bool) {
			w := state()
			return w.Offer, so(w)
		})
	}
	until("three wait", func(w adminapi.WaitlistState) bool {
		return w.People == 3 && w.Offered == 0 && w.Most == 3 && w.Entered == 3
	})
	if a := s.Admin("GET", "/stockgate/doctor", ""); !strings.Contains(a.Body, "the waiting list of double11 is nearly full: 3 of 3 people") {
		t.Errorf("the doctor: %s", a.Body)
	}
	if _, no, err := desk.Enter(t.Context(), &waitlist.Entrant{Sale: "double11", Cell: "few", Quantity: 1, Buyer: "dan", Most: 3}); err != nil || no == nil || no.Reason != sale.ListFull {
		t.Errorf("a fourth: %+v, %v", no, err)
	}
	for range 2 {
		if w := sitetest.Do[adminapi.WaitlistState](s, "POST", path+"/pause", ""); w.OffersPausedSince.IsZero() {
			t.Errorf("paused: %+v", w)
		}
	}
	if logged := s.Logged("offers paused"); len(logged) != 1 || logged[0]["sale"] != "double11" {
		t.Errorf("logged: %v", logged)
	}
	if a := s.Admin("GET", "/stockgate/doctor", ""); !strings.Contains(a.Body, "an operator has paused the offers of double11") || !strings.Contains(a.Body, "caddy stockgate waitlist resume double11") {
		t.Errorf("the doctor: %s", a.Body)
	}
	if shown := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", ""); shown.Waitlist == nil || shown.Waitlist.OffersPausedSince.IsZero() {
		t.Errorf("the sale: %+v", shown.Waitlist)
	}
	if _, err := p.Release(t.Context(), "double11", "r1", "shop", ""); err != nil {
		t.Fatal(err)
	}
	if w := sitetest.Do[adminapi.WaitlistState](s, "POST", path+"/resume", ""); !w.OffersPausedSince.IsZero() {
		t.Errorf("resumed: %+v", w)
	}
	until("three offers", func(w adminapi.WaitlistState) bool { return w.Offered == 3 && w.Offers == 3 })
	if ok, err := desk.Leave(t.Context(), "double11", 2, "ben", "left"); !ok || err != nil {
		t.Fatal(ok, err)
	}
	until("one has left", func(w adminapi.WaitlistState) bool { return w.People == 2 && w.Left == 1 })
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"POST", path + "/pause?x=1", http.StatusBadRequest}, {"GET", path + "?x=1", http.StatusBadRequest}, {"GET", "/stockgate/sales/UPPER/waitlist", http.StatusBadRequest},
		{"POST", "/stockgate/sales/other/waitlist/pause", http.StatusNotFound}, {"POST", "/stockgate/sales/other/waitlist/resume", http.StatusNotFound},
	} {
		if a := s.Admin(c.method, c.path, ""); a.Status != c.status {
			t.Errorf("%s %s: %d %s, want %d", c.method, c.path, a.Status, a.Body, c.status)
		}
	}
}

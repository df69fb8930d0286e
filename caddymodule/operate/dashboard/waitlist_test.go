package dashboard_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/store/waitlist"
)

// listNews is what a test reads of the waiting list.
type listNews struct {
	Waiting, Offered             int
	Most, Accepted, Lapsed, Left int64
	Full                         bool
	Paused                       int64
}

// The page has the waiting list of a sale that has one, and lets users with the act pause its offers, by name.
func TestWaitlist(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, nil)
	s.Gates = []any{at("/ops", basic, page(object{"acts": []string{"offers"}})), at("/look", basic, page(object{"acts": []string{"pause"}}))}
	s.Load(app)
	s.OpenSale()
	p := sitetest.NewShopper(t, server)
	next := listen(t, s, "/ops/events?sale=double11")
	until(t, next, "there is no list", func(n news) bool { return n.Sale.ID == "double11" && n.Sale.Waitlist == nil })
	sitetest.Do[any](s, "PUT", "/stockgate/sales/double11", sitetest.SaleFile+"waitlist: {max: 2}\n")
	s.Refresh()
	p.Hold("r1", "few", 3, time.Hour)
	desk := waitlist.NewDesk(p.Store)
	t.Cleanup(desk.Close)
	for _, name := range []string{"ann", "ben"} {
		if _, no, err := desk.Enter(t.Context(), &waitlist.Entrant{Sale: "double11", Cell: "few", Quantity: 1, Buyer: name, Most: 2}); no != nil || err != nil {
			t.Fatal(no, err)
		}
	}
	until(t, next, "two wait, and the list is full", func(n news) bool {
		return n.Sale.Waitlist != nil && *n.Sale.Waitlist == listNews{Waiting: 2, Most: 2, Full: true}
	})
	for path, status := range map[string]int{"/look/acts/sales/double11/waitlist/pause": http.StatusForbidden, "/ops/acts/sales/double11/pause": http.StatusForbidden, "/ops/acts/sales/double11/waitlist/pause": http.StatusOK} {
		if a := post(s, path, "{}", nil); a.Status != status {
			t.Errorf("%s: %d %s, want %d", path, a.Status, a.Body, status)
		}
	}
	n := until(t, next, "offers are paused", func(n news) bool {
		return n.Sale.Waitlist.Paused > 0 && len(n.Sale.Log) > 0 && n.Sale.Log[0].Kind == "offers_paused"
	})
	if who := n.Sale.Log[0].Who; !strings.HasPrefix(who, "ann@") {
		t.Errorf("paused by %q", who)
	}
	if _, err := p.Release(t.Context(), "double11", "r1", "shop", ""); err != nil {
		t.Fatal(err)
	}
	post(s, "/ops/acts/sales/double11/waitlist/resume", "{}", nil)
	until(t, next, "two offers are open", func(n news) bool { return *n.Sale.Waitlist == listNews{Offered: 2, Most: 2, Full: true} })
	if ok, err := desk.Leave(t.Context(), "double11", 1, "ann", "left"); !ok || err != nil {
		t.Fatal(ok, err)
	}
	n = until(t, next, "one has left", func(n news) bool { return *n.Sale.Waitlist == listNews{Offered: 1, Most: 2, Left: 1} })
	if !slices.ContainsFunc(n.Sale.Log, func(a struct {
		Who, Kind, ID string
		Units         int64
		Times         int
	}) bool {
		return a.Kind == "offers_resumed"
	}) {
		t.Errorf("the log: %+v", n.Sale.Log)
	}
}

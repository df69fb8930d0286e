package gate_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// waitingSite has a gate whose holds last, and the waiting list at /waitlist.
func waitingSite(shop, more string) string {
	return sitetest.OrderMatcher + `stockgate_guard
	@waitlist path /waitlist /waitlist/*
	stockgate_waitlist @waitlist wait {
		buyer {header.X-User-Id}
		line {json.sku} {json.quantity}
		` + more + `
	}
	stockgate @order main {
		buyer {header.X-User-Id}
		line {json.sku} {json.quantity}
		outcome backend
		hold_for 20m
	}
	reverse_proxy ` + shop
}

// waiting is a person on the list.
type waiting struct {
	*sitetest.Site
	place string // where it asks
}

// stands is what the person hears at the place.
type stands struct {
	State, SKU, Until, Now, Why string
	SoldOut                     bool `json:"sold_out"`
	Paused                      bool `json:"paused"`
	Quantity, Place             int64
}

// enters puts a person on the list.
func enters(s *sitetest.Site, buyer, body string) (waiting, sitetest.Answer) {
	s.T.Helper()
	r := sitetest.WithBody(sitetest.NewOrder("X-User-Id", buyer), body)
	r.URL.Path = "/waitlist"
	a := s.Send(r)
	return waiting{s, a.Header.Get("Location")}, a
}

func (p waiting) asks(method string) (sitetest.Answer, stands) {
	p.T.Helper()
	r, err := http.NewRequest(method, "http://127.0.0.1"+p.place, nil)
	if err != nil {
		p.T.Fatal(err)
	}
	a := p.Send(r)
	var told stands
	if a.Status == http.StatusOK {
		decode(p.T, a.Body, &told)
	}
	return a, told
}

// hears waits until the person hears of a state.
func (p waiting) hears(state string) (told stands) {
	p.T.Helper()
	stocktest.Eventually(p.T, state, func() bool {
		_, told = p.asks("GET")
		return told.State == state
	})
	return told
}

func orders(s *sitetest.Site, buyer, body string) sitetest.Answer {
	s.T.Helper()
	return s.Send(sitetest.WithBody(sitetest.NewOrder("X-User-Id", buyer), body))
}

// A person waits while all units are held, and orders those that came back; no other buyer overtakes.
func TestWaitlist(t *testing.T) {
	shop := sitetest.NewBackend(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	s := sitetest.OpenCaddyfile(t, waitingSite(shop.Addr(), ""))
	fileSays(s, "waitlist: {offer: 10m}")
	if _, a := enters(s, "ben", `{"sku":"few"}`); a.Status != http.StatusConflict || a.Header.Get("Stockgate-Refusal") != "available" {
		t.Fatalf("while units are free: %d %s", a.Status, a.Body)
	}
	first := orders(s, "ann", `{"sku":"few","quantity":3}`)
	first.Is(t, http.StatusCreated, "")
	ben, a := enters(s, "ben", `{"sku":"few","quantity":2}`)
	if a.Status != http.StatusCreated || !strings.HasPrefix(ben.place, "/waitlist/double11~") {
		t.Fatalf("%d %s %q", a.Status, a.Body, ben.place)
	}
	if again, a := enters(s, "ben", `{"sku":"few"}`); a.Status != http.StatusOK || again.place != ben.place {
		t.Errorf("again: %d %s %q", a.Status, a.Body, again.place)
	}
	cid, _ := enters(s, "cid", `{"sku":"few"}`)
	if told := cid.hears("waiting"); told.Place != 2 || told.SKU != "few" || told.Quantity != 1 {
		t.Errorf("cid is told %+v", told)
	}
	orders(s, "dan", `{"sku":"few"}`).Is(t, http.StatusConflict, "not_your_turn")
	sitetest.Do[any](s, "POST", "/stockgate/reservations/"+first.Header.Get("Stockgate-Reservation")+"/release?force=true", "")
	if told := ben.hears("offered"); told.Quantity != 2 || told.Until == "" || told.Now == "" {
		t.Errorf("ben is told %+v", told)
	}
	cid.hears("offered")
	orders(s, "dan", `{"sku":"few"}`).Is(t, http.StatusConflict, "all_held")
	orders(s, "ben", `{"sku":"few","quantity":1}`).Is(t, http.StatusCreated, "") // less than was offered
	if told := ben.hears("ended"); told.Why != "accepted" {
		t.Errorf("ben is told %+v", told)
	}
	if _, told := cid.asks("DELETE"); told.State != "ended" || told.Why != "left" {
		t.Errorf("cid is told %+v", told)
	}
	if got := s.StockOf("few"); got != "3 2 1 0 0" {
		t.Errorf("the stock is %s", got)
	}
	orders(s, "dan", `{"sku":"few","quantity":2}`).Is(t, http.StatusCreated, "")
	eve, _ := enters(s, "eve", `{"sku":"few"}`)
	eve.hears("waiting")
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/close", "")
	if told := eve.hears("ended"); told.Why != "closed" {
		t.Errorf("eve is told %+v", told)
	}
}

// A place names one person only, and no client finds another's.
func TestWaitlistPlaces(t *testing.T) {
	shop := sitetest.NewBackend(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	s := sitetest.OpenCaddyfile(t, waitingSite(shop.Addr(), ""))
	fileSays(s, "waitlist: {}")
	orders(s, "ann", `{"sku":"few","quantity":3}`)
	ben, _ := enters(s, "ben", `{"sku":"few"}`)
	for _, place := range []string{"/waitlist", "/waitlist/", "/waitlist/x", ben.place + "x", ben.place[:len(ben.place)-1], strings.Replace(ben.place, "double11", "double12", 1)} {
		if a, _ := (waiting{s, place}).asks("GET"); a.Status != http.StatusNotFound {
			t.Errorf("%s: %d %s", place, a.Status, a.Body)
		}
	}
	if a, _ := ben.asks("PUT"); a.Status != http.StatusMethodNotAllowed || a.Header.Get("Allow") == "" {
		t.Errorf("PUT: %d %v", a.Status, a.Header)
	}
	for body, want := range map[string]string{`{"sku":"few","quantity":0}`: "malformed", `{"sku":"none"}`: "unknown_item", `{`: "malformed"} {
		if _, a := enters(s, "cid", body); a.Header.Get("Stockgate-Refusal") != want {
			t.Errorf("%s: %d %s", body, a.Status, a.Body)
		}
	}
	if _, a := enters(s, "", `{"sku":"few"}`); a.Header.Get("Stockgate-Refusal") != "no_buyer" {
		t.Errorf("without a buyer: %d %s", a.Status, a.Body)
	}
}

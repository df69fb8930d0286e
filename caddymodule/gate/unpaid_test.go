package gate_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// fileSays adds a line to the sale's file.
func fileSays(s *sitetest.Site, line string) {
	s.T.Helper()
	sitetest.Do[any](s, "PUT", "/stockgate/sales/double11", sitetest.SaleFile+line+"\n")
	s.Refresh()
}

// tooMany fails the test unless an attempt is refused for unpaid holds, with a Retry-After of
// least to most seconds.
func tooMany(t *testing.T, a sitetest.Answer, least, most int) {
	t.Helper()
	a.Is(t, http.StatusForbidden, "too_many_unpaid")
	wait, err := strconv.Atoi(a.Header.Get("Retry-After"))
	if err != nil || wait < least || wait > most {
		t.Errorf("Retry-After %q, want %d to %d", a.Header.Get("Retry-After"), least, most)
	}
}

// Where the shop confirms later, a buyer has one unpaid hold at a time, unless the sale says
// otherwise. A hold that was paid does not count.
func TestUnpaidAtTheGate(t *testing.T) {
	shop := sitetest.NewBackend(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	s := sitetest.OpenCaddyfile(t, retrySite(shop.Addr(), "outcome backend\nhold_for 20m"))
	const body = `{"sku":"plain"}`
	first := s.Send(keyed("u1", "k1", body))
	first.Is(t, 201, "")
	tooMany(t, s.Send(keyed("u1", "", body)), 1, 3)
	checkReplayed(t, s.Send(keyed("u1", "k1", body)), first)
	s.Send(keyed("u2", "", body)).Is(t, 201, "")
	sitetest.Do[any](s, "POST", "/stockgate/reservations/"+first.Header.Get("Stockgate-Reservation")+"/confirm", "")
	s.Send(keyed("u1", "", body)).Is(t, 201, "")
	tooMany(t, s.Send(keyed("u1", "", body)), 1, 3)
	fileSays(s, "unpaid: {at_once: 2}")
	s.Send(keyed("u1", "", body)).Is(t, 201, "")
	tooMany(t, s.Send(keyed("u1", "", body)), 1, 3)
	fileSays(s, "unpaid: off")
	s.Send(keyed("u1", "", body)).Is(t, 201, "")
	if got := len(shop.Take()); got != 5 {
		t.Errorf("the shop got %d requests, want 5", got)
	}
}

// With a shop that answers 500 one buyer put 55 of 60 units in doubt. Where the sale says
// unpaid, it is two.
func TestOneBuyersDoubts(t *testing.T) {
	shop := sitetest.NewBackend(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	s := sitetest.OpenCaddyfile(t, retrySite(shop.Addr(), ""))
	fileSays(s, "unpaid: {}")
	const body = `{"sku":"plain"}`
	for i := range 60 {
		a := s.Send(keyed("mallory", "k"+strconv.Itoa(i), body))
		if i < 2 {
			a.Is(t, http.StatusInternalServerError, "")
			id := a.Header.Get("Stockgate-Reservation")
			sitetest.Until(t, "the doubt", func() bool {
				return strings.Contains(s.Admin("GET", "/stockgate/reservations/"+id, "").Body, `"state":"in_doubt"`)
			})
			continue
		}
		tooMany(t, a, 1800, 3602)
	}
	if got := s.StockOf("plain"); got != "100 98 0 2 0" {
		t.Errorf("stock %s, want two units in doubt", got)
	}
}

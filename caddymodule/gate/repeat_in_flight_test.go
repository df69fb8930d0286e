package gate_test

import (
	"net/http"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// The answers to a key while its first attempt is not sold, and after the shop refused it.
func TestKeyOfAnAttemptThatIsNotSold(t *testing.T) {
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
	const body = `{"sku":"plain"}`
	start := func(r *http.Request) chan sitetest.Answer { return s.BeginOrder(r, working) }
	running := start(keyed("u1", "k1", body))
	for _, r := range []*http.Request{keyed("u1", "k1", body), keyed("u1", `"k1"`, body)} {
		again := s.Send(r)
		again.Is(t, 409, "duplicate")
		if again.Header.Get("Retry-After") == "" {
			t.Error("the answer does not say when to come back")
		}
	}
	s.Send(keyed("u1", "k1", `{"sku":"few"}`)).Is(t, 422, "key_reused")
	second := start(keyed("u1", "k2", body))
	status <- 404
	status <- 404
	(<-running).Is(t, 404, "")
	(<-second).Is(t, 404, "")

	// it was refused: the key is free
	running = start(keyed("u1", "k1", body))
	status <- 500
	doubt := <-running
	doubt.Is(t, 500, "")
	id := doubt.Header.Get("Stockgate-Reservation")
	again := s.Send(keyed("u1", "k1", body))
	again.Is(t, 409, "in_doubt")
	if reservationOf(t, again) != id || again.Header.Get("Retry-After") == "" {
		t.Errorf("%v %s", again.Header, again.Body)
	}
	s.Send(keyed("u1", "k1", `{"sku":"few"}`)).Is(t, 422, "key_reused")

	// an operator confirms it: the shop's answer did not reach the buyer
	sitetest.Do[any](s, "POST", "/stockgate/reservations/"+id+"/confirm", "")
	again = s.Send(keyed("u1", "k1", body))
	again.Is(t, 409, "already_ordered")
	if reservationOf(t, again) != id || again.Header.Get("Retry-After") != "" {
		t.Errorf("%v %s", again.Header, again.Body)
	}
	if got := s.StockOf("plain"); got != "100 99 0 0 1" || len(shop.Take()) != 3 {
		t.Errorf("stock %s", got)
	}
}

// The answers to a ref that is not sold.
func TestRefThatIsNotSold(t *testing.T) {
	working, status := make(chan string, 1), make(chan int)
	shop := sitetest.NewBackend(t, func(w http.ResponseWriter, r *http.Request) {
		working <- ""
		select {
		case code := <-status:
			w.WriteHeader(code)
		case <-t.Context().Done():
		}
	})
	s := sitetest.OpenCaddyfile(t, sharedRef(retrySite(shop.Addr(), "")))
	const body = `{"sku":"plain","order_no":"cart-1"}`
	first := s.BeginOrder(keyed("u1", "", body), working)
	s.Send(keyed("u1", "", body)).Is(t, 409, "duplicate")
	s.Send(keyed("u1", "k9", body)).Is(t, 409, "duplicate")
	held := s.Send(keyed("u2", "", body))
	held.Is(t, 409, "duplicate")
	status <- 400
	refused := <-first
	refused.Is(t, 400, "")

	first = s.BeginOrder(keyed("u1", "", body), working)
	status <- 503
	doubt := <-first
	if a, b := doubt.Header.Get("Stockgate-Reservation"), refused.Header.Get("Stockgate-Reservation"); a == b || a == "" {
		t.Errorf("a released ref has the reservation %s again", a)
	}
	if a := s.Send(keyed("u1", "", body)); reservationOf(t, a) != doubt.Header.Get("Stockgate-Reservation") {
		t.Errorf("in doubt: %s", a.Body)
	}
	other := s.Send(keyed("u2", "", body))
	other.Is(t, 409, "in_doubt")
	if reservationOf(t, other) != "" {
		t.Errorf("another buyer learns of the reservation: %s", other.Body)
	}
	if got := s.StockOf("plain"); got != "100 99 0 1 0" {
		t.Errorf("stock %s", got)
	}
}

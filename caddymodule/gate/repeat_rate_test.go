package gate_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// Of 5,000 repeats of one sold order the shop gets as many as the rate allows, and other
// buyers can buy as before.
func TestRepeatsOfOneOrderHaveARate(t *testing.T) {
	shop := sitetest.NewBackend(t, takesOrder)
	s := sitetest.OpenCaddyfile(t, retrySite(shop.Addr(), "repeats 5 1h"))
	body := func(ref string) string { return fmt.Sprintf(`{"sku":"plain","order_no":%q}`, ref) }
	s.Send(keyed("u1", "", body("one"))).Is(t, 201, "")
	s.Send(keyed("u2", "", body("two"))).Is(t, 201, "")
	shop.Take()
	limited, client := 0, s.Client()
	client.Transport.(*http.Transport).DisableKeepAlives = false
	t.Cleanup(client.CloseIdleConnections)
	for i := range 5000 {
		a := s.SendBy(client, keyed("u1", "", body("one")))
		if i < 5 {
			a.Is(t, 201, "")
			continue
		}
		if limited++; limited == 1 {
			wait := 0
			_, err := fmt.Sscanf(a.Header.Get("RateLimit"), `"main-repeats";r=0;t=%d`, &wait)
			if got := a.Header.Get("RateLimit-Policy"); got != `"main-repeats";q=5;w=3600` || err != nil || wait < 1 || wait > 720 || a.Header.Get("Retry-After") == "" {
				t.Errorf("%v", a.Header)
			}
		}
		if a.Status != http.StatusTooManyRequests || a.Header.Get("Stockgate-Refusal") != "rate_limited" {
			t.Fatalf("repeat %d: %d %s", i, a.Status, a.Body)
		}
	}
	if got := len(shop.Take()); got != 5 {
		t.Errorf("%d of 5,000 repeats came to the shop", got)
	}
	s.Send(keyed("u2", "", body("two"))).Is(t, 201, "")
	s.Send(keyed("u1", "", body("three"))).Is(t, 201, "") // a new order is no repeat
	// what is answered here is no repeat for the shop
	s.Send(keyed("u1", "", `{"sku":"plain","quantity":2,"order_no":"one"}`)).Is(t, 409, "already_ordered")
	if got := s.StockOf("plain"); got != "100 97 0 0 3" || len(shop.Take()) != 2 {
		t.Errorf("stock %s", got)
	}
	// the answer to a key is stored: it costs the shop nothing
	first := s.Send(keyed("u3", "k1", body("four")))
	for range 20 {
		checkReplayed(t, s.Send(keyed("u3", "k1", body("four"))), first)
	}
}

// Without an option a gate with a ref has the rate too.
func TestRepeatsHaveARateByDefault(t *testing.T) {
	shop := sitetest.NewBackend(t, takesOrder)
	s := sitetest.OpenCaddyfile(t, retrySite(shop.Addr(), ""))
	const body = `{"sku":"plain","order_no":"one"}`
	s.Send(keyed("u1", "", body)).Is(t, 201, "")
	for range 10_000 {
		if a := s.Send(keyed("u1", "", body)); a.Status == http.StatusTooManyRequests {
			if got := a.Header.Get("RateLimit-Policy"); got != `"main-repeats";q=5;w=10` {
				t.Errorf("RateLimit-Policy: %s", got)
			}
			return
		}
	}
	t.Error("none of 10,000 repeats was refused")
}

package caddymodule_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/test/sitetest"
)

// Of 5,000 repeats of one sold order the shop gets as many as the rate allows, and other
// buyers can buy as before.
func TestRepeatsOfOneOrderHaveARate(t *testing.T) {
	shop := newBackend(t, takesOrder)
	s := openCaddyfile(t, retrySite(shop.addr(), "repeats 5 1h"))
	body := func(ref string) string { return fmt.Sprintf(`{"sku":"plain","order_no":%q}`, ref) }
	s.send(keyed("u1", "", body("one"))).Is(t, 201, "")
	s.send(keyed("u2", "", body("two"))).Is(t, 201, "")
	shop.take()
	limited, client := 0, s.client()
	client.Transport.(*http.Transport).DisableKeepAlives = false
	t.Cleanup(client.CloseIdleConnections)
	for i := range 5000 {
		a := s.sendBy(client, keyed("u1", "", body("one")))
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
	if got := len(shop.take()); got != 5 {
		t.Errorf("%d of 5,000 repeats came to the shop", got)
	}
	s.send(keyed("u2", "", body("two"))).Is(t, 201, "")
	s.send(keyed("u1", "", body("three"))).Is(t, 201, "") // a new order is no repeat
	// what is answered here is no repeat for the shop
	s.send(keyed("u1", "", `{"sku":"plain","quantity":2,"order_no":"one"}`)).Is(t, 409, "already_ordered")
	if got := s.cell("plain"); got != "100 97 0 0 3" || len(shop.take()) != 2 {
		t.Errorf("stock %s", got)
	}
	// the answer to a key is stored: it costs the shop nothing
	first := s.send(keyed("u3", "k1", body("four")))
	for range 20 {
		checkReplayed(t, s.send(keyed("u3", "k1", body("four"))), first)
	}
}

// Without an option a gate with a ref has the rate too.
func TestRepeatsHaveARateByDefault(t *testing.T) {
	shop := newBackend(t, takesOrder)
	s := openCaddyfile(t, retrySite(shop.addr(), ""))
	const body = `{"sku":"plain","order_no":"one"}`
	s.send(keyed("u1", "", body)).Is(t, 201, "")
	for range 10_000 {
		if a := s.send(keyed("u1", "", body)); a.Status == http.StatusTooManyRequests {
			if got := a.Header.Get("RateLimit-Policy"); got != `"main-repeats";q=5;w=10` {
				t.Errorf("RateLimit-Policy: %s", got)
			}
			return
		}
	}
	t.Error("none of 10,000 repeats was refused")
}

// An attempt that a rate of this edge refuses is answered from memory, also when it repeats a
// sold order: neither Redis nor the shop is asked.
func TestLocalRatesComeBeforeRepeats(t *testing.T) {
	u := openUnread(t, winnerSites)
	for name, addr := range map[string]string{"gate": u.plain, "fast": u.fast} {
		ref, buyer := "order-"+name, "winner-"+name
		if got := u.ask(addr, buyer, "double11", "plain", 1, ref); !strings.HasPrefix(got, "HTTP/1.1 201") {
			t.Fatalf("%s: %s", name, got)
		}
		before := u.fastAnswers()
		if got := reasonOf(u.ask(addr, buyer, "double11", "plain", 1, ref)); got != "rate_limited" {
			t.Errorf("%s: the winner hears %q", name, got)
		}
		if fast := u.fastAnswers() > before; fast != (name == "fast") {
			t.Errorf("%s: fast %t", name, fast)
		}
	}
	u.proxy.DropAll()
	for name, addr := range map[string]string{"gate": u.plain, "fast": u.fast} {
		if got := reasonOf(u.ask(addr, "winner-"+name, "double11", "plain", 1, "order-"+name)); got != "rate_limited" {
			t.Errorf("%s, without redis: the winner hears %q", name, got)
		}
	}
	u.proxy.Heal()
}

// A denied buyer is refused whatever they have bought before: the order stands, and the shop
// does not get it again.
func TestDenyComesBeforeRepeats(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := openSite(t, nil)
	app["lists"] = map[string]any{"bad": redisSource}
	s.useGate(map[string]any{"deny": []string{"bad"}, "ref": []string{"{json.ref}"}, "idempotency": []string{"{json.key}"}})
	s.Load(app)
	s.sell()
	const home = "198.51.100.1"
	bids := []bid{
		{buyer: "ann", ip: home, body: `{"items":[{"sku":"plain","n":1}],"ref":"order-1"}`},
		{buyer: "ann", ip: home, body: `{"items":[{"sku":"plain","n":1}],"key":"key-1"}`},
	}
	for range 2 { // the second time forwarded again, and answered again
		for _, b := range bids {
			s.becomes("sold", b)
		}
	}
	s.OK("list", "add", "bad", "buyer:ann")
	for _, b := range bids {
		s.becomes("denied", b)
	}
	s.closeShop() // else it is asked
	for _, b := range bids {
		if got := s.order(b); got != "denied" {
			t.Errorf("%s: %s", b.body, got)
		}
	}
	if got := s.cell("plain"); got != "1000 998 0 0 2" {
		t.Errorf("stock %s", got)
	}
}

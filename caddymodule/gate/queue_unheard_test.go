package gate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/lua"
)

// proxied is a site with a queue whose edge reaches Redis over a proxy; the test does not.
func proxied(t *testing.T, shop *slowShop) (*sitetest.Site, *redistest.Proxy) {
	t.Helper()
	s := sitetest.OpenCaddyfile(t, queueSite(shop.Addr(), ""))
	proxy := redistest.NewProxy(t, s.Redis)
	direct := s.Redis
	s.Redis = proxy.Addr()
	if err := s.LoadCaddyfile(queueSite(shop.Addr(), "")); err != nil {
		t.Fatal(err)
	}
	s.Refresh()
	s.Redis = direct
	return s, proxy
}

// Redis puts an order into the line, and its answer is lost. Once that is released the client hears
// that there is no order; as long as another edge may send it, that this is not known.
func TestQueueUnheard(t *testing.T) {
	shop := newSlowShop(t)
	s, proxy := proxied(t, shop)
	store, err := reservation.Open(shard.Options{Addresses: []string{s.Redis}, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	first := s.BeginOrder(keyed("u0", "", `{"sku":"plain","quantity":1}`), shop.working)
	lose := func() { proxy.CutReplies(3, "EVALSHA "+store.Shard().Options.Scripts.Of(lua.Reserve).SHA) }

	// where the release takes too long, the client hears that it is not known
	tries := 0
	s.Eventually("a client that hears that there is no order", func() (string, bool) {
		tries++
		lose()
		a := s.Send(async(fmt.Sprint("u1-", tries), fmt.Sprint("k1-", tries)))
		untilWaiting(s, 0)
		if n := proxy.CutsLeft(); n > 0 {
			t.Fatalf("%d answers were not lost: the test shows nothing", n)
		}
		return a.Body, a.Status == 503 && a.Header.Get("Stockgate-Refusal") == "unavailable"
	})

	proxy.HoldRequests("EVALSHA release")
	lose()
	a := s.Send(async("u2", "k2"))
	a.Is(t, 409, "in_doubt")
	if a.Header.Get("Retry-After") == "" {
		t.Errorf("%v", a.Header)
	}
	untilWaiting(s, 1)
	proxy.ReleaseRequests()
	untilWaiting(s, 0)
	shop.done <- struct{}{}
	(<-first).Is(t, 201, "")
	s.Eventually("the books", func() (string, bool) { got := s.StockOf("plain"); return got, got == "100 99 0 0 1" })
	if got := len(shop.Take()); got != 1 {
		t.Errorf("the shop got %d orders", got)
	}
}

// Redis hears that orders are sent, and its answers are lost: they were not sent, wait on and are sent
// with their next turns, one whose request is open and one whose request is not.
func TestQueueSendUnheard(t *testing.T) {
	shop := newSlowShop(t)
	s, proxy := proxied(t, shop)
	first := s.BeginOrder(keyed("u0", "", `{"sku":"plain","quantity":1}`), shop.working)
	at := s.Send(async("u1", "")).Header.Get("Location")
	open := make(chan sitetest.Answer, 1)
	go func() { open <- s.Send(keyed("u2", "", `{"sku":"plain","quantity":1}`)) }()
	untilWaiting(s, 2)
	for i, buyer := range []string{"u1", "u2"} {
		proxy.CutReplies(3, "EVALSHA send")
		shop.done <- struct{}{}
		if i == 0 {
			(<-first).Is(t, 201, "")
		}
		if got := <-shop.working; got != buyer {
			t.Fatalf("the shop works on the order of %s, want %s", got, buyer)
		}
		if n := proxy.CutsLeft(); n > 0 {
			t.Fatalf("%d answers were not lost: the test shows nothing", n)
		}
	}
	shop.done <- struct{}{}
	(<-open).Is(t, 201, "")
	s.Eventually("the answer", func() (string, bool) { got := getAt(s, at); return got.Body, got.Status == 201 })
	if got := len(shop.Take()); got != 3 {
		t.Errorf("the shop got %d orders", got)
	}
}

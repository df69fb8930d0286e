package gate_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/caddymodule/internal/timing"
	"github.com/stockgate/stockgate/internal/ledger/sqlite"
)

// ledgered is a site whose sale has a queue and a ledger, and is rebuilt after all of Redis is lost.
func ledgered(t *testing.T, shop string) (s *sitetest.Site, rebuild func()) {
	server, app := sitetest.Redis(t)
	file := filepath.Join(t.TempDir(), "ledger.db")
	s = sitetest.Open(t, app)
	s.OpenSale()
	s.Redis, s.Options = server.Addr(), "ledger sqlite "+file
	if err := s.LoadCaddyfile(queueSite(shop, "")); err != nil {
		t.Fatal(err)
	}
	s.Refresh()
	l, err := sqlite.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return s, func() {
		t.Helper()
		s.Eventually("the ledger has all", func() (string, bool) {
			at, err := l.Position(t.Context(), "double11")
			seq := redisOf(s).HGet(t.Context(), "stockgate:{double11.0}:meta", "seq").Val()
			return fmt.Sprint(at, seq, err), err == nil && fmt.Sprint(at.Seq) == seq
		})
		sitetest.EmptyRedis(t, server)
		s.UntilScraped(map[string]string{sitetest.LostPlain: "1"})
		s.OK("rebuild", "double11", "--from", "ledger", "--open")
	}
}

// Redis loses everything while orders wait, and the sale is rebuilt: those whose requests are open wait
// again, in order, and are sent once. All others are released; their buyers and the operator are told.
func TestQueueRebuilt(t *testing.T) {
	sitetest.SetTime(t, timing.Turn, 1500*time.Millisecond) // those that wait again have done so before others are released
	shop := newSlowShop(t)
	s, rebuild := ledgered(t, shop.Addr())
	first := s.BeginOrder(keyed("u0", "", `{"sku":"plain","quantity":1}`), shop.working)
	open := map[string]chan sitetest.Answer{}
	waiting := 0
	wait := func(send func()) {
		t.Helper()
		send()
		waiting++
		s.Eventually("an order that waits", func() (string, bool) { n := waitingAt(s); return fmt.Sprint(n), n == waiting })
	}
	var places []string
	for i := range 2 {
		wait(func() { places = append(places, s.Send(async(fmt.Sprint("told", i), "")).Header.Get("Location")) })
		wait(func() {
			buyer, done := fmt.Sprint("open", i), make(chan sitetest.Answer, 1)
			open[buyer] = done
			go func() { done <- s.Send(keyed(buyer, "", `{"sku":"plain","quantity":1}`)) }()
		})
	}
	rebuild()
	for _, at := range places {
		s.Eventually("the release of what is lost", func() (string, bool) { a := getAt(s, at); return a.Body, strings.Contains(a.Body, `"released"`) })
	}
	if n := len(shop.working); n != 0 {
		t.Errorf("%d orders are at the shop beside the one that was there before", n)
	}
	shop.done <- struct{}{}
	if a := <-first; a.Status != http.StatusCreated {
		t.Errorf("what was at the shop: %d %s", a.Status, a.Body)
	}
	for i := range 2 {
		buyer := <-shop.working
		if want := fmt.Sprint("open", i); buyer != want {
			t.Fatalf("the shop works on the order of %s, want %s", buyer, want)
		}
		shop.done <- struct{}{}
		(<-open[buyer]).Is(t, 201, "")
	}
	if got, want := s.StockOf("plain"), "100 97 0 0 3"; got != want {
		t.Errorf("the cell is %s, want %s", got, want)
	}
	if n := len(shop.working); n != 0 || waitingAt(s) != 0 {
		t.Errorf("%d orders are at the shop, and %d wait", n, waitingAt(s))
	}
	if found := s.Logged("redis has lost orders that waited for the shop: their units are on sale again, and their buyers are told so"); len(found) != 1 || found[0]["orders"] != 2.0 {
		t.Errorf("the log has %v", found)
	}
}

// What a buyer hears at a place while Redis has lost the sale is that it is not known, at an edge that
// sold it and at one that has just started, until the sale is back. Only of what no edge can have told
// a buyer there is certainly nothing.
func TestPlacesOfALostSale(t *testing.T) {
	server, app := sitetest.Redis(t)
	shop := newSlowShop(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	s.Redis = server.Addr()
	start := func() {
		t.Helper()
		if err := s.LoadCaddyfile(queueSite(shop.Addr(), "")); err != nil {
			t.Fatal(err)
		}
	}
	start()
	s.Refresh()
	first := s.BeginOrder(keyed("u0", "", `{"sku":"plain","quantity":1}`), shop.working)
	t.Cleanup(func() { close(shop.done) })
	at := s.Send(async("u1", "")).Header.Get("Location")
	inSecret := len("/orders/") + 30
	instead := "A"
	if at[inSecret] == 'A' {
		instead = "B"
	}
	other := at[:inSecret] + instead + at[inSecret+1:]
	is := func(when, at string, want int) {
		t.Helper()
		for _, method := range []string{"GET", "HEAD", "DELETE"} {
			s.Eventually(method+" "+when, func() (string, bool) {
				r, err := http.NewRequest(method, "http://shop.test"+at, nil)
				if err != nil {
					t.Fatal(err)
				}
				a := s.Send(r)
				if a.Status == http.StatusNotFound && want != http.StatusNotFound || a.Status == http.StatusGone && want != http.StatusGone {
					t.Fatalf("%s, %s: %d %s", when, method, a.Status, a.Body)
				}
				return fmt.Sprint(a.Status, a.Header), a.Status == want && (want != 503 || a.Header.Get("Retry-After") != "")
			})
		}
	}
	is("of what no edge has told", other, http.StatusNotFound)
	sitetest.EmptyRedis(t, server)
	is("of a sale that is lost", at, http.StatusServiceUnavailable)
	shop.done <- struct{}{}
	<-first
	s.Load(nil)
	start()
	is("at an edge that has just started", at, http.StatusServiceUnavailable)
	s.OK("sale", "apply", s.File("sale.yaml", sitetest.ListsSale), "--new")
	is("of a sale that was loaded again", at, http.StatusGone)
	s.OK("sale", "close", "double11")
	s.OK("sale", "delete", "double11")
	is("of a sale that was deleted", at, http.StatusGone)
	is("of what no edge has told", other, http.StatusNotFound)
}

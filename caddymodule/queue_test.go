package caddymodule_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/sitetest"
)

// queueSite is a site whose shop takes one order at a time.
func queueSite(shop, more string) string {
	return orders + `stockgate_guard
	stockgate_status
	stockgate @order main {
		buyer {header.X-User-Id}
		line {json.sku} {json.quantity}
		idempotency {header.Idempotency-Key}
		queue {
			at_once 1
			` + more + `
		}
	}
	reverse_proxy ` + shop
}

// slowShop takes orders when the test lets it.
type slowShop struct {
	*backend
	working chan string // X-User-Id of each order that it works on
	done    chan struct{}
}

func newSlowShop(t *testing.T) *slowShop {
	s := &slowShop{working: make(chan string, 100), done: make(chan struct{})}
	s.backend = newBackend(t, func(w http.ResponseWriter, r *http.Request) {
		s.working <- r.Header.Get("X-User-Id")
		<-s.done
		w.Header().Set("X-Order", "of "+r.Header.Get("X-User-Id"))
		takesOrder(w, r)
	})
	return s
}

type told struct {
	State        string
	Place, About int64
}

func toldOf(t *testing.T, a sitetest.Answer) (p told) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.Body), &p); err != nil {
		t.Fatalf("%v in %d %s", err, a.Status, a.Body)
	}
	return p
}

// async is a request whose client does not wait for the shop.
func async(buyer, key string) *http.Request {
	r := keyed(buyer, key, `{"sku":"plain","quantity":1}`)
	r.Header.Set("Prefer", "respond-async")
	return r
}

// An order waits with its request open, in the order in which it came, and its client hears the
// shop's own answer.
func TestQueueKeepsRequestsOpen(t *testing.T) {
	shop := newSlowShop(t)
	s := openCaddyfile(t, queueSite(shop.addr(), ""))
	answers := map[string]chan sitetest.Answer{}
	first := s.start(keyed("u0", "", `{"sku":"plain","quantity":1}`), shop.working)
	for i := 1; i <= 3; i++ {
		buyer, done := fmt.Sprint("u", i), make(chan sitetest.Answer, 1)
		answers[buyer] = done
		go func() { done <- s.send(keyed(buyer, "", `{"sku":"plain","quantity":1}`)) }()
		s.Eventually("an order that waits", func() (string, bool) {
			n := s.waiting()
			return fmt.Sprint(n), n == i
		})
	}
	shop.done <- struct{}{}
	(<-first).Is(t, 201, "")
	for i := 1; i <= 3; i++ {
		buyer := <-shop.working
		if want := fmt.Sprint("u", i); buyer != want {
			t.Errorf("the shop works on the order of %s, want %s", buyer, want)
		}
		shop.done <- struct{}{}
		a := <-answers[buyer]
		a.Is(t, 201, "")
		if a.Body != paid || a.Header.Get("X-Order") != "of "+buyer {
			t.Errorf("%s hears %v %s", buyer, a.Header, a.Body)
		}
	}
}

// waiting is how many orders wait in Redis.
func (s *site) waiting() int {
	s.t.Helper()
	n, err := s.redis().ZCard(s.t.Context(), "stockgate:{double11.0}:line").Result()
	if err != nil {
		s.t.Fatal(err)
	}
	return int(n)
}

// A client that does not wait gets a place, where it sees its order come to the shop, and then
// the shop's whole answer. Nothing of it is readable in Redis.
func TestQueuePlaces(t *testing.T) {
	shop := newSlowShop(t)
	s := openCaddyfile(t, queueSite(shop.addr(), ""))
	first := s.start(keyed("u0", "", `{"sku":"plain","quantity":1}`), shop.working)
	a := s.send(async("secret-buyer", "k1"))
	if a.Status != 202 || a.Header.Get("Retry-After") == "" || !strings.HasPrefix(a.Header.Get("Location"), "/orders/") || a.Header.Get("Preference-Applied") != "respond-async" {
		t.Fatalf("%d %v %s", a.Status, a.Header, a.Body)
	}
	if p := toldOf(t, a); p.State != "waiting" || p.Place != 1 {
		t.Errorf("it is told %+v", p)
	}
	at := a.Header.Get("Location")
	again := s.send(async("secret-buyer", "k1"))
	if again.Status != 202 || again.Header.Get("Location") != at {
		t.Errorf("the same again: %d %v", again.Status, again.Header)
	}
	if p := toldOf(t, s.get(at)); p.State != "waiting" || p.Place != 1 {
		t.Errorf("at its place: %+v", p)
	}
	for field, text := range s.redis().HGetAll(t.Context(), "stockgate:{double11.0}:orders").Val() {
		if strings.Contains(text, "secret-buyer") || strings.Contains(text, "plain") {
			t.Errorf("%s has %q", field, text)
		}
	}
	shop.done <- struct{}{}
	(<-first).Is(t, 201, "")
	if buyer := <-shop.working; buyer != "secret-buyer" {
		t.Fatalf("the shop works on the order of %q", buyer)
	}
	if p := toldOf(t, s.get(at)); p.State != "at_shop" {
		t.Errorf("while the shop works on it: %+v", p)
	}
	shop.done <- struct{}{}
	var got sitetest.Answer
	s.Eventually("the shop's answer", func() (string, bool) {
		got = s.get(at)
		return fmt.Sprint(got.Status), got.Status == 201
	})
	if got.Body != paid || got.Header.Get("X-Order") != "of secret-buyer" || got.Header.Get("Set-Cookie") == "" {
		t.Errorf("the shop's answer is %v %s", got.Header, got.Body)
	}
	other := []byte(at)
	other[len(other)-10] ^= 1
	if a := s.get(string(other)); a.Status != 404 {
		t.Errorf("a ticket that was not given: %d %s", a.Status, a.Body)
	}
	checkReplayed(t, s.send(keyed("secret-buyer", "k1", `{"sku":"plain","quantity":1}`)), sitetest.Answer{Status: 201, Body: paid, Header: http.Header{
		"Content-Type": got.Header["Content-Type"], "Location": got.Header["Location"], "Stockgate-Reservation": got.Header["Stockgate-Reservation"]}})
}

// get asks the shop's site.
func (s *site) get(path string) sitetest.Answer {
	r, err := http.NewRequest("GET", "http://shop.test"+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.send(r)
}

// redis is a client of the site's Redis.
func (s *site) redis() *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: s.Redis})
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

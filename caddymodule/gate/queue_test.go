package gate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// queueSite is a site whose shop takes one order at a time. However slow the machine is, a
// request that waits stays open.
func queueSite(shop, more string) string {
	if !strings.Contains(more, "wait ") {
		more += "\n\t\t\twait 5m"
	}
	return sitetest.OrderMatcher + `stockgate_guard
	stockgate_status
	stockgate @order main {
		buyer {header.X-User-Id}
		line {json.sku} {json.quantity}
		idempotency {header.Idempotency-Key}
		hold_for 10m
		queue {
			at_once 1
			` + more + `
		}
	}
	reverse_proxy ` + shop
}

// slowShop takes orders when the test lets it.
type slowShop struct {
	*sitetest.Backend
	working chan string // X-User-Id of each order that it works on
	done    chan struct{}
}

func newSlowShop(t *testing.T) *slowShop {
	s := &slowShop{working: make(chan string, 100), done: make(chan struct{})}
	s.Backend = sitetest.NewBackend(t, func(w http.ResponseWriter, r *http.Request) {
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
	s := sitetest.OpenCaddyfile(t, queueSite(shop.Addr(), ""))
	answers := map[string]chan sitetest.Answer{}
	first := s.BeginOrder(keyed("u0", "", `{"sku":"plain","quantity":1}`), shop.working)
	for i := 1; i <= 3; i++ {
		buyer, done := fmt.Sprint("u", i), make(chan sitetest.Answer, 1)
		answers[buyer] = done
		go func() { done <- s.Send(keyed(buyer, "", `{"sku":"plain","quantity":1}`)) }()
		s.Eventually("an order that waits", func() (string, bool) {
			n := waitingAt(s)
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

// waitingAt is how many orders wait in Redis.
func waitingAt(s *sitetest.Site) int {
	s.T.Helper()
	n, err := redisOf(s).ZCard(s.T.Context(), "stockgate:{double11.0}:line").Result()
	if err != nil {
		s.T.Fatal(err)
	}
	return int(n)
}

// A client that does not wait gets a place, where it sees its order come to the shop, and then
// the shop's whole answer. Nothing of it is readable in Redis.
func TestQueuePlaces(t *testing.T) {
	shop := newSlowShop(t)
	s := sitetest.OpenCaddyfile(t, queueSite(shop.Addr(), ""))
	first := s.BeginOrder(keyed("u0", "", `{"sku":"plain","quantity":1}`), shop.working)
	a := s.Send(async("secret-buyer", "k1"))
	if a.Status != 202 || a.Header.Get("Retry-After") == "" || !strings.HasPrefix(a.Header.Get("Location"), "/orders/") || a.Header.Get("Preference-Applied") != "respond-async" {
		t.Fatalf("%d %v %s", a.Status, a.Header, a.Body)
	}
	if p := toldOf(t, a); p.State != "waiting" || p.Place != 1 {
		t.Errorf("it is told %+v", p)
	}
	at := a.Header.Get("Location")
	// the same key leads back to the place, and to that of an order whose request is open
	open := make(chan sitetest.Answer, 1)
	go func() { open <- s.Send(keyed("u2", "k2", `{"sku":"plain","quantity":1}`)) }()
	s.Eventually("two orders that wait", func() (string, bool) { n := waitingAt(s); return fmt.Sprint(n), n == 2 })
	if a := s.Send(async("u2", "k2")); a.Status != 202 || toldOf(t, a).Place != 2 {
		t.Errorf("a repeat while the request is open: %d %s", a.Status, a.Body)
	}
	again := s.Send(async("secret-buyer", "k1"))
	if again.Status != 202 || again.Header.Get("Location") != at {
		t.Errorf("the same again: %d %v", again.Status, again.Header)
	}
	if p := toldOf(t, getAt(s, at)); p.State != "waiting" || p.Place != 1 {
		t.Errorf("at its place: %+v", p)
	}
	for field, text := range redisOf(s).HGetAll(t.Context(), "stockgate:{double11.0}:orders").Val() {
		if strings.Contains(text, "secret-buyer") || strings.Contains(text, "plain") {
			t.Errorf("%s has %q", field, text)
		}
	}
	shop.done <- struct{}{}
	(<-first).Is(t, 201, "")
	if buyer := <-shop.working; buyer != "secret-buyer" {
		t.Fatalf("the shop works on the order of %q", buyer)
	}
	if p := toldOf(t, getAt(s, at)); p.State != "at_shop" {
		t.Errorf("while the shop works on it: %+v", p)
	}
	shop.done <- struct{}{}
	var got sitetest.Answer
	s.Eventually("the shop's answer", func() (string, bool) {
		got = getAt(s, at)
		return fmt.Sprint(got.Status), got.Status == 201
	})
	if got.Header.Get("Stockgate-Queue") != "" || a.Header.Get("Stockgate-Queue") != "waiting" {
		t.Errorf("the place is marked %q, the shop's answer %q", a.Header.Get("Stockgate-Queue"), got.Header.Get("Stockgate-Queue"))
	}
	if got.Body != paid || got.Header.Get("X-Order") != "of secret-buyer" || got.Header.Get("Set-Cookie") == "" {
		t.Errorf("the shop's answer is %v %s", got.Header, got.Body)
	}
	if buyer := <-shop.working; buyer != "u2" {
		t.Errorf("then the shop works on the order of %q", buyer)
	}
	shop.done <- struct{}{}
	(<-open).Is(t, 201, "")
	other := []byte(at)
	i := len("/orders/") + 30 // in what cannot be guessed
	other[i] = map[bool]byte{true: 'x', false: 'y'}[other[i] != 'x']
	if a := getAt(s, string(other)); a.Status != 404 || len(shop.Take()) != 3 {
		t.Errorf("a ticket that was not given: %d %s", a.Status, a.Body)
	}
	// the shop has pages there, too: they are its own
	for _, path := range []string{"/orders/42", "/orders/0b7e1c1e-9a4c-7c6c-8d5c-0123456789ab", "/orders/" + strings.Repeat("A", 60)} {
		go func() { <-shop.working; shop.done <- struct{}{} }()
		if a := getAt(s, path); a.Status != 201 || len(shop.Take()) != 1 {
			t.Errorf("the shop's %s: %d %s", path, a.Status, a.Body)
		}
	}
	checkReplayed(t, s.Send(keyed("secret-buyer", "k1", `{"sku":"plain","quantity":1}`)), sitetest.Answer{Status: 201, Body: paid, Header: http.Header{
		"Content-Type": got.Header["Content-Type"], "Location": got.Header["Location"], "Stockgate-Reservation": got.Header["Stockgate-Reservation"]}})
}

// Who waits no longer than the gate says is told the place; cancelled, the order is gone, and its
// units are on sale again. What the shop has cannot be cancelled.
func TestQueueCancel(t *testing.T) {
	shop := newSlowShop(t)
	s := sitetest.OpenCaddyfile(t, queueSite(shop.Addr(), "wait 0s"))
	first := s.BeginOrder(keyed("u0", "", `{"sku":"plain","quantity":1}`), shop.working)
	a := s.Send(keyed("u1", "", `{"sku":"plain","quantity":5}`))
	if a.Status != 202 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	at := a.Header.Get("Location")
	cancelled := deleteAt(s, at)
	if p := toldOf(t, cancelled); cancelled.Status != 200 || p.State != "released" {
		t.Errorf("cancelled: %d %+v", cancelled.Status, p)
	}
	if p := toldOf(t, getAt(s, at)); p.State != "released" {
		t.Errorf("then it is %+v", p)
	}
	if got, want := s.StockOf("plain"), "100 99 1 0 0"; got != want {
		t.Errorf("the cell is %s, want %s", got, want)
	}
	at = s.Send(keyed("u2", "", `{"sku":"plain","quantity":1}`)).Header.Get("Location")
	shop.done <- struct{}{}
	(<-first).Is(t, 201, "")
	<-shop.working
	if a := deleteAt(s, at); a.Status != 409 || toldOf(t, a).State != "at_shop" {
		t.Errorf("cancelling what the shop has: %d %s", a.Status, a.Body)
	}
	shop.done <- struct{}{}
	s.Eventually("the answer", func() (string, bool) { a := getAt(s, at); return a.Body, a.Status == 201 })
}

// An order that the shop has refused was sent: it cannot be cancelled any more, and its buyer is not told
// that it was not sent.
func TestQueueCancelsNothingThatTheShopHasRefused(t *testing.T) {
	shop := sitetest.NewBackend(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnprocessableEntity) })
	s := sitetest.OpenCaddyfile(t, queueSite(shop.Addr(), ""))
	line := "stockgate:{double11.0}:queue"
	if err := redisOf(s).HSet(t.Context(), line, "paused", "1").Err(); err != nil {
		t.Fatal(err)
	}
	at := s.Send(async("u1", "")).Header.Get("Location")
	if err := redisOf(s).HDel(t.Context(), line, "paused").Err(); err != nil {
		t.Fatal(err)
	}
	s.Eventually("the shop's refusal", func() (string, bool) { a := getAt(s, at); return a.Body, a.Status == 422 })
	if a := deleteAt(s, at); a.Status != 409 || toldOf(t, a).State != "released" {
		t.Errorf("cancelling what the shop has refused: %d %s", a.Status, a.Body)
	}
}

// The doctor says that a line is nearly full; what comes beyond is refused.
func TestQueueNearlyFull(t *testing.T) {
	shop := newSlowShop(t)
	s := sitetest.OpenCaddyfile(t, queueSite(shop.Addr(), "most 1"))
	first := s.BeginOrder(keyed("u0", "", `{"sku":"plain","quantity":1}`), shop.working)
	at := s.Send(async("u1", "")).Header.Get("Location")
	s.Send(async("u2", "")).Is(t, 503, "busy")
	if got := s.Admin("GET", "/stockgate/doctor", "").Body; !strings.Contains(got, "the line of double11 is nearly full: 1 of 1 orders") {
		t.Errorf("the doctor does not say it: %s", got)
	}
	for range 2 {
		shop.done <- struct{}{}
	}
	(<-first).Is(t, 201, "")
	s.Eventually("the answer", func() (string, bool) { a := getAt(s, at); return a.Body, a.Status == 201 })
}

// A client that leaves and has no way back gives its place up; one with an idempotency key finds
// its order again.
func TestQueueClientLeaves(t *testing.T) {
	shop := newSlowShop(t)
	s := sitetest.OpenCaddyfile(t, queueSite(shop.Addr(), ""))
	first := s.BeginOrder(keyed("u0", "", `{"sku":"plain","quantity":1}`), shop.working)
	for i, key := range []string{"", "k1"} {
		ctx, leave := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		r := keyed("u1", key, `{"sku":"plain","quantity":1}`).WithContext(ctx)
		go func() { _, err := s.Client().Do(r); gone <- err }()
		s.Eventually("an order that waits", func() (string, bool) { n := waitingAt(s); return fmt.Sprint(n), n == 1 })
		leave()
		if err := <-gone; err == nil {
			t.Fatal("the client was answered")
		}
		if i == 0 {
			s.Eventually("nothing that waits", func() (string, bool) { n := waitingAt(s); return fmt.Sprint(n), n == 0 })
		}
	}
	var a sitetest.Answer
	s.Eventually("its place", func() (string, bool) {
		a = s.Send(async("u1", "k1"))
		return fmt.Sprint(a.Status), a.Status == 202
	})
	shop.done <- struct{}{}
	(<-first).Is(t, 201, "")
	if buyer := <-shop.working; buyer != "u1" {
		t.Errorf("the shop works on the order of %s", buyer)
	}
	shop.done <- struct{}{}
	s.Eventually("the answer", func() (string, bool) { got := getAt(s, a.Header.Get("Location")); return got.Body, got.Status == 201 })
	if got, want := s.StockOf("plain"), "100 98 0 0 2"; got != want {
		t.Errorf("the cell is %s, want %s", got, want)
	}
}

// Requests that wait stay open across a reload, and orders without a request are sent by the
// next configuration.
func TestQueueReload(t *testing.T) {
	shop := newSlowShop(t)
	s := sitetest.OpenCaddyfile(t, queueSite(shop.Addr(), ""))
	first := s.BeginOrder(keyed("u0", "", `{"sku":"plain","quantity":1}`), shop.working)
	open := make(chan sitetest.Answer, 1)
	go func() { open <- s.Send(keyed("u1", "", `{"sku":"plain","quantity":1}`)) }()
	s.Eventually("an order that waits", func() (string, bool) { n := waitingAt(s); return fmt.Sprint(n), n == 1 })
	at := s.Send(async("u2", "")).Header.Get("Location")
	if err := s.LoadCaddyfile(queueSite(shop.Addr(), "")); err != nil {
		t.Fatal(err)
	}
	shop.done <- struct{}{}
	(<-first).Is(t, 201, "")
	for _, want := range []string{"u1", "u2"} {
		if buyer := <-shop.working; buyer != want {
			t.Errorf("the shop works on the order of %s, want %s", buyer, want)
		}
		shop.done <- struct{}{}
	}
	(<-open).Is(t, 201, "")
	s.Eventually("the answer", func() (string, bool) { got := getAt(s, at); return got.Body, got.Status == 201 })
}

// A shop that wants an order later gets it again, three times; then it is given up. A bare 503,
// which proxies answer too, is in doubt as ever.
func TestQueueAgain(t *testing.T) {
	refusals := make(chan string, 10)
	shop := sitetest.NewBackend(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case later := <-refusals:
			if later != "" {
				w.Header().Set("X-Later", later)
			}
			w.WriteHeader(503)
		default:
			takesOrder(w, r)
		}
	})
	s := sitetest.OpenCaddyfile(t, strings.Replace(queueSite(shop.Addr(), "again @later"), "queue {", "@later {\n header X-Later yes\n }\n queue {", 1))
	const body = `{"sku":"plain","quantity":1}`
	for range 3 {
		refusals <- "yes"
	}
	a := s.Send(keyed("u1", "", body))
	a.Is(t, 201, "")
	if got := len(shop.Take()); got != 4 || a.Header.Get("X-Later") != "" {
		t.Errorf("the shop was asked %d times, and the client hears %v", got, a.Header)
	}
	for range 4 {
		refusals <- "yes"
	}
	s.Send(keyed("u2", "", body)).Is(t, 503, "not_sent")
	refusals <- ""
	if a := s.Send(keyed("u3", "", body)); a.Status != 503 {
		t.Errorf("a bare 503: %d %s", a.Status, a.Body)
	}
	if got, want := s.StockOf("plain"), "100 98 0 1 1"; got != want {
		t.Errorf("the cell is %s, want %s", got, want)
	}
	at := sendAsync(s, refusals, body)
	s.Eventually("the answer", func() (string, bool) { got := getAt(s, at); return got.Body, got.Status == 201 })
}

// sendAsync sends an order that waits without its request, and that the shop puts off once.
func sendAsync(s *sitetest.Site, refusals chan string, body string) (at string) {
	s.T.Helper()
	if _, err := redisOf(s).HSet(s.T.Context(), "stockgate:{double11.0}:queue", "paused", "1").Result(); err != nil {
		s.T.Fatal(err)
	}
	refusals <- "yes"
	at = s.Send(async("u4", "")).Header.Get("Location")
	if _, err := redisOf(s).HDel(s.T.Context(), "stockgate:{double11.0}:queue", "paused").Result(); err != nil {
		s.T.Fatal(err)
	}
	return at
}

// deleteAt asks to cancel.
func deleteAt(s *sitetest.Site, path string) sitetest.Answer {
	r, err := http.NewRequest("DELETE", "http://shop.test"+path, nil)
	if err != nil {
		s.T.Fatal(err)
	}
	return s.Send(r)
}

// getAt asks the shop's site.
func getAt(s *sitetest.Site, path string) sitetest.Answer {
	r, err := http.NewRequest("GET", "http://shop.test"+path, nil)
	if err != nil {
		s.T.Fatal(err)
	}
	return s.Send(r)
}

// redisOf is a client of the site's Redis.
func redisOf(s *sitetest.Site) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: s.Redis})
	s.T.Cleanup(func() { _ = c.Close() })
	return c
}

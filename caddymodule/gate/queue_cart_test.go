package gate_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// cartQueue is a site whose shop keeps the carts and takes one order at a time. Changes of carts have a path of
// their own, as orders have.
func cartQueue(shop *cartShop, more ...string) string {
	return `stockgate_guard
	stockgate_status
	stockgate_check /shop/add turns {
		one_at_a_time {header.Authorization} {cookie.session}
	}
	stockgate /shop/pay pay {
		` + strings.Join(append(cartGate(shop), more...), "\n\t\t") + `
		hold_for 10m
		queue {
			at_once 1
			wait 5m
		}
	}
	reverse_proxy ` + shop.Listener.Addr().String()
}

// busyShop is a cartShop that works on an order until the test lets it.
func busyShop(t *testing.T) (shop *cartShop, working chan string, done chan struct{}) {
	shop = newCartShop(t)
	working, done = make(chan string, 100), make(chan struct{})
	shop.paying = func(r *http.Request) {
		working <- sessionOf(r)
		select {
		case <-done:
		case <-t.Context().Done():
		}
	}
	return shop, working, done
}

// payLater is an order of a session whose client does not wait for the shop.
func payLater(session string) *http.Request {
	r := as(session, "/shop/pay", pay)
	r.Header.Set("Prefer", "respond-async")
	return r
}

// paysLater has the order of a session's cart wait, and returns its place.
func paysLater(s *sitetest.Site, session string) (at string) {
	s.T.Helper()
	a := s.Send(payLater(session))
	if a.Status != 202 {
		s.T.Fatalf("%s does not wait: %d %s", session, a.Status, a.Body)
	}
	return a.Header.Get("Location")
}

// paysOpen has it wait with its request open.
func paysOpen(s *sitetest.Site, session string) chan sitetest.Answer {
	s.T.Helper()
	done, before := make(chan sitetest.Answer, 1), waitingAt(s)
	go func() { done <- s.Send(as(session, "/shop/pay", pay)) }()
	untilWaiting(s, before+1)
	return done
}

// told is what a place says in the end.
func endsAs(s *sitetest.Site, at, want string) {
	s.T.Helper()
	s.Eventually(want, func() (string, bool) {
		a := getAt(s, at)
		return fmt.Sprint(a.Status, " ", a.Body), strings.Contains(fmt.Sprint(a.Status, " ", a.Body), want)
	})
}

// An order waits, and its cart is looked up once more when its turn has come. As it was it is sold; changed, or
// gone, it is not sent, its units are on sale again, and its buyer is told why. Each order is sent without its
// request, and with it open.
func TestQueueOfCarts(t *testing.T) {
	shop, working, done := busyShop(t)
	s := sitetest.OpenCaddyfile(t, cartQueue(shop))
	for _, session := range []string{"u0", "same", "more", "gone", "out", "open", "other"} {
		shop.put(session, "plain", 1)
	}
	shop.put("other", "few", 1)
	first := s.BeginOrder(as("u0", "/shop/pay", pay), working)
	same, more, gone, out := paysLater(s, "same"), paysLater(s, "more"), paysLater(s, "gone"), paysLater(s, "out")
	open, other := paysOpen(s, "open"), paysOpen(s, "other")
	s.Send(as("more", "/shop/add", `{"sku":"plain","quantity":1}`)).Is(t, 200, "")
	s.Send(as("same", "/shop/add", `{"sku":"ordinary","quantity":1}`)).Is(t, 200, "") // no sale lists it
	s.Send(as("other", "/shop/add", `{"sku":"few","quantity":-1}`)).Is(t, 200, "")
	shop.set(func() {
		delete(shop.carts, "gone")
		answers := shop.answer
		shop.answer = func(w http.ResponseWriter, r *http.Request) {
			switch {
			case sessionOf(r) == "out":
				w.WriteHeader(http.StatusUnauthorized)
			case answers != nil:
				answers(w, r)
			default:
				writeCart(w, sessionOf(r), "open", shop.carts[sessionOf(r)])
			}
		}
	})
	close(done)
	(<-first).Is(t, 201, "")
	endsAs(s, same, "201 ")
	endsAs(s, more, `200 {"state":"released","reason":"cart_changed"}`)
	endsAs(s, gone, `200 {"state":"released","reason":"no_cart"}`)
	endsAs(s, out, `200 {"state":"released","reason":"no_buyer"}`)
	(<-open).Is(t, 201, "")
	(<-other).Is(t, 409, "cart_changed")
	s.Eventually("three orders", func() (string, bool) {
		got := s.StockOf("plain") + ", " + s.StockOf("few")
		return got, got == "100 97 0 0 3, 3 3 0 0 0"
	})
	if _, _, orders := shop.counts(); orders != 3 {
		t.Errorf("the shop has %d orders", orders)
	}
	// the buyer orders again
	s.Send(as("more", "/shop/pay", pay)).Is(t, 201, "")
	if got := s.StockOf("plain"); got != "100 95 0 0 5" {
		t.Errorf("plain: %s", got)
	}
}

// The shop does not say what is in a cart when its turn has come: the order waits on and is not sent, and is sold
// once the shop says it. One cart of which it does not say it stops no other order.
func TestQueueOfCartsWithoutAnAnswer(t *testing.T) {
	for name, fails := range map[string]http.HandlerFunc{
		"an error":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"no cart":      func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>maintenance") },
		"a broken one": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			shop, working, done := busyShop(t)
			s := sitetest.OpenCaddyfile(t, cartQueue(shop))
			for _, session := range []string{"u0", "u1", "u2", "u3"} {
				shop.put(session, "plain", 1)
			}
			first := s.BeginOrder(as("u0", "/shop/pay", pay), working)
			at, open, behind := paysLater(s, "u1"), paysOpen(s, "u2"), paysLater(s, "u3")
			asked := make(chan string, 1000)
			shop.set(func() {
				shop.answer = func(w http.ResponseWriter, r *http.Request) {
					asked <- sessionOf(r)
					if sessionOf(r) == "u3" {
						writeCart(w, sessionOf(r), "open", shop.carts[sessionOf(r)])
						return
					}
					fails(w, r)
				}
			})
			close(done)
			(<-first).Is(t, 201, "")
			endsAs(s, behind, "201 ")
			for times := map[string]int{}; times["u1"] < 2 || times["u2"] < 2; {
				select {
				case session := <-asked:
					times[session]++
				case <-stocktest.Soon(t).Done():
					t.Fatalf("the shop is asked %v times about the carts", times)
				}
			}
			if got := s.StockOf("plain"); got != "100 96 2 0 2" {
				t.Errorf("the cell is %s", got)
			}
			shop.set(func() { shop.answer = nil })
			endsAs(s, at, "201 ")
			(<-open).Is(t, 201, "")
			if got := s.StockOf("plain"); got != "100 96 0 0 4" {
				t.Errorf("in the end the cell is %s", got)
			}
		})
	}
}

// A reload while orders wait: another configuration looks the carts up, and a cart that has changed is not
// sold. One that reads carts in another place leaves the order to the configuration of then.
func TestQueueOfCartsReload(t *testing.T) {
	shop, working, done := busyShop(t)
	base := cartQueue(shop)
	s := sitetest.OpenCaddyfile(t, base)
	for _, session := range []string{"u0", "same", "more", "read"} {
		shop.put(session, "plain", 1)
	}
	first := s.BeginOrder(as("u0", "/shop/pay", pay), working)
	same, more := paysLater(s, "same"), paysLater(s, "more")
	ofAnotherEdge(s)
	shop.put("more", "plain", 1)
	reload(s, strings.Replace(base, "at_once 1", "at_once 1\npace 1000 1s", 1))
	close(done)
	(<-first).Is(t, 201, "")
	endsAs(s, same, "201 ")
	endsAs(s, more, `"reason":"cart_changed"`)

	done = make(chan struct{})
	shop.set(func() { shop.paying = func(r *http.Request) { working <- sessionOf(r); <-done } })
	if got := <-working; got != "same" || len(working) > 0 {
		t.Fatalf("the shop got the order of %s, and %d more", got, len(working))
	}
	shop.put("u4", "plain", 1)
	first = s.BeginOrder(as("u4", "/shop/pay", pay), working)
	at := paysLater(s, "read")
	reload(s, strings.Replace(base, "buyer  {lookup.cart.email}", "buyer  {lookup.cart.id}", 1))
	close(done)
	(<-first).Is(t, 201, "")
	s.Eventually("an order that is skipped", func() (string, bool) {
		q := queueShown(s)
		return fmt.Sprintf("%+v", q), q.Skipped == 1 && q.Waiting == 1
	})
	if got := s.StockOf("plain"); got != "100 96 1 0 3" {
		t.Errorf("the cell is %s", got)
	}
	reload(s, base) // at_once and pace are not as they were
	endsAs(s, at, "201 ")
}

// While an order waits, requests of its session go to the shop. From the lookup of its cart to the shop's answer
// they wait for it; and it waits for those that are there when its turn comes.
func TestQueueOfCartsOneAtATime(t *testing.T) {
	for name, wait := range map[string]func(s *sitetest.Site) func(t *testing.T){
		"without its request": func(s *sitetest.Site) func(*testing.T) {
			at := paysLater(s, "u1")
			return func(*testing.T) { endsAs(s, at, "201 ") }
		},
		"its request is open": func(s *sitetest.Site) func(*testing.T) {
			open := paysOpen(s, "u1")
			return func(t *testing.T) { (<-open).Is(t, 201, "") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			shop, working, done := busyShop(t)
			s := sitetest.OpenCaddyfile(t, cartQueue(shop))
			shop.put("u0", "plain", 1)
			shop.put("u1", "plain", 1)
			first := s.BeginOrder(as("u0", "/shop/pay", pay), working)
			ends := wait(s)
			s.Send(as("u1", "/shop/add", `{"sku":"ordinary","quantity":1}`)).Is(t, 200, "")
			looking, look := make(chan string, 100), make(chan struct{})
			shop.set(func() {
				shop.answer = func(w http.ResponseWriter, r *http.Request) {
					shop.mu.Unlock()
					looking <- sessionOf(r)
					<-look
					shop.mu.Lock()
					writeCart(w, sessionOf(r), "open", shop.carts[sessionOf(r)])
				}
			})
			done <- struct{}{}
			(<-first).Is(t, 201, "")
			<-looking
			added := make(chan sitetest.Answer, 1)
			go func() { added <- s.Send(as("u1", "/shop/add", `{"sku":"plain","quantity":5}`)) }()
			s.Send(as("u2", "/shop/add", `{"sku":"plain","quantity":1}`)).Is(t, 200, "") // of another session
			close(look)
			if got := <-working; got != "u1" {
				t.Fatalf("the shop works on the order of %s", got)
			}
			select {
			case a := <-added:
				t.Fatalf("the cart was changed between its lookup and its order: %+v", a)
			default:
			}
			done <- struct{}{}
			ends(t)
			(<-added).Is(t, 200, "")
			shop.set(func() {
				if got := shop.orders["u1"]["plain"]; got != 1 {
					t.Errorf("%d units were sold", got)
				}
			})
			if got := s.StockOf("plain"); got != "100 98 0 0 2" {
				t.Errorf("the cell is %s", got)
			}
		})
	}
}

// A request of its session is at the shop when the turn of an order comes: the order waits on, and is sold, or
// not, by the cart as it is then.
func TestQueueOfCartsWaitsForItsSession(t *testing.T) {
	for name, change := range map[string]string{"200 ": `{"sku":"ordinary","quantity":1}`, `"reason":"cart_changed"`: `{"sku":"plain","quantity":1}`} {
		t.Run(name, func(t *testing.T) {
			shop, working, done := busyShop(t)
			s := sitetest.OpenCaddyfile(t, cartQueue(shop))
			shop.put("u0", "plain", 1)
			shop.put("u1", "plain", 1)
			first := s.BeginOrder(as("u0", "/shop/pay", pay), working)
			at := paysLater(s, "u1")
			adding, add := make(chan struct{}), make(chan struct{})
			shop.set(func() { shop.adding = func() { adding <- struct{}{}; <-add } })
			added := make(chan sitetest.Answer, 1)
			go func() { added <- s.Send(as("u1", "/shop/add", change)) }()
			<-adding
			before, _, _ := shop.counts()
			close(done)
			(<-first).Is(t, 201, "")
			s.Eventually("an order that has stepped back", func() (string, bool) {
				all := redisOf(s).HGetAll(t.Context(), queueLine+"orders").Val()
				for _, text := range all {
					if words := strings.Fields(text); len(words) == 9 && words[1] != "0" && words[1] != "1" {
						return text, true
					}
				}
				return fmt.Sprint(len(all)), false
			})
			if after, _, _ := shop.counts(); after != before {
				t.Errorf("the cart was looked up while a request of its session was at the shop")
			}
			close(add)
			(<-added).Is(t, 200, "")
			endsAs(s, at, strings.Replace(name, "200 ", "201 ", 1))
		})
	}
}

// The ref of a cart leads back to the place of its order. Another cart of the same ref makes the order give way.
func TestQueueOfCartsRepeats(t *testing.T) {
	shop, working, done := busyShop(t)
	s := sitetest.OpenCaddyfile(t, cartQueue(shop))
	for _, session := range []string{"u0", "u1", "u2"} {
		shop.put(session, "plain", 1)
	}
	first := s.BeginOrder(as("u0", "/shop/pay", pay), working)
	at, open := paysLater(s, "u1"), paysOpen(s, "u2")
	for range 3 { // what the shop has said about the cart is remembered meanwhile
		if a := s.Send(payLater("u1")); a.Status != 202 || a.Header.Get("Location") != at {
			t.Errorf("the same again: %d %v", a.Status, a.Header)
		}
	}
	if a := s.Send(payLater("u2")); a.Status != 202 || toldOf(t, a).Place != 2 {
		t.Errorf("the same again, while its request is open: %d %s", a.Status, a.Body)
	}
	s.Send(as("u2", "/shop/add", `{"sku":"plain","quantity":2}`)).Is(t, 200, "")
	again := paysLater(s, "u2")
	(<-open).Is(t, 409, "cart_changed")
	if got := s.StockOf("plain"); got != "100 95 5 0 0" {
		t.Errorf("the cell is %s", got)
	}
	close(done)
	(<-first).Is(t, 201, "")
	endsAs(s, at, "201 ")
	endsAs(s, again, "201 ")
	if got := s.StockOf("plain"); got != "100 95 0 0 5" {
		t.Errorf("in the end the cell is %s", got)
	}
}

// With outcome ask the shop is asked how an order that has waited ended, in the name of its buyer.
func TestQueueOfCartsAsks(t *testing.T) {
	shop, working, done := busyShop(t)
	s := sitetest.OpenCaddyfile(t, cartQueue(shop,
		`outcome ask GET `+shop.URL+`/orders/{lookup.cart.id} {
			lines {ask.cart.items} variant.sku quantity
			payments sync
		}`,
		"@sold {\n json cart.state paid\n }", "@not {\n json cart.state open\n }", "confirm @sold", "release @not"))
	for _, session := range []string{"u0", "u1", "u2", "u3"} {
		shop.put(session, "plain", 2)
	}
	shop.set(func() { shop.status = 200 })
	first := s.BeginOrder(as("u0", "/shop/pay", pay), working)
	at, open := paysLater(s, "u1"), paysOpen(s, "u2")
	before := shop.paying
	shop.set(func() {
		shop.paying = func(r *http.Request) {
			before(r)
			if sessionOf(r) == "u1" { // a coupon: less is sold than was held
				shop.put("u1", "plain", -1)
			}
		}
	})
	close(done)
	(<-first).Is(t, 201, "")
	endsAs(s, at, "201 ")
	(<-open).Is(t, 201, "")
	s.Eventually("what was sold", func() (string, bool) { got := s.StockOf("plain"); return got, got == "100 95 0 0 5" })
	// refused, whatever the client is told
	shop.set(func() { shop.status = 402 })
	s.Send(as("u3", "/shop/pay", pay)).Is(t, 402, "")
	if got := s.StockOf("plain"); got != "100 95 0 0 5" {
		t.Errorf("the cell is %s", got)
	}
	if _, asks, orders := shop.counts(); asks != 4 || orders != 3 {
		t.Errorf("%d asks, %d orders", asks, orders)
	}
}

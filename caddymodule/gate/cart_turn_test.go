package gate_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/caddymodule/internal/timing"
)

// cartTurns are sites where requests wait for other sessions with their cart.
func cartTurns(shop *cartShop) map[string]string {
	options := strings.Join(cartGate(shop), "\n\t\t")
	by := func(credentials string) string {
		return strings.Replace(options, "one_at_a_time {header.Authorization} {cookie.session}", "one_at_a_time "+credentials, 1)
	}
	route := func(credentials string) string {
		return "stockgate_guard\nstockgate /shop* pay {\njson_body method card\n" + by(credentials) + "\n}\nreverse_proxy " + shop.Listener.Addr().String()
	}
	return map[string]string{
		"with the session's": route("{cookie.session} {lookup.cart.id}"),
		"alone":              route("{lookup.cart.id}"),
		"at all edges":       route("shared {cookie.session} {lookup.cart.id}"),
		"a check": "stockgate_guard\nstockgate_check /shop/add* turns {\none_at_a_time {lookup.cart.id}\nlookup GET " + shop.URL + "/cart {\ntimeout 20s\n}\n}\n" +
			"stockgate /shop/pay pay {\n" + by("{cookie.session} {lookup.cart.id}") + "\n}\nreverse_proxy " + shop.Listener.Addr().String(),
	}
}

// atTheShop keeps a request at the shop from begun until end is closed, or the test has failed.
func atTheShop(t *testing.T) (begun, end chan struct{}, wait func()) {
	begun, end = make(chan struct{}), make(chan struct{})
	return begun, end, func() {
		select {
		case begun <- struct{}{}:
		case <-t.Context().Done():
		}
		select {
		case <-end:
		case <-t.Context().Done():
		}
	}
}

const addFew = `{"sku":"few","quantity":1}`

// While an order is under way no session changes its cart, whichever it is.
func TestTurnOfTheCart(t *testing.T) {
	for name := range cartTurns(newCartShop(t)) {
		t.Run(name, func(t *testing.T) {
			shop := newCartShop(t)
			s := sitetest.OpenCaddyfile(t, cartTurns(shop)[name])
			paying, let, atShop := atTheShop(t)
			shop.paying = func(*http.Request) { atShop() }
			s.Send(as("ann@laptop", "/shop/add", addFew)).Is(t, 200, "")
			var done sync.WaitGroup
			done.Go(func() { s.Send(as("ann@laptop", "/shop/pay", pay)).Is(t, 201, "") })
			<-paying
			refused := 0
			for i := range 20 {
				done.Go(func() {
					a := s.Send(as(fmt.Sprint("ann@", i), "/shop/add", addFew))
					shop.set(func() {
						if a.Header.Get("Stockgate-Refusal") == "pending" {
							refused++
						}
					})
				})
			}
			s.Eventually("8 of 20 sessions with this cart wait, and others are refused", func() (string, bool) {
				shop.mu.Lock()
				defer shop.mu.Unlock()
				return fmt.Sprint(refused), refused == 12
			})
			s.Send(as("bob", "/shop/add", addFew)).Is(t, 200, "")
			close(let)
			done.Wait()
			shop.set(func() {
				if shop.orders["ann"]["few"] != 1 || shop.carts["ann"]["few"] != 8 {
					t.Errorf("the order has %v, the cart %v", shop.orders["ann"], shop.carts["ann"])
				}
			})
			if got := s.StockOf("few"); got != "3 2 0 0 1" {
				t.Errorf("stock %s", got)
			}
		})
	}
}

// An order whose cart another session is changing waits, and the cart is reserved as it is then.
func TestTurnOfTheCartLooksAgain(t *testing.T) {
	for name := range cartTurns(newCartShop(t)) {
		t.Run(name, func(t *testing.T) {
			shop := newCartShop(t)
			s := sitetest.OpenCaddyfile(t, cartTurns(shop)[name])
			shop.put("ann", "few", 1)
			adding, add, atShop := atTheShop(t)
			shop.adding = atShop
			var done sync.WaitGroup
			done.Go(func() { s.Send(as("ann@phone", "/shop/add", addFew)).Is(t, 200, "") })
			<-adding
			done.Go(func() { s.Send(as("ann@laptop", "/shop/pay", pay)).Is(t, 201, "") })
			s.Eventually("two lookups of the one request, and one of the other", func() (string, bool) {
				lookups, _, _ := shop.counts()
				return fmt.Sprint(lookups), lookups == 3
			})
			close(add)
			done.Wait()
			if lookups, _, _ := shop.counts(); lookups != 4 {
				t.Errorf("%d lookups", lookups)
			}
			if got := s.StockOf("few"); got != "3 1 0 0 2" {
				t.Errorf("stock %s", got)
			}
		})
	}
}

// A session that gets another cart while it waits has the turn of that one, and of no other. One that gets
// another cart each time is refused.
func TestTurnOfAnotherCart(t *testing.T) {
	shop := newCartShop(t)
	s := sitetest.OpenCaddyfile(t, cartTurns(shop)["with the session's"])
	var ids []string
	shop.answer = func(w http.ResponseWriter, r *http.Request) {
		id := ids[0]
		ids = ids[1:]
		writeCart(w, id, "open", map[string]int64{"few": 1})
	}
	give := func(names ...string) { shop.set(func() { ids = names }) }
	left := func() (n int) { shop.set(func() { n = len(ids) }); return n }
	for path, body := range map[string]string{"/shop/add": addFew, "/shop/pay": pay} {
		give("a", "b", "c", "d", "e")
		s.Send(as("ann", path, body)).Is(t, 409, "pending")
		if n := left(); n != 1 {
			t.Errorf("%s: %d lookups are left", path, n)
		}
	}
	if _, _, orders := shop.counts(); orders != 0 || s.StockOf("few") != "3 3 0 0 0" {
		t.Errorf("%d orders, stock %s", orders, s.StockOf("few"))
	}
	paying, let, atShop := atTheShop(t)
	shop.paying = func(*http.Request) { atShop() }
	give("a", "b", "b")
	var done sync.WaitGroup
	done.Go(func() { s.Send(as("ann", "/shop/pay", pay)).Is(t, 201, "") })
	<-paying
	give("a", "a")
	s.Send(as("bob", "/shop/add", addFew)).Is(t, 200, "")
	defer timing.SessionWait.Set(timing.SessionWait.Set(10 * time.Millisecond))
	give("b")
	s.Send(as("bob", "/shop/add", addFew)).Is(t, 409, "pending")
	close(let)
	done.Wait()
}

// The shop names no cart: a session without one changes none, and passes. An order is refused, and
// so is everything while the shop does not say which cart it is.
func TestTurnWithoutACart(t *testing.T) {
	const line = `"items":[{"variant":{"sku":"few"},"quantity":1}]`
	shop := newCartShop(t)
	s := sitetest.OpenCaddyfile(t, cartTurns(shop)["with the session's"])
	for name, c := range map[string]struct {
		status   int
		body     string
		add, pay string
	}{
		"404":         {404, "", "", "no_cart"},
		"401":         {401, "", "", "no_buyer"},
		"null":        {200, `{"cart":null}`, "", "no_cart"},
		"empty":       {200, `{"cart":{"id":"","items":[]}}`, "", "no_cart"},
		"a nameless":  {200, `{"cart":{"email":"a@b",` + line + `}}`, "", "unavailable"},
		"an object":   {200, `{"cart":{"id":{"x":1},"email":"a@b",` + line + `}}`, "unavailable", "unavailable"},
		"not JSON":    {200, `<html>`, "unavailable", "unavailable"},
		"two":         {200, `{"cart":null}{}`, "unavailable", "unavailable"},
		"an error":    {500, "", "unavailable", "unavailable"},
		"a number":    {200, `{"cart":{"id":7,"email":"a@b",` + line + `}}`, "", ""},
		"and nothing": {200, `{"cart":{"id":"7","email":"a@b","items":[]}}`, "", "no_cart"},
	} {
		t.Run(name, func(t *testing.T) {
			shop.set(func() {
				shop.answer = func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(c.status)
					_, _ = io.WriteString(w, c.body)
				}
			})
			for path, want := range map[string]string{"/shop/add": c.add, "/shop/pay": c.pay} {
				body := map[string]string{"/shop/add": `{"sku":"none","quantity":0}`, "/shop/pay": pay}[path]
				if got := s.Send(as(strings.ReplaceAll(name, " ", "-"), path, body)).Header.Get("Stockgate-Refusal"); got != want {
					t.Errorf("%s: %q", path, got)
				}
			}
		})
	}
	before, _, _ := shop.counts()
	s.Send(as("", "/shop/add", `{"sku":"none","quantity":0}`)).Is(t, 200, "")
	r := as("ann", "/shop/add", "")
	r.Method = "GET"
	s.Send(r)
	if after, _, _ := shop.counts(); after != before {
		t.Errorf("%d lookups for a stranger, and for a request that changes nothing", after-before)
	}
}

// A misspelt id shows in the log, and in `caddy stockgate try`, which takes no turn.
func TestTurnOfACartMisspelt(t *testing.T) {
	shop := newCartShop(t)
	s := sitetest.OpenCaddyfile(t, strings.ReplaceAll(cartTurns(shop)["a check"], "{lookup.cart.id}\n", "{lookup.cart.number}\n"))
	for i := range 200 {
		s.Send(as(fmt.Sprint("u", i), "/shop/add", addFew)).Is(t, 200, "")
	}
	if logged := s.Logged("the shop named no cart for any of 200 requests, which did not wait for each other therefore: does one_at_a_time read the right place?"); len(logged) != 1 || logged[0]["answer"] != "lookup.cart.number: it is not there" {
		t.Errorf("logged %v", logged)
	}
	s.Send(as("u1", "/shop/pay", pay)).Is(t, 503, "unavailable")
	before, _, _ := shop.counts()
	r := s.TryAt("POST /shop/pay HTTP/1.1\nHost: a\nContent-Type: application/json\nCookie: session=u2\n\n"+pay, "--gate", "pay")
	if after, _, _ := shop.counts(); after != before+1 || !strings.Contains(r.Out, "lookup.cart.number: it is not there") {
		t.Errorf("%d lookups: %s%s", after-before, r.Out, r.Errors)
	}
}

// What `except` names neither waits nor is looked up.
func TestTurnOfTheCartExcept(t *testing.T) {
	shop := newCartShop(t)
	s := sitetest.OpenCaddyfile(t, strings.Replace(cartTurns(shop)["with the session's"], "{lookup.cart.id}", "{lookup.cart.id} except /shop/add", 1))
	shop.put("ann", "few", 1)
	paying, let, atShop := atTheShop(t)
	shop.paying = func(*http.Request) { atShop() }
	var done sync.WaitGroup
	done.Go(func() { s.Send(as("ann@laptop", "/shop/pay", pay)).Is(t, 201, "") })
	<-paying
	before, _, _ := shop.counts()
	s.Send(as("ann@phone", "/shop/add", addFew)).Is(t, 200, "")
	if after, _, _ := shop.counts(); after != before {
		t.Errorf("%d lookups", after-before)
	}
	close(let)
	done.Wait()
}

// An order that has waited has the turn of its cart while it is at the shop, and waits for another session that
// changes the cart.
func TestTurnOfTheCartInAQueue(t *testing.T) {
	for name, orders := range map[string]func(s *sitetest.Site, session string) func(t *testing.T, want string){
		"without its request": func(s *sitetest.Site, session string) func(*testing.T, string) {
			at := paysLater(s, session)
			return func(_ *testing.T, want string) { endsAs(s, at, want) }
		},
		"its request is open": func(s *sitetest.Site, session string) func(*testing.T, string) {
			open := paysOpen(s, session)
			return func(t *testing.T, want string) {
				if a := <-open; !strings.Contains(fmt.Sprint(a.Status, " ", a.Body), want) {
					t.Errorf("%d %s", a.Status, a.Body)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			shop, working, done := busyShop(t)
			lookup := "one_at_a_time {cookie.session} {lookup.cart.id}"
			s := sitetest.OpenCaddyfile(t, strings.Replace(strings.Replace(cartQueue(shop),
				"one_at_a_time {header.Authorization} {cookie.session}", lookup+"\nlookup GET "+shop.URL+"/cart", 1),
				"one_at_a_time {header.Authorization} {cookie.session}", lookup, 1))
			shop.put("u0", "plain", 1)
			shop.put("u1", "plain", 1)
			first := s.BeginOrder(as("u0", "/shop/pay", pay), working)
			ends := orders(s, "u1@laptop")
			s.Send(as("u1@phone", "/shop/add", `{"sku":"ordinary","quantity":1}`)).Is(t, 200, "") // while it waits
			done <- struct{}{}
			(<-first).Is(t, 201, "")
			<-working
			usual := timing.SessionWait.Set(10 * time.Millisecond)
			s.Send(as("u1@phone", "/shop/add", addFew)).Is(t, 409, "pending")
			timing.SessionWait.Set(usual)
			done <- struct{}{}
			ends(t, "201 ")
			// another session changes the cart when the turn of the order comes
			shop.put("u2", "plain", 1)
			shop.put("u3", "plain", 1)
			first = s.BeginOrder(as("u2", "/shop/pay", pay), working)
			ends = orders(s, "u3@laptop")
			adding, add, atShop := atTheShop(t)
			shop.set(func() { shop.adding = atShop })
			added := make(chan sitetest.Answer, 1)
			go func() { added <- s.Send(as("u3@phone", "/shop/add", addFew)) }()
			<-adding
			before, _, _ := shop.counts()
			done <- struct{}{}
			(<-first).Is(t, 201, "")
			s.Eventually("the order's turn has come", func() (string, bool) {
				after, _, _ := shop.counts()
				return fmt.Sprint(after - before), after > before
			})
			close(add)
			(<-added).Is(t, 200, "")
			ends(t, "cart_changed")
			shop.set(func() {
				if got := shop.orders["u3"]["few"]; got != 0 {
					t.Errorf("%d units were sold", got)
				}
			})
		})
	}
}

package gate_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// While a request to pay is under way, no request of its session changes the cart.
func TestOneAtATime(t *testing.T) {
	for name, open := range map[string]func(t *testing.T, shop *cartShop) *sitetest.Site{
		"one route": func(t *testing.T, shop *cartShop) *sitetest.Site { return openCarts(t, shop) },
		"a check where carts are changed": func(t *testing.T, shop *cartShop) *sitetest.Site {
			return sitetest.OpenCaddyfile(t, `stockgate_guard
	stockgate_check /shop/add* turns {
		one_at_a_time {header.Authorization} {cookie.session}
	}
	stockgate /shop/pay pay {
		`+strings.Join(cartGate(shop), "\n\t\t")+`
	}
	reverse_proxy `+shop.Listener.Addr().String())
		},
	} {
		t.Run(name, func(t *testing.T) { oneAtATime(t, open) })
	}
}

func oneAtATime(t *testing.T, open func(*testing.T, *cartShop) *sitetest.Site) {
	shop := newCartShop(t)
	s := open(t, shop)
	paying, let := make(chan struct{}), make(chan struct{})
	shop.paying = func(*http.Request) { paying <- struct{}{}; <-let }
	s.Send(as("ann", "/shop/add", `{"sku":"few","quantity":1}`)).Is(t, 200, "")
	var done sync.WaitGroup
	done.Go(func() { s.Send(as("ann", "/shop/pay", pay)).Is(t, 201, "") })
	<-paying
	waiting := 0
	for range 20 {
		done.Go(func() {
			a := s.Send(as("ann", "/shop/add", `{"sku":"few","quantity":1}`))
			shop.set(func() {
				if a.Status == 409 {
					waiting++
				}
			})
		})
	}
	s.Eventually("12 of 20 requests of the session are refused at once", func() (string, bool) {
		shop.mu.Lock()
		defer shop.mu.Unlock()
		return fmt.Sprint(waiting), waiting == 12
	})
	s.Send(as("bob", "/shop/add", `{"sku":"few","quantity":1}`)).Is(t, 200, "") // another session does not wait
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
}

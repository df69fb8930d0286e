package gate_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// A storefront's own callbacks do not wait for the request that they are part of. All other
// spellings of them do, and so does what is to be paid.
func TestExceptMatcher(t *testing.T) {
	shop := newCartShop(t)
	gate := strings.Replace(strings.Join(cartGate(shop), "\n\t\t"), "{cookie.session}", "{cookie.session} except @callback /shop/inside*", 1)
	s := sitetest.OpenCaddyfile(t, `@callback {
		path /shop/add*
		header X-Callback secret
	}
	stockgate_guard
	stockgate /shop* pay {
		json_body method card
		`+gate+`
	}
	reverse_proxy `+shop.Listener.Addr().String())
	paying, let := make(chan struct{}), make(chan struct{})
	shop.paying = func(*http.Request) { paying <- struct{}{}; <-let }
	s.Send(as("ann", "/shop/add", `{"sku":"few","quantity":1}`)).Is(t, 200, "")
	var done sync.WaitGroup
	done.Go(func() { s.Send(as("ann", "/shop/pay", pay)).Is(t, 201, "") })
	<-paying
	refused := 0
	for range 9 { // one more than may wait
		done.Go(func() {
			a := s.Send(as("ann", "/shop/add", `{"sku":"few","quantity":1}`))
			shop.set(func() {
				if a.Status == 409 {
					refused++
				}
			})
		})
	}
	s.Eventually("as many requests wait as may", func() (string, bool) {
		shop.mu.Lock()
		defer shop.mu.Unlock()
		return fmt.Sprint(refused), refused == 1
	})
	callback := func(path, body string, secrets ...string) *http.Request {
		r := as("ann", path, body)
		r.Header["X-Callback"] = secrets
		return r
	}
	s.Send(callback("/shop/add", `{"sku":"few","quantity":1}`, "secret")).Is(t, 200, "")
	s.Send(as("ann", "/shop/inside", `{}`)).Is(t, 404, "") // by the shop
	s.Send(callback("/shop/add", `{"sku":"few","quantity":1}`, "Secret")).Is(t, 409, "pending")
	s.Send(callback("/shop/add", `{"sku":"few","quantity":1}`)).Is(t, 409, "pending")
	odd := callback("/shop//add", `{"sku":"few","quantity":1}`, "secret")
	s.Send(odd).Is(t, 409, "pending")
	s.Send(callback("/shop/add", pay, "secret")).Is(t, 409, "pending") // an attempt
	unread := func(path string) *http.Request {                        // servers read this credential in different ways
		r := as("ann", path, `{"sku":"few","quantity":1}`)
		r.Header.Set("Cookie", `session="a\b"`)
		return r
	}
	s.Send(unread("/shop/add")).Is(t, 400, "malformed")
	s.Send(unread("/shop/inside")).Is(t, 404, "")
	close(let)
	done.Wait()
}

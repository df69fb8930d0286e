package gate_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// A cart that is remembered is that of one question to the shop: a session that has several carts
// is not refused for another one.
func TestRememberedCartIsThatOfTheQuestion(t *testing.T) {
	carts := map[string]string{"all": `"few","quantity":3`, "gone": `"few","quantity":1`, "free": `"plain","quantity":1`}
	var lookups atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("GET /carts/{ref}", func(w http.ResponseWriter, r *http.Request) {
		lookups.Add(1)
		for _, name := range []string{r.PathValue("ref"), r.URL.Query().Get("cart"), r.Header.Get("Cart")} {
			if lines, known := carts[name]; known {
				fmt.Fprintf(w, `{"items":[{"sku":%s}]}`, lines)
				return
			}
		}
		http.NotFound(w, r)
	})
	mux.HandleFunc("POST /pay/{ref}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	shop := httptest.NewServer(mux)
	t.Cleanup(shop.Close)
	s := sitetest.OpenCaddyfile(t, `stockgate /pay/* pay {
		one_at_a_time {header.Authorization}
		lookup GET `+shop.URL+`/carts/{ref} {
			timeout 20s
		}
		buyer {header.Authorization}
		lines {lookup.items} sku quantity
		ref   {path.1}
	}
	reverse_proxy `+shop.Listener.Addr().String())
	pays := func(session, target, header, id string) sitetest.Answer {
		t.Helper()
		r, err := http.NewRequest("POST", "http://shop.test/pay/"+target, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+session)
		r.Header.Set("X-Request-Id", id)
		if header != "" {
			r.Header.Set("Cart", header)
		}
		return s.Send(r)
	}
	pays("first", "all", "", "1").Is(t, 201, "")
	for i, c := range []struct{ name, gone, goneHeader, free, freeHeader string }{
		{"the ref", "gone", "", "free", ""},
		{"the query", "q?cart=gone", "", "q?cart=free", ""},
		{"a header", "h", "gone", "h", "free"},
	} {
		session := fmt.Sprint("u", i)
		ids := 0
		s.Eventually(c.name+": a sold-out cart is not looked up again, whatever the number of the request", func() (string, bool) {
			ids++
			before := lookups.Load()
			pays(session, c.gone, c.goneHeader, fmt.Sprint(ids)).Is(t, 409, "sold_out")
			return "", lookups.Load() == before
		})
		if a := pays(session, c.free, c.freeHeader, "1"); a.Status != 201 {
			t.Errorf("%s names another cart: %d %s", c.name, a.Status, a.Body)
		}
	}
}

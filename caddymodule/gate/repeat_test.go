package gate_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/sale"
)

// retrySite is a site whose orders may come again.
func retrySite(shop, more string) string {
	return sitetest.OrderMatcher + `header >X-Gate "{http.stockgate.verdict} {http.stockgate.sale} {http.stockgate.reservation} {http.stockgate.ref}"
	stockgate_guard
	stockgate @order main {
		buyer {header.X-User-Id}
		line {json.sku} {json.quantity}
		ref {json.order_no}
		idempotency {header.Idempotency-Key}
		` + more + `
	}
	reverse_proxy ` + shop
}

// sharedRef makes a ref one order for all buyers.
func sharedRef(site string) string {
	return strings.Replace(site, "{json.order_no}", "{json.order_no} shared", 1)
}

// keyed is a request with an idempotency key.
func keyed(buyer, key, body string) *http.Request {
	r := sitetest.WithBody(sitetest.NewOrder("X-User-Id", buyer), body)
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	return r
}

// checkReplayed checks that an answer is the stored one.
func checkReplayed(t *testing.T, a sitetest.Answer, first sitetest.Answer) {
	t.Helper()
	if a.Status != first.Status || a.Body != first.Body || a.Header.Get("Stockgate-Replayed") != "true" {
		t.Errorf("%d %q %v, the first answer was %d %q", a.Status, a.Body, a.Header, first.Status, first.Body)
	}
	for _, name := range []string{"Content-Type", "Location", "Stockgate-Reservation"} {
		if a.Header.Get(name) != first.Header.Get(name) {
			t.Errorf("%s %q, it was %q", name, a.Header.Get(name), first.Header.Get(name))
		}
	}
}

// reservationOf is the id in the problem document of a refusal.
func reservationOf(t *testing.T, a sitetest.Answer) string {
	t.Helper()
	var problem struct{ Reservation string }
	if err := json.Unmarshal([]byte(a.Body), &problem); err != nil {
		t.Errorf("%v in %s", err, a.Body)
	}
	return problem.Reservation
}

// tokensOf reads the claims of the requests that the shop has got since the last call.
func tokensOf(b *sitetest.Backend, t *testing.T) (list []tokenClaims) {
	t.Helper()
	for _, got := range b.Take() {
		var c tokenClaims
		parts := strings.Split(got.Header.Get("Stockgate-Token"), ".")
		raw, err := sitetest.B64.DecodeString(parts[min(1, len(parts)-1)])
		if err == nil {
			err = json.Unmarshal(raw, &c)
		}
		if err != nil {
			t.Fatalf("no token: %v", err)
		}
		list = append(list, c)
	}
	return list
}

type tokenClaims struct {
	Sub, Jti, Sale, Ref string
	Iat, Exp, Ep        int64
	Lines               []sale.Line
}

const paid = `{"order":"SO-1","note":"caf\u00e9"}`

func takesOrder(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Location", "/orders/1")
	w.Header().Set("Set-Cookie", "session=1")
	w.WriteHeader(http.StatusCreated)
	fmt.Fprint(w, paid)
}

// A winner who sends the same request again gets the same answer, whatever has happened to
// the sale.
func TestKeyReplays(t *testing.T) {
	shop := sitetest.NewBackend(t, takesOrder)
	s := sitetest.OpenCaddyfile(t, retrySite(shop.Addr(), ""))
	const body = `{"sku":"plain","quantity":2}`
	first := s.Send(keyed("u1", `"k1"`, body))
	first.Is(t, 201, "")
	if first.Body != paid || first.Header.Get("Stockgate-Replayed") != "" || first.Header.Get("Set-Cookie") == "" {
		t.Errorf("the first answer: %+v", first)
	}
	id := first.Header.Get("Stockgate-Reservation")
	again := s.Send(keyed("u1", "k1", body))
	checkReplayed(t, again, first)
	if got, want := again.Header.Get("X-Gate"), "replayed double11 "+id; got != want {
		t.Errorf("placeholders %q, want %q", got, want)
	}
	if again.Header.Get("Set-Cookie") != "" || again.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("header %v", again.Header)
	}
	other := s.Send(keyed("u1", "k1", `{"sku":"plain","quantity":1}`))
	other.Is(t, 422, "key_reused")
	if reservationOf(t, other) != "" {
		t.Errorf("another request is told of the reservation: %s", other.Body)
	}
	if got := len(shop.Take()); got != 1 {
		t.Errorf("the shop got %d requests", got)
	}
	s.Send(keyed("u2", "k1", body)).Is(t, 201, "") // another buyer's key is another key
	s.Send(keyed("u1", "k2", body)).Is(t, 201, "") // two keys are two purchases
	s.Send(keyed("u1", "", body)).Is(t, 201, "")
	checkReplayed(t, s.Send(keyed("u1", "k1", body)), first)
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/pause", "")
	s.Send(keyed("u2", "k3", body)).Is(t, 409, "paused")
	checkReplayed(t, s.Send(keyed("u1", "k1", body)), first)
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/close", "")
	s.Send(keyed("u2", "k3", body)).Is(t, 410, "closed")
	checkReplayed(t, s.Send(keyed("u1", "k1", body)), first)
	s.Send(keyed("u1", `"k1`, body)).Is(t, 400, "malformed")
	if got := s.StockOf("plain"); got != "100 92 0 0 8" || len(shop.Take()) != 3 {
		t.Errorf("stock %s", got)
	}
	if !strings.Contains(s.Admin("GET", "/metrics", "").Body, `stockgate_attempts_total{outcome="replayed",reason="",sale="double11"}`) {
		t.Error("replays are not counted")
	}
}

// Two clicks without a key are one purchase, also while the first one is in doubt.
func TestSameLinesInDoubt(t *testing.T) {
	shop := sitetest.NewBackend(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	s := sitetest.OpenCaddyfile(t, retrySite(shop.Addr(), ""))
	first := s.Send(keyed("u1", "", `{"sku":"plain"}`))
	first.Is(t, 502, "")
	again := s.Send(keyed("u1", "", `{"quantity":1, "sku":"plain"}`))
	again.Is(t, 409, "in_doubt")
	if reservationOf(t, again) != first.Header.Get("Stockgate-Reservation") {
		t.Errorf("%s", again.Body)
	}
	s.Send(keyed("u2", "", `{"sku":"plain"}`)).Is(t, 502, "")
	s.Send(keyed("u1", "k1", `{"sku":"plain"}`)).Is(t, 502, "")
}

// Which answers are kept.
func TestAnswersThatAreKept(t *testing.T) {
	long := strings.Repeat("x", 4<<10)
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		more   string
		kept   bool
	}{
		"empty": {answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, kept: true},
		"4 KiB": {answer: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, long) }, kept: true},
		"more":  {answer: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, long, "x") }},
		"compressed": {answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "zstd")
			fmt.Fprint(w, "x")
		}},
		"in pieces": {answer: func(w http.ResponseWriter, _ *http.Request) {
			for range 3 {
				fmt.Fprint(w, "piece ")
				_ = http.NewResponseController(w).Flush()
			}
		}, kept: true},
		"a rule reads it": {answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"code":0}`)
		}, more: "@sold {\njson code 0\n}\nconfirm @sold", kept: true},
		"a redirection": {answer: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/thanks", http.StatusSeeOther) }, more: "confirm 303", kept: true},
		"cut short": {answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10")
			fmt.Fprint(w, "short")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}},
		"cut short, of unknown length": {answer: func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "short")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			shop := sitetest.NewBackend(t, c.answer)
			s := sitetest.OpenCaddyfile(t, retrySite(shop.Addr(), c.more))
			request := keyed("u1", "k1", `{"sku":"plain"}`)
			request.Header.Set("Accept-Encoding", "gzip")
			var first sitetest.Answer
			if strings.HasPrefix(name, "cut short") {
				if resp, err := s.Client().Do(request); err == nil {
					resp.Body.Close()
				}
			} else {
				first = s.Send(request)
			}
			if got := shop.Take(); len(got) != 1 || got[0].Header.Get("Accept-Encoding") != "identity" {
				t.Fatalf("the shop got %v", got)
			}
			s.Eventually("sold", func() (string, bool) { got := s.StockOf("plain"); return got, got == "100 99 0 0 1" })
			again := s.Send(keyed("u1", "k1", `{"sku":"plain"}`))
			if !c.kept {
				again.Is(t, 409, "already_ordered")
				return
			}
			checkReplayed(t, again, first)
			if len(shop.Take()) != 0 {
				t.Error("the shop was asked again")
			}
		})
	}
}

// A shop that answers the same order again gets it again, with the same token. Nothing is
// reserved twice, whatever it answers the second time.
func TestRefForwardsAgain(t *testing.T) {
	status := http.StatusCreated
	shop := sitetest.NewBackend(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	s := sitetest.OpenCaddyfile(t, sharedRef(retrySite(shop.Addr(), "repeats 6 1h")))
	const body = `{"sku":"plain","quantity":2,"order_no":1001}`
	first := s.Send(keyed("u1", "", body))
	first.Is(t, 201, "")
	id := first.Header.Get("Stockgate-Reservation")
	if got, want := first.Header.Get("X-Gate"), "reserved double11 "+id+" 1001"; got != want {
		t.Errorf("placeholders %q, want %q", got, want)
	}
	token := tokensOf(shop, t)[0]
	if token.Ref != "1001" || token.Jti != id || token.Exp <= token.Iat {
		t.Errorf("token %+v", token)
	}
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/pause", "")
	for _, status = range []int{201, 200, 409, 404, 500, 302} {
		again := s.Send(keyed("u1", "", `{"order_no":"1001", "quantity":"2", "sku":"plain"}`))
		again.Is(t, status, "")
		if again.Header.Get("Stockgate-Reservation") != id || again.Header.Get("X-Gate") != "repeated double11 "+id+" 1001" {
			t.Errorf("%d: %v", status, again.Header)
		}
		got := tokensOf(shop, t)
		if len(got) != 1 {
			t.Fatalf("%d: the shop got %d requests", status, len(got))
		}
		repeated := got[0]
		if repeated.Iat < token.Iat || repeated.Exp-repeated.Iat < token.Exp-token.Iat-1 {
			t.Errorf("its time %+v, was %+v", repeated, token)
		}
		repeated.Iat, repeated.Exp = token.Iat, token.Exp
		if fmt.Sprint(repeated) != fmt.Sprint(token) {
			t.Errorf("%d: token %+v, was %+v", status, repeated, token)
		}
		if got := s.StockOf("plain"); got != "100 98 0 0 2" {
			t.Errorf("%d: stock %s", status, got)
		}
	}
	if !strings.Contains(s.Admin("GET", "/metrics", "").Body, `stockgate_attempts_total{outcome="repeated",reason="",sale="double11"}`) {
		t.Error("repeated attempts are not counted")
	}
	for _, other := range []*http.Request{keyed("u2", "", body), keyed("u1", "", `{"sku":"plain","quantity":1,"order_no":1001}`)} {
		a := s.Send(other)
		a.Is(t, 409, "already_ordered")
		if strings.Contains(a.Body, id) {
			t.Errorf("another buyer learns of the reservation: %s", a.Body)
		}
	}
	if got := shop.Take(); len(got) != 0 {
		t.Errorf("the shop got %v", got)
	}
}

// An order with returned units is not forwarded again: the units may be sold to others by
// now.
func TestRefOfAReturnedOrder(t *testing.T) {
	shop := sitetest.NewBackend(t, takesOrder)
	s := sitetest.OpenCaddyfile(t, sharedRef(retrySite(shop.Addr(), "")))
	const body = `{"sku":"plain","quantity":2,"order_no":"SO-1"}`
	first := s.Send(keyed("u1", "k1", body))
	first.Is(t, 201, "")
	id := first.Header.Get("Stockgate-Reservation")
	if a := s.Admin("POST", "/stockgate/reservations/"+id+"/return", `{"id":"1","lines":[{"sku":"plain","qty":1}]}`); a.Status != 200 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	shop.Take()
	for _, buyer := range []string{"u1", "u2"} {
		again := s.Send(keyed(buyer, "", body))
		again.Is(t, 409, "already_ordered")
		if strings.Contains(again.Body, id) {
			t.Errorf("%s hears of the reservation: %s", buyer, again.Body)
		}
	}
	checkReplayed(t, s.Send(keyed("u1", "k1", body)), first)
	if got := shop.Take(); len(got) != 0 {
		t.Errorf("%d requests came to the shop", len(got))
	}
	if got := s.StockOf("plain"); got != "100 99 0 0 1" {
		t.Errorf("stock %s", got)
	}
}

// `try` with an order that was made says so, and changes nothing.
func TestTryOfARetry(t *testing.T) {
	shop := sitetest.NewBackend(t, takesOrder)
	s := sitetest.OpenCaddyfile(t, retrySite(shop.Addr(), "rate {header.X-User-Id} 2 1h"))
	const body = `{"sku":"plain","order_no":"7"}`
	id := s.Send(keyed("u1", "k1", body)).Header.Get("Stockgate-Reservation")
	shop.Take()
	saved := func(key string) string {
		return "POST /api/order HTTP/1.1\nHost: a\nContent-Type: application/json\nX-User-Id: u1\n" + key + "\n" + body
	}
	for range 3 {
		for key, want := range map[string]string{
			"Idempotency-Key: k1\n": "bought already: the shop's stored answer, of reservation " + id,
			"Idempotency-Key: k2\n": "bought already: forwarded again with the token of reservation " + id,
			"":                      "bought already: forwarded again with the token of reservation " + id,
		} {
			r := s.TryAt(saved(key), "--gate", "main")
			if r.Status != 0 || !strings.Contains(r.Out, want) || !strings.Contains(r.Out, "ref      7\n") {
				t.Errorf("%q: %+v", key, r)
			}
		}
	}
	s.Send(keyed("u1", "k2", `{"sku":"plain"}`)).Is(t, 201, "") // the rate counted no dry run
	if got := s.StockOf("plain"); got != "100 98 0 0 2" || len(shop.Take()) != 1 {
		t.Errorf("stock %s", got)
	}
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

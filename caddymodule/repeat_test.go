package caddymodule_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/sale"
)

// retrySite is a site whose orders may come again.
func retrySite(shop, more string) string {
	return orders + `header >X-Gate "{http.stockgate.verdict} {http.stockgate.sale} {http.stockgate.reservation} {http.stockgate.ref}"
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

// sharedRef makes a ref one order, whoever the buyer.
func sharedRef(site string) string {
	return strings.Replace(site, "{json.order_no}", "{json.order_no} shared", 1)
}

// keyed is a request with an idempotency key.
func keyed(buyer, key, body string) *http.Request {
	r := withBody(order("X-User-Id", buyer), body)
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	return r
}

// start sends a request, and returns when the shop works on it.
func (s *site) start(r *http.Request, working <-chan string) chan answer {
	s.t.Helper()
	done := make(chan answer, 1)
	go func() { done <- s.send(r) }()
	select {
	case <-working:
	case a := <-done:
		s.t.Fatalf("it did not come to the shop: %d %s", a.status, a.body)
	}
	return done
}

// replayed checks that an answer is the stored one.
func (a answer) replayed(t *testing.T, first answer) {
	t.Helper()
	if a.status != first.status || a.body != first.body || a.header.Get("Stockgate-Replayed") != "true" {
		t.Errorf("%d %q %v, the first answer was %d %q", a.status, a.body, a.header, first.status, first.body)
	}
	for _, name := range []string{"Content-Type", "Location", "Stockgate-Reservation"} {
		if a.header.Get(name) != first.header.Get(name) {
			t.Errorf("%s %q, it was %q", name, a.header.Get(name), first.header.Get(name))
		}
	}
}

// reservation is the id in the problem document of a refusal.
func (a answer) ofReservation(t *testing.T) string {
	t.Helper()
	var problem struct{ Reservation string }
	if err := json.Unmarshal([]byte(a.body), &problem); err != nil {
		t.Errorf("%v in %s", err, a.body)
	}
	return problem.Reservation
}

// tokens reads the claims of what the shop has got since the last time.
func (b *backend) tokens(t *testing.T) (list []tokenClaims) {
	t.Helper()
	for _, got := range b.take() {
		var c tokenClaims
		parts := strings.Split(got.header.Get("Stockgate-Token"), ".")
		raw, err := b64.DecodeString(parts[min(1, len(parts)-1)])
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

// A winner who sends the same again gets his answer again, whatever has happened to
// the sale.
func TestKeyReplays(t *testing.T) {
	shop := newBackend(t, takesOrder)
	s := openCaddyfile(t, retrySite(shop.addr(), ""))
	const body = `{"sku":"plain","quantity":2}`
	first := s.send(keyed("u1", `"k1"`, body))
	first.is(t, 201, "")
	if first.body != paid || first.header.Get("Stockgate-Replayed") != "" || first.header.Get("Set-Cookie") == "" {
		t.Errorf("the first answer: %+v", first)
	}
	id := first.header.Get("Stockgate-Reservation")
	again := s.send(keyed("u1", "k1", body))
	again.replayed(t, first)
	if got, want := again.header.Get("X-Gate"), "replayed double11 "+id; got != want {
		t.Errorf("placeholders %q, want %q", got, want)
	}
	if again.header.Get("Set-Cookie") != "" || again.header.Get("Cache-Control") != "no-store" {
		t.Errorf("header %v", again.header)
	}
	other := s.send(keyed("u1", "k1", `{"sku":"plain","quantity":1}`))
	other.is(t, 422, "key_reused")
	if other.ofReservation(t) != "" {
		t.Errorf("another request is told of the reservation: %s", other.body)
	}
	if got := len(shop.take()); got != 1 {
		t.Errorf("the shop got %d requests", got)
	}
	s.send(keyed("u2", "k1", body)).is(t, 201, "") // another buyer's key is another key
	s.send(keyed("u1", "k2", body)).is(t, 201, "") // two keys are two purchases
	s.send(keyed("u1", "", body)).is(t, 201, "")
	s.send(keyed("u1", "k1", body)).replayed(t, first)
	do[any](s, "POST", "/stockgate/sales/double11/pause", "")
	s.send(keyed("u2", "k3", body)).is(t, 409, "paused")
	s.send(keyed("u1", "k1", body)).replayed(t, first)
	do[any](s, "POST", "/stockgate/sales/double11/close", "")
	s.send(keyed("u2", "k3", body)).is(t, 410, "closed")
	s.send(keyed("u1", "k1", body)).replayed(t, first)
	s.send(keyed("u1", `"k1`, body)).is(t, 400, "malformed")
	if got := s.cell("plain"); got != "100 92 0 0 8" || len(shop.take()) != 3 {
		t.Errorf("books %s", got)
	}
	if !strings.Contains(s.admin("GET", "/metrics", "").body, `stockgate_attempts_total{outcome="replayed",reason="",sale="double11"}`) {
		t.Error("replays are not counted")
	}
}

// What a key gets as long as its first attempt has not been sold, and after it was
// refused.
func TestKeyOfAnAttemptThatIsNotSold(t *testing.T) {
	working, status := make(chan string, 1), make(chan int)
	shop := newBackend(t, func(w http.ResponseWriter, r *http.Request) {
		working <- ""
		select {
		case code := <-status:
			w.WriteHeader(code)
		case <-t.Context().Done():
		}
	})
	s := openCaddyfile(t, retrySite(shop.addr(), ""))
	const body = `{"sku":"plain"}`
	start := func(r *http.Request) chan answer { return s.start(r, working) }
	running := start(keyed("u1", "k1", body))
	for _, r := range []*http.Request{keyed("u1", "k1", body), keyed("u1", `"k1"`, body)} {
		again := s.send(r)
		again.is(t, 409, "duplicate")
		if again.header.Get("Retry-After") == "" {
			t.Error("nobody says when to come back")
		}
	}
	s.send(keyed("u1", "k1", `{"sku":"few"}`)).is(t, 422, "key_reused")
	second := start(keyed("u1", "k2", body))
	status <- 404
	status <- 404
	(<-running).is(t, 404, "")
	(<-second).is(t, 404, "")

	// it was refused: the key is free
	running = start(keyed("u1", "k1", body))
	status <- 500
	doubt := <-running
	doubt.is(t, 500, "")
	id := doubt.header.Get("Stockgate-Reservation")
	again := s.send(keyed("u1", "k1", body))
	again.is(t, 409, "in_doubt")
	if again.ofReservation(t) != id || again.header.Get("Retry-After") == "" {
		t.Errorf("%v %s", again.header, again.body)
	}
	s.send(keyed("u1", "k1", `{"sku":"few"}`)).is(t, 422, "key_reused")

	// somebody else says that it was sold: nobody has heard the answer
	do[any](s, "POST", "/stockgate/reservations/"+id+"/confirm", "")
	again = s.send(keyed("u1", "k1", body))
	again.is(t, 409, "already_ordered")
	if again.ofReservation(t) != id || again.header.Get("Retry-After") != "" {
		t.Errorf("%v %s", again.header, again.body)
	}
	if got := s.cell("plain"); got != "100 99 0 0 1" || len(shop.take()) != 3 {
		t.Errorf("books %s", got)
	}
}

// Two clicks without a key are one purchase, also when nobody knows what became of
// the first.
func TestSameLinesInDoubt(t *testing.T) {
	shop := newBackend(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	s := openCaddyfile(t, retrySite(shop.addr(), ""))
	first := s.send(keyed("u1", "", `{"sku":"plain"}`))
	first.is(t, 502, "")
	again := s.send(keyed("u1", "", `{"quantity":1, "sku":"plain"}`))
	again.is(t, 409, "in_doubt")
	if again.ofReservation(t) != first.header.Get("Stockgate-Reservation") {
		t.Errorf("%s", again.body)
	}
	s.send(keyed("u2", "", `{"sku":"plain"}`)).is(t, 502, "")
	s.send(keyed("u1", "k1", `{"sku":"plain"}`)).is(t, 502, "")
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
			shop := newBackend(t, c.answer)
			s := openCaddyfile(t, retrySite(shop.addr(), c.more))
			request := keyed("u1", "k1", `{"sku":"plain"}`)
			request.Header.Set("Accept-Encoding", "gzip")
			var first answer
			if strings.HasPrefix(name, "cut short") {
				if resp, err := s.client().Do(request); err == nil {
					resp.Body.Close()
				}
			} else {
				first = s.send(request)
			}
			if got := shop.take(); len(got) != 1 || got[0].header.Get("Accept-Encoding") != "identity" {
				t.Fatalf("the shop got %v", got)
			}
			s.eventually("sold", func() (string, bool) { got := s.cell("plain"); return got, got == "100 99 0 0 1" })
			again := s.send(keyed("u1", "k1", `{"sku":"plain"}`))
			if !c.kept {
				again.is(t, 409, "already_ordered")
				return
			}
			again.replayed(t, first)
			if len(shop.take()) != 0 {
				t.Error("the shop was asked again")
			}
		})
	}
}

// The shop that answers the same order again hears of it again, with the same token;
// nothing is reserved twice, whatever it says the second time.
func TestRefForwardsAgain(t *testing.T) {
	status := http.StatusCreated
	shop := newBackend(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	s := openCaddyfile(t, sharedRef(retrySite(shop.addr(), "repeats 6 1h")))
	const body = `{"sku":"plain","quantity":2,"order_no":1001}`
	first := s.send(keyed("u1", "", body))
	first.is(t, 201, "")
	id := first.header.Get("Stockgate-Reservation")
	if got, want := first.header.Get("X-Gate"), "reserved double11 "+id+" 1001"; got != want {
		t.Errorf("placeholders %q, want %q", got, want)
	}
	token := shop.tokens(t)[0]
	if token.Ref != "1001" || token.Jti != id || token.Exp <= token.Iat {
		t.Errorf("token %+v", token)
	}
	do[any](s, "POST", "/stockgate/sales/double11/pause", "")
	for _, status = range []int{201, 200, 409, 404, 500, 302} {
		again := s.send(keyed("u1", "", `{"order_no":"1001", "quantity":"2", "sku":"plain"}`))
		again.is(t, status, "")
		if again.header.Get("Stockgate-Reservation") != id || again.header.Get("X-Gate") != "repeated double11 "+id+" 1001" {
			t.Errorf("%d: %v", status, again.header)
		}
		got := shop.tokens(t)
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
		if got := s.cell("plain"); got != "100 98 0 0 2" {
			t.Errorf("%d: books %s", status, got)
		}
	}
	if !strings.Contains(s.admin("GET", "/metrics", "").body, `stockgate_attempts_total{outcome="repeated",reason="",sale="double11"}`) {
		t.Error("repeated attempts are not counted")
	}
	for _, other := range []*http.Request{keyed("u2", "", body), keyed("u1", "", `{"sku":"plain","quantity":1,"order_no":1001}`)} {
		a := s.send(other)
		a.is(t, 409, "already_ordered")
		if strings.Contains(a.body, id) {
			t.Errorf("somebody else hears of the reservation: %s", a.body)
		}
	}
	if got := shop.take(); len(got) != 0 {
		t.Errorf("the shop got %v", got)
	}
}

// An order of which units came back is not forwarded again: they may be sold to others
// by now.
func TestRefOfAReturnedOrder(t *testing.T) {
	shop := newBackend(t, takesOrder)
	s := openCaddyfile(t, sharedRef(retrySite(shop.addr(), "")))
	const body = `{"sku":"plain","quantity":2,"order_no":"SO-1"}`
	first := s.send(keyed("u1", "k1", body))
	first.is(t, 201, "")
	id := first.header.Get("Stockgate-Reservation")
	if a := s.admin("POST", "/stockgate/reservations/"+id+"/return", `{"id":"1","lines":[{"sku":"plain","qty":1}]}`); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	shop.take()
	for _, buyer := range []string{"u1", "u2"} {
		again := s.send(keyed(buyer, "", body))
		again.is(t, 409, "already_ordered")
		if strings.Contains(again.body, id) {
			t.Errorf("%s hears of the reservation: %s", buyer, again.body)
		}
	}
	s.send(keyed("u1", "k1", body)).replayed(t, first)
	if got := shop.take(); len(got) != 0 {
		t.Errorf("%d requests came to the shop", len(got))
	}
	if got := s.cell("plain"); got != "100 99 0 0 1" {
		t.Errorf("books %s", got)
	}
}

// What a ref gets that is not sold.
func TestRefThatIsNotSold(t *testing.T) {
	working, status := make(chan string, 1), make(chan int)
	shop := newBackend(t, func(w http.ResponseWriter, r *http.Request) {
		working <- ""
		select {
		case code := <-status:
			w.WriteHeader(code)
		case <-t.Context().Done():
		}
	})
	s := openCaddyfile(t, sharedRef(retrySite(shop.addr(), "")))
	const body = `{"sku":"plain","order_no":"cart-1"}`
	first := s.start(keyed("u1", "", body), working)
	s.send(keyed("u1", "", body)).is(t, 409, "duplicate")
	s.send(keyed("u1", "k9", body)).is(t, 409, "duplicate")
	held := s.send(keyed("u2", "", body))
	held.is(t, 409, "duplicate")
	status <- 400
	refused := <-first
	refused.is(t, 400, "")

	first = s.start(keyed("u1", "", body), working)
	status <- 503
	doubt := <-first
	if a, b := doubt.header.Get("Stockgate-Reservation"), refused.header.Get("Stockgate-Reservation"); a == b || a == "" {
		t.Errorf("a released ref has the reservation %s again", a)
	}
	if a := s.send(keyed("u1", "", body)); a.ofReservation(t) != doubt.header.Get("Stockgate-Reservation") {
		t.Errorf("in doubt: %s", a.body)
	}
	other := s.send(keyed("u2", "", body))
	other.is(t, 409, "in_doubt")
	if other.ofReservation(t) != "" {
		t.Errorf("somebody else hears of the reservation: %s", other.body)
	}
	if got := s.cell("plain"); got != "100 99 0 1 0" {
		t.Errorf("books %s", got)
	}
}

// Trying a gate on an order that was made says so, and changes nothing.
func TestTryOfARetry(t *testing.T) {
	shop := newBackend(t, takesOrder)
	s := openCaddyfile(t, retrySite(shop.addr(), "rate {header.X-User-Id} 2 1h"))
	const body = `{"sku":"plain","order_no":"7"}`
	id := s.send(keyed("u1", "k1", body)).header.Get("Stockgate-Reservation")
	shop.take()
	saved := func(key string) string {
		return "POST /api/order HTTP/1.1\nHost: a\nContent-Type: application/json\nX-User-Id: u1\n" + key + "\n" + body
	}
	for range 3 {
		for key, want := range map[string]string{
			"Idempotency-Key: k1\n": "bought already: the shop's stored answer, of reservation " + id,
			"Idempotency-Key: k2\n": "bought already: forwarded again with the token of reservation " + id,
			"":                      "bought already: forwarded again with the token of reservation " + id,
		} {
			r := s.tryAt(saved(key), "--gate", "main")
			if r.status != 0 || !strings.Contains(r.out, want) || !strings.Contains(r.out, "ref      7\n") {
				t.Errorf("%q: %+v", key, r)
			}
		}
	}
	s.send(keyed("u1", "k2", `{"sku":"plain"}`)).is(t, 201, "") // no trial was counted by the rate
	if got := s.cell("plain"); got != "100 98 0 0 2" || len(shop.take()) != 1 {
		t.Errorf("books %s", got)
	}
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

package shop_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/stockgate/stockgate/internal/shop"
)

// Each rule by itself, through a real connection: what the client sees, what
// is written, and what the same token gets from a shop that behaves again.
func TestMisbehaviours(t *testing.T) {
	const lost = 0 // no answer
	for _, c := range []struct {
		rule         string
		status, code int
		written      bool
		again        int // the status of the repetition
	}{
		{"none", 201, 0, true, 200},
		{"delay=1ms", 201, 0, true, 200},
		{"delay-after=1ms", 201, 0, true, 200},
		{"status=400", 400, 400, false, 400},
		{"status=409", 409, 409, false, 409},
		{"status=500", 500, 500, false, 201},
		{"status=503", 503, 503, false, 201},
		{"code500", 200, 500, false, 200},
		{"drop-before", lost, 0, false, 201},
		{"panic", lost, 0, false, 201},
		{"500-after", 500, 500, true, 200},
		{"drop-after", lost, 0, true, 200},
		{"redirect", 302, 0, true, 200},
		{"status=409:0", 201, 0, true, 200},
		{"status=409:0,500-after:1,hang", 500, 500, true, 200},
		{" delay=1ms , code500 ", 200, 500, false, 200},
	} {
		for _, how := range []string{"at start", "PUT", "header"} {
			t.Run(c.rule+"/"+how, func(t *testing.T) {
				o := shop.Options{}
				if how == "at start" {
					o.Misbehave = c.rule
				}
				b := newBench(t, o)
				if how == "PUT" {
					wantStatus(t, b.put(t, c.rule), 200, 0)
				}
				r := b.request(t, b.sign(t, "r1", line("a", 1, "")))
				if how == "header" {
					r.Header.Set("X-Misbehave", c.rule)
				}
				got, err := b.send(r)
				switch {
				case c.status == lost && err == nil:
					t.Errorf("answered: %+v", got)
				case c.status != lost && err != nil:
					t.Fatal(err)
				case c.status != lost:
					wantStatus(t, got, c.status, c.code)
				}
				if orders := b.orders(t); (len(orders) == 1) != c.written || len(orders) > 1 {
					t.Errorf("written: %+v", orders)
				}

				if err := b.SetMisbehaviour("none"); err != nil {
					t.Fatal(err)
				}
				again := b.mustSend(t, b.request(t, b.sign(t, "r1", line("a", 1, ""))))
				if again.status != c.again {
					t.Errorf("again: %+v, want %d", again, c.again)
				}
				if refused := again.Code != 0; refused != (len(b.orders(t)) == 0) {
					t.Errorf("again: %+v, but written: %+v", again, b.orders(t))
				}
				if n := b.Counts().Tokens["r1"]; n != 2 {
					t.Errorf("the token was seen %d times", n)
				}
			})
		}
	}
}

// A shop without tokens misbehaves as well, but has nothing to remember.
func TestAnUnchangedShopMisbehaves(t *testing.T) {
	b := newUnchanged(t)
	for _, c := range []struct {
		rule         string
		status, code int
		orders       int
	}{
		{"status=409", 409, 409, 0}, {"code500", 200, 500, 0}, {"500-after", 500, 500, 1}, {"none", 201, 0, 2},
	} {
		got := b.mustSend(t, b.request(t, b.sign(t, "r1", line("a", 1, "")), "X-User-Id", "u1", "X-Misbehave", c.rule))
		wantStatus(t, got, c.status, c.code)
		if orders := b.orders(t); len(orders) != c.orders {
			t.Errorf("%s: written: %+v", c.rule, orders)
		}
	}
}

// net/http sends a bodiless POST with an Idempotency-Key again when a reused
// connection dies without an answer: the shop sees one token twice.
func TestARequestThatIsSentAgainFindsItsOrder(t *testing.T) {
	b := newBench(t, shop.Options{Seed: 1})
	wantStatus(t, b.mustSend(t, b.request(t, b.sign(t, "warm", line("a", 1, "")))), 201, 0)
	r := b.request(t, b.sign(t, "r1", line("a", 1, "")), "Idempotency-Key", "k")
	if err := b.SetMisbehaviour("drop-after:0.5"); err != nil { // by this seed the first throw hits and the second does not
		t.Fatal(err)
	}
	got, err := b.send(r)
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, got, 200, 0)
	if orders := ids(b.orders(t)); orders != "[warm r1]" {
		t.Error(orders)
	}
	if n := b.Counts().Tokens["r1"]; n != 2 {
		t.Errorf("the token was seen %d times", n)
	}
}

// The worst form of it: the order is written, the shop is gone, and all that
// the client sees is that nothing listens.
func TestAShopThatDiesWithTheOrderWritten(t *testing.T) {
	b := newBench(t, shop.Options{})
	wantStatus(t, b.mustSend(t, b.request(t, b.sign(t, "warm", line("a", 1, "")))), 201, 0)
	_, err := b.send(b.request(t, b.sign(t, "r1", line("a", 1, "")), "Idempotency-Key", "k", "X-Misbehave", "die-after"))
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("error %v, want connection refused", err)
	}
	if orders := ids(b.orders(t)); orders != "[warm r1]" {
		t.Error(orders)
	}
}

// A shop works on when its client has left: the order is written all the same.
func TestAnOrderIsWrittenAfterTheClientLeft(t *testing.T) {
	left := make(chan struct{})
	gone := make(chan struct{})
	b := newBench(t, shop.Options{Die: func() { close(gone); <-left }})
	ctx, leave := context.WithCancel(t.Context())
	r := b.request(t, b.sign(t, "r1", line("a", 1, "")), "X-Misbehave", "die-after").WithContext(ctx)
	done := make(chan error)
	go func() {
		_, err := b.send(r)
		done <- err
	}()
	<-gone
	leave()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(left)
	if orders := ids(b.orders(t)); orders != "[r1]" {
		t.Error(orders)
	}
}

func TestTheTimeCountsWhenTheOrderIsWritten(t *testing.T) {
	b := newBench(t, shop.Options{})
	signed := b.sign(t, "r1", line("a", 1, ""))
	// The token ends during the shop's delay, as the token's clock sees it.
	b.later.Store(expires)
	got := b.mustSend(t, b.request(t, signed, "X-Misbehave", "delay=1ns"))
	wantStatus(t, got, 403, 403)
	if !strings.Contains(got.Msg, "expired") || len(b.orders(t)) != 0 {
		t.Errorf("%+v, written: %+v", got, b.orders(t))
	}
}

func TestCloseEndsWhatWaits(t *testing.T) {
	for _, rule := range []string{"hang", "delay=10m", "delay-after=10m"} {
		t.Run(rule, func(t *testing.T) {
			b := newBench(t, shop.Options{})
			done := make(chan error, 1)
			r := b.request(t, b.sign(t, "r1", line("a", 1, "")), "X-Misbehave", rule)
			go func() {
				got, err := b.send(r)
				if err == nil && got.status != 503 {
					err = fmt.Errorf("answered %+v", got)
				} else {
					err = nil
				}
				done <- err
			}()
			for b.Counts().Tokens["r1"] == 0 {
				if err := b.ping(); err != nil { // gives the other request its turn
					t.Fatal(err)
				}
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
			if err := b.Close(); err != nil {
				t.Errorf("closed twice: %v", err)
			}
			wantStatus(t, b.mustSend(t, b.request(t, "")), 503, 503)
			if _, err := b.Orders(t.Context()); err == nil {
				t.Error("a closed shop lists its orders")
			}
		})
	}
}

func TestHangEndsWhenTheClientLeaves(t *testing.T) {
	b := newBench(t, shop.Options{})
	ctx, leave := context.WithCancel(t.Context())
	r := b.request(t, b.sign(t, "r1", line("a", 1, "")), "X-Misbehave", "hang").WithContext(ctx)
	done := make(chan error, 1)
	go func() {
		_, err := b.send(r)
		done <- err
	}()
	for b.Counts().Tokens["r1"] == 0 {
		if err := b.ping(); err != nil {
			t.Fatal(err)
		}
	}
	leave()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	b.client.CloseIdleConnections()
	b.server.Close() // returns only when no request is left, though the shop is still open
	if len(b.orders(t)) != 0 {
		t.Error("an order was written")
	}
}

func TestTheSameSeedMisbehavesTheSame(t *testing.T) {
	run := func(seed uint64) string {
		b := newBench(t, shop.Options{Seed: seed, Misbehave: "delay=1ns:0.3,500-after:0.3,status=409:0.3"})
		var out strings.Builder
		for i := range 40 {
			fmt.Fprint(&out, b.mustSend(t, b.request(t, b.sign(t, fmt.Sprint("r", i), line("a", 1, "")))).status, " ")
		}
		return out.String()
	}
	first := run(1)
	if again := run(1); again != first {
		t.Errorf("%s\n%s", first, again)
	}
	if run(2) == first {
		t.Error("another seed throws the same")
	}
	for _, status := range []string{"201", "500", "409"} {
		if !strings.Contains(first, status) {
			t.Errorf("never %s: %s", status, first)
		}
	}
}

func TestRulesThatAreRefused(t *testing.T) {
	b := newBench(t, shop.Options{Misbehave: "500-after:0.2"})
	for _, rule := range []string{"explode", "delay", "delay=", "delay=1", "delay=-1s", "delay=1h", "status", "status=200", "status=302", "status=600",
		"status=x", "hang=1", "hang:2", "hang:-1", "hang:x", "hang:NaN", "hang:", ",", "hang,", "none,hang"} {
		if got := b.put(t, rule); got.status != 400 || got.Msg == "" {
			t.Errorf("PUT %q: %+v", rule, got)
		}
		wantStatus(t, b.mustSend(t, b.request(t, b.sign(t, "r1", line("a", 1, "")), "X-Misbehave", rule)), 400, 400)
	}
	if got := b.rules(t); got != "500-after:0.2\n" {
		t.Errorf("rules after refused ones: %q", got)
	}
	wantStatus(t, b.put(t, ""), 200, 0)
	if got := b.rules(t); got != "none\n" {
		t.Errorf("rules after an empty PUT: %q", got)
	}
	if len(b.orders(t)) != 0 {
		t.Error("an order was written")
	}
}

func TestAShopThatMayNotMisbehaveDoesNot(t *testing.T) {
	s, err := shop.New(shop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := newUnchanged(t)
	b.server.Config.Handler = s
	t.Cleanup(func() { s.Close() })
	got := b.mustSend(t, b.request(t, "", "X-User-Id", "u1", "X-Misbehave", "status=500"))
	wantStatus(t, got, 201, 0)
	if got := b.put(t, "hang"); got.status != http.StatusMethodNotAllowed {
		t.Errorf("PUT: %+v", got)
	}
}

func (b *bench) put(t *testing.T, rules string) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, b.server.URL+"/misbehave", strings.NewReader(rules))
	if err != nil {
		t.Fatal(err)
	}
	return b.mustSend(t, r)
}

func (b *bench) rules(t *testing.T) string {
	t.Helper()
	response, err := b.client.Get(b.server.URL + "/misbehave")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (b *bench) ping() error {
	response, err := b.client.Get(b.server.URL + "/")
	if err != nil {
		return err
	}
	return response.Body.Close()
}

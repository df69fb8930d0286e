package gate_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// With outcome backend the shop's answer neither confirms nor releases: the hold goes on, and
// the buyer may buy again.
func TestOutcomeBackend(t *testing.T) {
	status := http.StatusCreated
	shop := sitetest.NewBackend(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/pay/1")
		w.Header().Set("Connection", "close") // an order to a shop that has ended is not sent on a connection of before
		w.WriteHeader(status)
	})
	s := sitetest.OpenCaddyfile(t, retrySite(shop.Addr(), "outcome backend\nhold_for 20m\nrelease 422"))
	fileSays(s, "unpaid: off")
	const body = `{"sku":"plain"}`
	record := func(a sitetest.Answer) (r struct{ State, Mode string }) {
		t.Helper()
		one := s.Admin("GET", "/stockgate/reservations/"+a.Header.Get("Stockgate-Reservation"), "")
		if one.Status != 200 {
			t.Fatalf("%d %s", one.Status, one.Body)
		}
		decode(t, one.Body, &r)
		return r
	}
	first := s.Send(keyed("u1", "", body))
	first.Is(t, 201, "")
	if r := record(first); r.State != "held" || r.Mode != "backend" {
		t.Errorf("record %+v", r)
	}
	token := tokensOf(shop, t)[0]
	if left := token.Exp - token.Iat; left < 20*60-7 || left > 20*60-4 {
		t.Errorf("the token lasts %d s", left)
	}
	for _, status = range []int{201, 303, 404, 500} { // the same again: the double click is over
		a := s.Send(keyed("u1", "", body))
		a.Is(t, status, "")
		if r := record(a); r.State != "held" {
			t.Errorf("%d: %s", status, r.State)
		}
	}
	status = 422
	a := s.Send(keyed("u1", "", body))
	if r := record(a); r.State != "released" {
		t.Errorf("a release rule left it %s", r.State)
	}
	if got := s.StockOf("plain"); got != "100 95 5 0 0" {
		t.Errorf("stock %s", got)
	}
	if !strings.Contains(s.Admin("GET", "/metrics", "").Body, `stockgate_attempts_total{outcome="held",reason="",sale="double11"}`) {
		t.Error("attempts whose hold goes on are not counted")
	}

	// a key gets the way to the payment again, as long as the hold or the order lives
	shop.Take()
	status = 303
	first = s.Send(keyed("u2", "k1", body))
	first.Is(t, 303, "")
	checkReplayed(t, s.Send(keyed("u2", "k1", body)), first)
	sitetest.Do[any](s, "POST", "/stockgate/reservations/"+first.Header.Get("Stockgate-Reservation")+"/confirm", "")
	checkReplayed(t, s.Send(keyed("u2", "k1", body)), first)
	if got := len(shop.Take()); got != 1 {
		t.Errorf("the shop got %d requests", got)
	}
	// a failure is not its last word: the order may exist
	status = 500
	s.Send(keyed("u2", "k2", body)).Is(t, 500, "")
	s.Send(keyed("u2", "k2", body)).Is(t, 409, "duplicate")
	// what never reached the shop is on sale again
	shop.Close()
	s.Send(keyed("u3", "k1", body)).Is(t, 502, "")
	if got := s.StockOf("plain"); got != "100 93 6 0 1" {
		t.Errorf("stock %s", got)
	}
}

// A decision that the shop makes through its API holds, whatever it answers then: the attempt
// counts with the outcome of its reservation.
func TestAnswerAfterTheShopHasDecided(t *testing.T) {
	var s *sitetest.Site
	status := 0
	var said string
	shop := sitetest.NewBackend(t, func(w http.ResponseWriter, r *http.Request) {
		var claims struct{ Jti string }
		raw, err := sitetest.B64.DecodeString(strings.Split(r.Header.Get("Stockgate-Token"), ".")[1])
		if err == nil {
			err = json.Unmarshal(raw, &claims)
		}
		if err != nil {
			t.Error(err)
		}
		if a := s.Admin("POST", "/stockgate/reservations/"+claims.Jti+"/"+said, `{"force":true}`); said == "release" && a.Status != 200 {
			t.Errorf("%d %s", a.Status, a.Body)
		}
		w.WriteHeader(status)
	})
	s = sitetest.OpenCaddyfile(t, retrySite(shop.Addr(), ""))
	counts := func(outcome string) (n float64) {
		for _, line := range strings.Split(s.Admin("GET", "/metrics", "").Body, "\n") {
			_, _ = fmt.Sscanf(line, `stockgate_attempts_total{outcome="`+outcome+`",reason="",sale="double11"} %g`, &n)
		}
		return n
	}
	for i, c := range []struct {
		says   string
		status int
		counts string
		stock  string
	}{
		{"confirm", 500, "confirmed", "100 99 0 0 1"},
		{"confirm", 404, "confirmed", "100 98 0 0 2"},
		{"release", 500, "released", "100 98 0 0 2"},
		{"release", 201, "confirmed", "100 97 0 0 3"},
	} {
		said, status = c.says, c.status
		before := counts(c.counts)
		s.Send(keyed(fmt.Sprint("u", i), "", `{"sku":"plain"}`)).Is(t, c.status, "")
		if got := s.StockOf("plain"); got != c.stock {
			t.Errorf("%s, then %d: stock %s, want %s", c.says, c.status, got, c.stock)
		}
		if n := counts(c.counts) - before; n != 1 {
			t.Errorf("%s, then %d: %v attempts more count as %s", c.says, c.status, n, c.counts)
		}
	}
	if doubts := s.Logged("in doubt: it is unknown whether the shop took the order"); len(doubts) > 0 {
		t.Errorf("a doubt about what is decided: %v", doubts)
	}
}

func TestRetryConfigurations(t *testing.T) {
	s := sitetest.OpenCaddyfile(t, "respond 204")
	for fields, want := range map[string]string{
		`"outcome":"later"`: "there are response, ask and backend",
		`"outcome":"backend","rules":[{"outcome":"confirm","when":["201"]}]`:  "the shop confirms through stockgate_api",
		`"outcome":"backend","hold_for":"25h"`:                                "hold_for",
		`"outcome":"backend","hold_for":"3s","forward_timeout":"5s"`:          "forward_timeout",
		`"idempotency_ttl":"1h"`:                                              "needs idempotency",
		`"idempotency":["{header.Idempotency-Key}"],"idempotency_ttl":"721h"`: "at most 720h",
		`"idempotency":["{header.Idempotency-Key}"],"idempotency_ttl":"-1s"`:  "must be positive",
		`"idempotency":["key"]`:                                               "the same in all attempts",
		`"ref":["cart-{http.auth.user.id}"]`:                                  "the same in all attempts",
		`"ref":["{form.}"]`:                                                   "ref: ",
		`"check":true`:                                                        "write `stockgate_check` in place of `stockgate`",
		`"check":false`:                                                       "write `stockgate_check` in place of `stockgate`",
		`"outcome":"backend","rules":[{"outcome":"release","when":["@no"]}],"answers":{"yes":{"status":["200"]}}`: "there is no answer @no",
	} {
		if err := s.LoadGate(`{"handler":"stockgate","buyer":["b"],"lines":[{"sku":["a"]}],` + fields + `}`); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", fields, err, want)
		}
	}
	for _, fields := range []string{
		`"outcome":"backend"`, `"outcome":"backend","hold_for":"3s"`, `"outcome":"backend","hold_for":"24h","forward_timeout":"1h"`,
		`"ref":["{json.a}","{cookie.cart}"],"idempotency":["{header.Idempotency-Key}"],"idempotency_ttl":"720h"`,
	} {
		if err := s.LoadGate(`{"handler":"stockgate","buyer":["b"],"lines":[{"sku":["a"]}],` + fields + `}`); err != nil {
			t.Errorf("%s: %v", fields, err)
		}
	}
}

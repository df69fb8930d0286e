package caddymodule_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/gate/option/jwt"
	"github.com/stockgate/stockgate/internal/sale"
)

// An address that sends forged tokens soon has none verified, while buyers behind it whose
// tokens are known go on, and so do all other addresses.
func TestForgedTokensAreLimited(t *testing.T) {
	l, forger := newLogin(t), newLogin(t)
	ask := openJWT(t, &jwt.Config{Ed25519: l.pem(t), Audience: "shop"})
	now := time.Now()
	want := func(reason sale.Reason, wait int64, token, address string, at time.Time) {
		t.Helper()
		if got, for_ := ask(token, address, at); got != reason || for_ != wait {
			t.Errorf("%s: %q after %d s, want %q after %d s", address, got, for_, reason, wait)
		}
	}
	known, forged := l.of("known", time.Hour), forger.of("known", time.Hour)
	for _, who := range []struct{ address, same, other string }{
		{"203.0.113.7", "::ffff:203.0.113.7", "203.0.113.8"},
		{"64:ff9b::198.51.100.7", "198.51.100.7", "64:ff9b::198.51.100.8"},
		{"2001:db8:0:1::7", "2001:db8:0:1:ffff::8", "2001:db8:0:2::7"},
	} {
		fresh := l.of(who.address, time.Hour)
		want("", 0, known, who.address, now)
		// Tokens that cost next to nothing, or are known, do not count.
		for range 50 {
			want("no_buyer", 0, "null", who.address, now)
			want("no_buyer", 0, l.of("late", -time.Minute), who.address, now)
			want("no_buyer", 0, l.token(`{"aud":"cms","sub":"u"}`), who.address, now)
		}
		for i := range 20 {
			want("no_buyer", 0, strings.Replace(forged, ".", fmt.Sprintf("%d.", i), 1), who.address, now)
		}
		for _, token := range []string{forged, fresh} {
			want("rate_limited", 1, token, who.address, now)
			want("rate_limited", 1, token, who.same, now)
		}
		want("", 0, known, who.address, now)
		want("no_buyer", 0, forged, who.other, now)
		want("", 0, fresh, who.address, now.Add(500*time.Millisecond))
		want("no_buyer", 0, forged, who.address, now.Add(500*time.Millisecond))
		want("rate_limited", 1, forged, who.address, now.Add(500*time.Millisecond))
	}
}

// The limit holds in a gate and in the listener wrapper, and its answers are the same.
func TestForgedTokensAreLimitedEverywhere(t *testing.T) {
	l, forger := newLogin(t), newLogin(t)
	s := openFast(t, "trusted_proxies static 127.0.0.0/8", `
SITEshop.example.comPORT {
	stockgate /order {
		jwt `+l.jwks()+`
		buyer {jwt.sub}
		line out
		FAST
	}
	respond 201
}
`)
	send := func(addr, token, from string) string {
		return s.raw(addr, "GET /order HTTP/1.1\r\nHost: shop.example.com\r\nX-Forwarded-For: "+from+"\r\nAuthorization: Bearer "+token+"\r\n\r\n", 1)
	}
	good := l.of("u1", time.Hour)
	if got := send(s.fast, good, "203.0.113.9"); !strings.Contains(got, "201 Created") {
		t.Fatalf("a good token: %s", got)
	}
	for i, addr := range []string{s.plain, s.fast} {
		from := fmt.Sprintf("203.0.113.%d", i)
		sent, before := 0, s.fastAnswers()
		for n := 0; ; n++ {
			got := send(addr, forger.of(fmt.Sprint(n), time.Hour), from)
			sent++
			if strings.Contains(got, "429 Too Many Requests") {
				if !strings.Contains(got, "Retry-After: 1") || !strings.Contains(got, `"rate_limited"`) {
					t.Errorf("%s", got)
				}
				break
			}
			if !strings.Contains(got, "401 Unauthorized") || n == 10_000 {
				t.Fatalf("number %d: %s", n, got)
			}
		}
		if fast := s.fastAnswers() - before; addr == s.fast && fast != sent || addr == s.plain && fast != 0 {
			t.Errorf("%v of %d were answered by the wrapper", fast, sent)
		}
		if got := send(addr, good, from); strings.Contains(got, "rate_limited") || strings.Contains(got, "no_buyer") {
			t.Errorf("a known token behind the same address: %s", got)
		}
		if got := send(addr, forger.of("x", time.Hour), "203.0.113.77"); !strings.Contains(got, "401 Unauthorized") {
			t.Errorf("another address: %s", got)
		}
	}
}

package gate_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/gate/option/jwt"
	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/sale"
)

// An address that sends forged tokens soon has none verified, while buyers behind it whose
// tokens are known go on, and so do all other addresses.
func TestForgedTokensAreLimited(t *testing.T) {
	l, forger := sitetest.NewLogin(t), sitetest.NewLogin(t)
	ask := openJWT(t, &jwt.Config{Ed25519: publicPEM(l, t), Audience: "shop"})
	now := time.Now()
	want := func(reason sale.Reason, wait int64, token, address string, at time.Time) {
		t.Helper()
		if got, for_ := ask(token, address, at); got != reason || for_ != wait {
			t.Errorf("%s: %q after %d s, want %q after %d s", address, got, for_, reason, wait)
		}
	}
	known, forged := l.TokenOf("known", time.Hour), forger.TokenOf("known", time.Hour)
	for _, who := range []struct{ address, same, other string }{
		{"203.0.113.7", "::ffff:203.0.113.7", "203.0.113.8"},
		{"64:ff9b::198.51.100.7", "198.51.100.7", "64:ff9b::198.51.100.8"},
		{"2001:db8:0:1::7", "2001:db8:0:1:ffff::8", "2001:db8:0:2::7"},
	} {
		fresh := l.TokenOf(who.address, time.Hour)
		want("", 0, known, who.address, now)
		// Tokens that cost next to nothing, or are known, do not count.
		for range 50 {
			want("no_buyer", 0, "null", who.address, now)
			want("no_buyer", 0, l.TokenOf("late", -time.Minute), who.address, now)
			want("no_buyer", 0, l.Sign(`{"aud":"cms","sub":"u"}`), who.address, now)
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

// aSecond is a wait of a second, which is spread.
var aSecond = regexp.MustCompile("Retry-After: [123]\r\n")

// The limit holds in a gate and in the listener wrapper, and its answers are the same.
func TestForgedTokensAreLimitedEverywhere(t *testing.T) {
	l, forger := sitetest.NewLogin(t), sitetest.NewLogin(t)
	s := sitetest.OpenFast(t, "trusted_proxies static 127.0.0.0/8", `
SITEshop.example.comPORT {
	stockgate /order {
		jwt `+l.KeysURL()+`
		buyer {jwt.sub}
		line out
		FAST
	}
	respond 201
}
`)
	send := func(addr, token, from string) string {
		return s.Raw(addr, "GET /order HTTP/1.1\r\nHost: shop.example.com\r\nX-Forwarded-For: "+from+"\r\nAuthorization: Bearer "+token+"\r\n\r\n", 1)
	}
	good := l.TokenOf("u1", time.Hour)
	if got := send(s.Fast, good, "203.0.113.9"); !strings.Contains(got, "201 Created") {
		t.Fatalf("a good token: %s", got)
	}
	for i, addr := range []string{s.Plain, s.Fast} {
		from := fmt.Sprintf("203.0.113.%d", i)
		sent, before := 0, s.FastAnswers()
		for n := 0; ; n++ {
			got := send(addr, forger.TokenOf(fmt.Sprint(n), time.Hour), from)
			sent++
			if strings.Contains(got, "429 Too Many Requests") {
				if !aSecond.MatchString(got) || !strings.Contains(got, `"rate_limited"`) {
					t.Errorf("%s", got)
				}
				break
			}
			if !strings.Contains(got, "401 Unauthorized") || n == 10_000 {
				t.Fatalf("number %d: %s", n, got)
			}
		}
		if fast := s.FastAnswers() - before; addr == s.Fast && fast != sent || addr == s.Plain && fast != 0 {
			t.Errorf("%v of %d were answered by the wrapper", fast, sent)
		}
		if got := send(addr, good, from); strings.Contains(got, "rate_limited") || strings.Contains(got, "no_buyer") {
			t.Errorf("a known token behind the same address: %s", got)
		}
		if got := send(addr, forger.TokenOf("x", time.Hour), "203.0.113.77"); !strings.Contains(got, "401 Unauthorized") {
			t.Errorf("another address: %s", got)
		}
	}
}

// openJWT returns what a gate asks about a token from an address at a time; the text is the
// reason of a refusal, and wait its Retry-After.
func openJWT(t *testing.T, j *jwt.Config) func(token, clientIP string, at time.Time) (reason sale.Reason, wait int64) {
	t.Helper()
	v, err := jwt.Configs{j}.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	return func(token, clientIP string, at time.Time) (sale.Reason, int64) {
		_, no := v.ClaimsOf(context.Background(), token, v.LimitFor(clientIP, at))
		if no == nil {
			return "", 0
		}
		return no.Reason, no.RetryAfter
	}
}

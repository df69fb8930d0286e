package gate_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

func publicPEM(l *sitetest.Login, t *testing.T) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(l.Public())
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func jwtGate(jwt, more, shop string) string {
	return sitetest.OrderMatcher + "stockgate_guard\nstockgate @order main {\njwt " + jwt + "\nbuyer {jwt.sub}\nidentity phone {jwt.contact.phone}\nline {json.sku}\n" + more + "\n}\nreverse_proxy " + shop
}

func bearerOf(token string) *http.Request { return sitetest.NewOrder("Authorization", "Bearer "+token) }

// The token may be in a cookie, and its key a file or a secret of the environment.
func TestBearerTokenInACookie(t *testing.T) {
	l, shop := sitetest.NewLogin(t), sitetest.NewBackend(t, sitetest.Created)
	key := filepath.Join(t.TempDir(), "login.pem")
	if err := os.WriteFile(key, []byte(publicPEM(l, t)), 0o600); err != nil {
		t.Fatal(err)
	}
	const secret = "a secret of the shop, 32 bytes or more"
	t.Setenv("STOCKGATE_TEST_JWT_SECRET", secret)
	hmacToken := func(sub string) string {
		message := sitetest.B64.EncodeToString([]byte(`{"alg":"HS256"}`)) + "." + sitetest.B64.EncodeToString([]byte(`{"sub":"`+sub+`"}`))
		h := hmac.New(sha256.New, []byte(secret))
		h.Write([]byte(message))
		return message + "." + sitetest.B64.EncodeToString(h.Sum(nil))
	}
	byFile := l.TokenOf("u1", time.Hour)
	s := sitetest.OpenCaddyfile(t, jwtGate("ed25519 "+key+" {\n cookie session\n}", "", shop.Addr()))
	check := func(r *http.Request, status int, reason, buyer string) {
		t.Helper()
		s.Send(r).Is(t, status, reason)
		switch got := shop.Take(); {
		case buyer == "" && len(got) > 0:
			t.Errorf("the shop got %v", got)
		case buyer != "" && (len(got) != 1 || sitetest.ClaimsOf(t, got[0].Header.Get("Stockgate-Token")).Sub != buyer):
			t.Errorf("the shop got %v, the buyer is %s", got, buyer)
		}
	}
	check(sitetest.NewOrder("Cookie", "a=b; session="+byFile), 201, "", "u1")
	check(sitetest.NewOrder("Cookie", "session="+byFile, "Authorization", "Basic dTpw", "Authorization", "x"), 201, "", "u1")
	check(bearerOf(byFile), 401, "no_buyer", "")
	check(sitetest.NewOrder("Cookie", "session="+byFile+"; session="+byFile), 400, "malformed", "")
	check(sitetest.NewOrder("Cookie", "Session="+byFile), 400, "malformed", "")
	check(sitetest.NewOrder("Cookie", "session="+hmacToken("u1")), 401, "no_buyer", "")

	for _, load := range []struct{ jwt, token, buyer string }{
		{"ed25519 {file." + key + "}", byFile, "u1"},
		{"hmac {env.STOCKGATE_TEST_JWT_SECRET}", hmacToken("u7"), "u7"},
	} {
		if err := s.LoadCaddyfile(jwtGate(load.jwt, "", shop.Addr())); err != nil {
			t.Fatal(err)
		}
		s.Refresh()
		check(bearerOf(load.token), 201, "", load.buyer)
		if config := s.Admin("GET", "/config/", "").Body; strings.Contains(config, secret) || strings.Contains(config, "BEGIN PUBLIC") {
			t.Errorf("the configuration shows the key: %s", config)
		}
	}
	check(bearerOf(byFile), 401, "no_buyer", "")
	check(sitetest.NewOrder("Cookie", "session="+hmacToken("u7")), 401, "no_buyer", "")
}

// A configuration that cannot work is refused when it loads, and the previous one goes on.
func TestJWTConfigurations(t *testing.T) {
	l, shop := sitetest.NewLogin(t), sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenCaddyfile(t, jwtGate(l.KeysURL(), "", shop.Addr()))
	gate := func(block string) string {
		return sitetest.OrderMatcher + "stockgate_guard\nstockgate @order {\n" + block + "\n}\n"
	}
	for block, want := range map[string]string{
		"buyer {jwt.sub}\nline a": "say how the bearer token is verified",
		"jwt https://id.example.com/jwks.json\nbuyer {http.auth.user.id}\nline a":        "no value reads a claim",
		"jwt hmac short\nbuyer {jwt.sub}\nline a":                                        "at least 32",
		"jwt hmac {env.STOCKGATE_TEST_NOTHING}\nbuyer {jwt.sub}\nline a":                 "hmac is empty",
		"jwt hmac {file:/etc/stockgate/a-file-with-the.secret}\nbuyer {jwt.sub}\nline a": "hmac has a placeholder that is not known here",
		"jwt {env.STOCKGATE_TEST_NOTHING}\nbuyer {jwt.sub}\nline a":                      "the URL is empty",
		"jwt ed25519 /nowhere/key.pem\nbuyer {jwt.sub}\nline a":                          "no such file",
		"jwt https://id.example.com/ {\nleeway 61s\n}\nbuyer {jwt.sub}\nline a":          "leeway",
		"jwt https://id.example.com/ {\ncookie \"a b\"\n}\nbuyer {jwt.sub}\nline a":      "cookie's name",
		"jwt https://id.example.com/jwks.json\nbuyer u-{jwt.sub}\nline a":                "must stand alone",
		"jwt https://id.example.com/jwks.json\nbuyer {jwt.sub}\nline a\nhold_for 1s":     "hold_for",
	} {
		if err := s.LoadCaddyfile(gate(block)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", block, err, want)
		}
	}
	s.Send(bearerOf(l.TokenOf("u1", time.Hour))).Is(t, 201, "")
	for fields, want := range map[string]string{
		`"buyer":["{jwt.sub}"],"jwt":[{}]`: "give either",
		`"buyer":["{jwt.sub}"],"jwt":[{"hmac":"` + strings.Repeat("x", 32) + `","jwks":"https://a/"}]`: "give either",
		`"buyer":["{jwt.sub}"],"jwt":[{"jwks":"ftp://id.example.com/"}]`:                               "http or https",
		`"buyer":["{jwt.sub}"],"jwt":[{"ed25519":"no\nfile"}]`:                                         "neither PEM nor the path",
	} {
		if err := s.LoadGate(`{"handler":"stockgate","lines":[{"sku":["a"]}],` + fields + `}`); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", fields, err, want)
		}
	}
}

// While the keys cannot be fetched, an attempt is told to come back; a reload keeps the keys
// that are known.
func TestKeysThatCannotBeHad(t *testing.T) {
	l, shop := sitetest.NewLogin(t), sitetest.NewBackend(t, sitetest.Created)
	l.Down.Store(true)
	s := sitetest.OpenCaddyfile(t, jwtGate(l.KeysURL(), "", shop.Addr()))
	for range 3 {
		a := s.Send(bearerOf(l.TokenOf("u1", time.Hour)))
		a.Is(t, 503, "unavailable")
		if a.Header.Get("Retry-After") == "" || a.Header.Get("WWW-Authenticate") != "" {
			t.Errorf("header %v", a.Header)
		}
	}
	s.Send(sitetest.NewOrder()).Is(t, 401, "no_buyer")
	if n := len(l.Take()); n != 1 {
		t.Errorf("%d requests for keys", n)
	}
	if entries := s.Logged("the keys of the shop's bearer tokens could not be fetched: tokens of keys that are not known yet are answered with 503"); len(entries) != 1 {
		t.Errorf("logged %v", entries)
	}

	other := sitetest.NewLogin(t)
	site := jwtGate(other.KeysURL(), "", shop.Addr())
	if err := s.LoadCaddyfile(site); err != nil {
		t.Fatal(err)
	}
	s.Refresh()
	s.Send(bearerOf(other.TokenOf("u2", time.Hour))).Is(t, 201, "")
	other.Down.Store(true)
	if err := s.LoadCaddyfile(strings.Replace(site, "line {json.sku}", "line {json.sku} {json.quantity}", 1)); err != nil {
		t.Fatal(err)
	}
	s.Refresh()
	s.Send(bearerOf(other.TokenOf("u3", time.Hour))).Is(t, 201, "")
}

// The iss of a token selects its keys and what it must have; a prefix makes two buyers of one sub; and a reload
// that adds an issuer keeps the keys of the other.
func TestTokensOfSeveralIssuers(t *testing.T) {
	old, fresh, shop := sitetest.NewLogin(t), sitetest.NewLogin(t), sitetest.NewBackend(t, sitetest.Created)
	ofOld := old.KeysURL() + " {\n issuer login\n require aud shop\n}"
	s := sitetest.OpenCaddyfile(t, jwtGate(ofOld, "", shop.Addr()))
	s.Send(bearerOf(old.TokenOf("u1", time.Hour))).Is(t, 201, "")
	old.Down.Store(true)
	both := ofOld + "\njwt " + fresh.KeysURL() + " {\n issuer new\n require client_id app web\n prefix sub new:\n}"
	if err := s.LoadCaddyfile(jwtGate(both, "", shop.Addr())); err != nil {
		t.Fatal(err)
	}
	s.Refresh()
	shop.Take()
	for _, c := range []struct {
		token  string
		buyer  string
		detail string
	}{
		{old.TokenOf("u2", time.Hour), "u2", ""},
		{fresh.Sign(`{"iss":"new","client_id":"web","sub":"u2"}`), "new:u2", ""},
		{fresh.Sign(`{"iss":"new","client_id":"cms","sub":"u2"}`), "", "the claim client_id with a value that is required"},
		{fresh.Sign(`{"iss":"new","sub":"u2"}`), "", "the claim client_id with a value that is required"},
		{fresh.TokenOf("u2", time.Hour), "", "the signature of the bearer token is wrong"},
		{fresh.Sign(`{"iss":"other","client_id":"web","sub":"u2"}`), "", "from another issuer"},
		{fresh.Sign(`{"client_id":"web","sub":"u2"}`), "", "from another issuer"},
	} {
		a := s.Send(bearerOf(c.token))
		got := shop.Take()
		if c.buyer == "" {
			a.Is(t, 401, "no_buyer")
			if !strings.Contains(a.Header.Get("WWW-Authenticate"), c.detail) || len(got) > 0 {
				t.Errorf("%v, want %q; the shop got %v", a.Header, c.detail, got)
			}
		} else if a.Is(t, 201, ""); len(got) != 1 || sitetest.ClaimsOf(t, got[0].Header.Get("Stockgate-Token")).Sub != c.buyer {
			t.Errorf("the shop got %v, the buyer is %s", got, c.buyer)
		}
	}
	if n := len(old.Take()); n != 1 {
		t.Errorf("%d requests for the keys of the first issuer", n)
	}
}

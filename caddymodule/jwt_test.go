package caddymodule_test

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var b64 = base64.RawURLEncoding

// login is the shop's authentication: it signs tokens, and publishes its key.
type login struct {
	*backend
	private ed25519.PrivateKey
	down    atomic.Bool
}

func newLogin(t *testing.T) *login {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	l := &login{private: private}
	l.backend = newBackend(t, func(w http.ResponseWriter, _ *http.Request) {
		if l.down.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		fmt.Fprintf(w, `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k1","use":"sig","x":%q}]}`, b64.EncodeToString(l.public()))
	})
	return l
}

func (l *login) public() ed25519.PublicKey { return l.private.Public().(ed25519.PublicKey) }

func (l *login) jwks() string { return l.URL + "/jwks.json" }

func (l *login) pem(t *testing.T) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(l.public())
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// token signs claims.
func (l *login) token(claims string) string {
	message := b64.EncodeToString([]byte(`{"alg":"EdDSA","kid":"k1","typ":"JWT"}`)) + "." + b64.EncodeToString([]byte(claims))
	return message + "." + b64.EncodeToString(ed25519.Sign(l.private, []byte(message)))
}

// of is a token of a buyer that ends so far from now.
func (l *login) of(buyer string, ends time.Duration) string {
	return l.token(fmt.Sprintf(`{"iss":"login","aud":["shop"],"sub":%q,"exp":%d,"contact":{"phone":13800000000}}`, buyer, time.Now().Add(ends).Unix()))
}

const orders = "@order {\n method POST\n path /api/order\n }\n"

func jwtGate(jwt, more, shop string) string {
	return orders + "stockgate_guard\nstockgate @order main {\njwt " + jwt + "\nbuyer {jwt.sub}\nidentity phone {jwt.contact.phone}\nline {json.sku}\n" + more + "\n}\nreverse_proxy " + shop
}

func bearerOf(token string) *http.Request { return order("Authorization", "Bearer "+token) }

// The buyer is the one that the shop's own token names, without a call to the shop.
func TestBuyerOfABearerToken(t *testing.T) {
	l, shop := newLogin(t), newBackend(t, created)
	s := openCaddyfile(t, jwtGate(l.jwks()+" {\n issuer login\n audience shop\n leeway 5s\n}", "", shop.addr()))
	var crowd sync.WaitGroup
	for i := range 20 {
		crowd.Go(func() { s.send(bearerOf(l.of(fmt.Sprintf("u%d", i), time.Hour))).Is(t, 201, "") })
	}
	crowd.Wait()
	buyers := map[string]bool{}
	for _, got := range shop.take() {
		if got.header.Get("Authorization") == "" {
			t.Error("the shop does not get its own token")
		}
		buyers[claimsOf(t, got.header.Get("Stockgate-Token")).Sub] = true
	}
	if len(buyers) != 20 {
		t.Errorf("the buyers are %v", buyers)
	}
	if n := len(l.take()); n != 1 {
		t.Errorf("%d requests for keys for 20 attempts", n)
	}

	forger := newLogin(t)
	good := l.of("u1", time.Hour)
	for name, c := range map[string]struct {
		r         *http.Request
		status    int
		reason    string
		challenge string
		detail    string
	}{
		"none":         {order(), 401, "no_buyer", "Bearer", ""},
		"Basic":        {order("Authorization", "Basic dTpw"), 401, "no_buyer", "Bearer", ""},
		"expired":      {bearerOf(l.of("u1", -time.Minute)), 401, "no_buyer", `Bearer error="invalid_token", error_description="the bearer token has expired"`, "the bearer token has expired"},
		"forged":       {bearerOf(forger.of("u1", time.Hour)), 401, "no_buyer", `Bearer error="invalid_token", error_description="the signature of the bearer token is wrong"`, "the signature"},
		"null":         {bearerOf("null"), 401, "no_buyer", `Bearer error="invalid_token", error_description="the bearer token is not a signed JWT"`, "not a signed JWT"},
		"for others":   {bearerOf(l.token(`{"iss":"login","aud":"cms","sub":"u1"}`)), 401, "no_buyer", `Bearer error="invalid_token", error_description="the bearer token is for another audience"`, "another audience"},
		"no sub":       {bearerOf(l.token(`{"iss":"login","aud":"shop"}`)), 401, "no_buyer", "Bearer", ""},
		"two":          {order("Authorization", "Bearer "+good, "Authorization", "Bearer "+good), 400, "malformed", "", "header.Authorization"},
		"two subs":     {bearerOf(l.token(`{"iss":"login","aud":"shop","sub":"u1","sub":"u2"}`)), 401, "no_buyer", `Bearer error="invalid_token", error_description="the bearer token is not a signed JWT"`, "not a signed JWT"},
		"subs in case": {bearerOf(l.token(`{"iss":"login","aud":"shop","sub":"u1","SUB":"u2"}`)), 400, "malformed", "", "jwt.sub: the name appears in another spelling"},
		"sub is true":  {bearerOf(l.token(`{"iss":"login","aud":"shop","sub":true}`)), 400, "malformed", "", "jwt.sub: it is neither a string nor a whole number"},
		"in a cookie":  {order("Cookie", "session="+good), 401, "no_buyer", "Bearer", ""},
	} {
		a := s.send(c.r)
		a.Is(t, c.status, c.reason)
		if got := a.Header.Get("WWW-Authenticate"); got != c.challenge {
			t.Errorf("%s: challenge %q, want %q", name, got, c.challenge)
		}
		if !strings.Contains(a.Body, c.detail) {
			t.Errorf("%s: %s", name, a.Body)
		}
		for _, value := range c.r.Header.Values("Authorization") {
			if part, _, ok := strings.Cut(strings.TrimPrefix(value, "Bearer "), "."); ok && strings.Contains(a.Body+fmt.Sprint(a.Header), part) {
				t.Errorf("%s: the answer repeats the token: %s %v", name, a.Body, a.Header)
			}
		}
	}
	if got := shop.take(); len(got) != 0 {
		t.Errorf("the shop got %v", got)
	}
	if got := s.cell("plain"); got != "100 80 0 0 20" {
		t.Errorf("stock %s", got)
	}
}

// The token may be in a cookie, and its key a file or a secret of the environment.
func TestBearerTokenInACookie(t *testing.T) {
	l, shop := newLogin(t), newBackend(t, created)
	key := filepath.Join(t.TempDir(), "login.pem")
	if err := os.WriteFile(key, []byte(l.pem(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	const secret = "a secret of the shop, 32 bytes or more"
	t.Setenv("STOCKGATE_TEST_JWT_SECRET", secret)
	hmacToken := func(sub string) string {
		message := b64.EncodeToString([]byte(`{"alg":"HS256"}`)) + "." + b64.EncodeToString([]byte(`{"sub":"`+sub+`"}`))
		h := hmac.New(sha256.New, []byte(secret))
		h.Write([]byte(message))
		return message + "." + b64.EncodeToString(h.Sum(nil))
	}
	byFile := l.of("u1", time.Hour)
	s := openCaddyfile(t, jwtGate("ed25519 "+key+" {\n cookie session\n}", "", shop.addr()))
	check := func(r *http.Request, status int, reason, buyer string) {
		t.Helper()
		s.send(r).Is(t, status, reason)
		switch got := shop.take(); {
		case buyer == "" && len(got) > 0:
			t.Errorf("the shop got %v", got)
		case buyer != "" && (len(got) != 1 || claimsOf(t, got[0].header.Get("Stockgate-Token")).Sub != buyer):
			t.Errorf("the shop got %v, the buyer is %s", got, buyer)
		}
	}
	check(order("Cookie", "a=b; session="+byFile), 201, "", "u1")
	check(order("Cookie", "session="+byFile, "Authorization", "Basic dTpw", "Authorization", "x"), 201, "", "u1")
	check(bearerOf(byFile), 401, "no_buyer", "")
	check(order("Cookie", "session="+byFile+"; session="+byFile), 400, "malformed", "")
	check(order("Cookie", "Session="+byFile), 400, "malformed", "")
	check(order("Cookie", "session="+hmacToken("u1")), 401, "no_buyer", "")

	for _, load := range []struct{ jwt, token, buyer string }{
		{"ed25519 {file." + key + "}", byFile, "u1"},
		{"hmac {env.STOCKGATE_TEST_JWT_SECRET}", hmacToken("u7"), "u7"},
	} {
		if err := s.loadCaddyfile(jwtGate(load.jwt, "", shop.addr())); err != nil {
			t.Fatal(err)
		}
		s.refresh()
		check(bearerOf(load.token), 201, "", load.buyer)
		if config := s.Admin("GET", "/config/", "").Body; strings.Contains(config, secret) || strings.Contains(config, "BEGIN PUBLIC") {
			t.Errorf("the configuration shows the key: %s", config)
		}
	}
	check(bearerOf(byFile), 401, "no_buyer", "")
	check(order("Cookie", "session="+hmacToken("u7")), 401, "no_buyer", "")
}

// A configuration that cannot work is refused when it loads, and the previous one goes on.
func TestJWTConfigurations(t *testing.T) {
	l, shop := newLogin(t), newBackend(t, created)
	s := openCaddyfile(t, jwtGate(l.jwks(), "", shop.addr()))
	gate := func(block string) string { return orders + "stockgate_guard\nstockgate @order {\n" + block + "\n}\n" }
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
		if err := s.loadCaddyfile(gate(block)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", block, err, want)
		}
	}
	s.send(bearerOf(l.of("u1", time.Hour))).Is(t, 201, "")
	for fields, want := range map[string]string{
		`"buyer":["{jwt.sub}"],"jwt":{}`: "give either",
		`"buyer":["{jwt.sub}"],"jwt":{"hmac":"` + strings.Repeat("x", 32) + `","jwks":"https://a/"}`: "give either",
		`"buyer":["{jwt.sub}"],"jwt":{"jwks":"ftp://id.example.com/"}`:                               "http or https",
		`"buyer":["{jwt.sub}"],"jwt":{"ed25519":"no\nfile"}`:                                         "neither PEM nor the path",
	} {
		if err := s.loadGate(`{"handler":"stockgate","lines":[{"sku":["a"]}],` + fields + `}`); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", fields, err, want)
		}
	}
}

// While the keys cannot be fetched, an attempt is told to come back; a reload keeps the keys
// that are known.
func TestKeysThatCannotBeHad(t *testing.T) {
	l, shop := newLogin(t), newBackend(t, created)
	l.down.Store(true)
	s := openCaddyfile(t, jwtGate(l.jwks(), "", shop.addr()))
	for range 3 {
		a := s.send(bearerOf(l.of("u1", time.Hour)))
		a.Is(t, 503, "unavailable")
		if a.Header.Get("Retry-After") == "" || a.Header.Get("WWW-Authenticate") != "" {
			t.Errorf("header %v", a.Header)
		}
	}
	s.send(order()).Is(t, 401, "no_buyer")
	if n := len(l.take()); n != 1 {
		t.Errorf("%d requests for keys", n)
	}
	if entries := s.Logged("the keys of the shop's bearer tokens could not be fetched: tokens of keys that are not known yet are answered with 503"); len(entries) != 1 {
		t.Errorf("logged %v", entries)
	}

	other := newLogin(t)
	site := jwtGate(other.jwks(), "", shop.addr())
	if err := s.loadCaddyfile(site); err != nil {
		t.Fatal(err)
	}
	s.refresh()
	s.send(bearerOf(other.of("u2", time.Hour))).Is(t, 201, "")
	other.down.Store(true)
	if err := s.loadCaddyfile(strings.Replace(site, "line {json.sku}", "line {json.sku} {json.quantity}", 1)); err != nil {
		t.Fatal(err)
	}
	s.refresh()
	s.send(bearerOf(other.of("u3", time.Hour))).Is(t, 201, "")
}

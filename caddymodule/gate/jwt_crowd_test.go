package gate_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// The buyer is the one that the shop's own token names, without a call to the shop.
func TestBuyerOfABearerToken(t *testing.T) {
	l, shop := sitetest.NewLogin(t), sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenCaddyfile(t, jwtGate(l.KeysURL()+" {\n issuer login\n audience shop\n leeway 5s\n}", "", shop.Addr()))
	var crowd sync.WaitGroup
	for i := range 20 {
		crowd.Go(func() { s.Send(bearerOf(l.TokenOf(fmt.Sprintf("u%d", i), time.Hour))).Is(t, 201, "") })
	}
	crowd.Wait()
	buyers := map[string]bool{}
	for _, got := range shop.Take() {
		if got.Header.Get("Authorization") == "" {
			t.Error("the shop does not get its own token")
		}
		buyers[sitetest.ClaimsOf(t, got.Header.Get("Stockgate-Token")).Sub] = true
	}
	if len(buyers) != 20 {
		t.Errorf("the buyers are %v", buyers)
	}
	if n := len(l.Take()); n != 1 {
		t.Errorf("%d requests for keys for 20 attempts", n)
	}

	forger := sitetest.NewLogin(t)
	good := l.TokenOf("u1", time.Hour)
	for name, c := range map[string]struct {
		r         *http.Request
		status    int
		reason    string
		challenge string
		detail    string
	}{
		"none":         {sitetest.NewOrder(), 401, "no_buyer", "Bearer", ""},
		"Basic":        {sitetest.NewOrder("Authorization", "Basic dTpw"), 401, "no_buyer", "Bearer", ""},
		"expired":      {bearerOf(l.TokenOf("u1", -time.Minute)), 401, "no_buyer", `Bearer error="invalid_token", error_description="the bearer token has expired"`, "the bearer token has expired"},
		"forged":       {bearerOf(forger.TokenOf("u1", time.Hour)), 401, "no_buyer", `Bearer error="invalid_token", error_description="the signature of the bearer token is wrong"`, "the signature"},
		"null":         {bearerOf("null"), 401, "no_buyer", `Bearer error="invalid_token", error_description="the bearer token is not a signed JWT"`, "not a signed JWT"},
		"for others":   {bearerOf(l.Sign(`{"iss":"login","aud":"cms","sub":"u1"}`)), 401, "no_buyer", `Bearer error="invalid_token", error_description="the bearer token is for another audience"`, "another audience"},
		"no sub":       {bearerOf(l.Sign(`{"iss":"login","aud":"shop"}`)), 401, "no_buyer", "Bearer", ""},
		"two":          {sitetest.NewOrder("Authorization", "Bearer "+good, "Authorization", "Bearer "+good), 400, "malformed", "", "header.Authorization"},
		"two subs":     {bearerOf(l.Sign(`{"iss":"login","aud":"shop","sub":"u1","sub":"u2"}`)), 401, "no_buyer", `Bearer error="invalid_token", error_description="the bearer token is not a signed JWT"`, "not a signed JWT"},
		"subs in case": {bearerOf(l.Sign(`{"iss":"login","aud":"shop","sub":"u1","SUB":"u2"}`)), 400, "malformed", "", "jwt.sub: the name appears in another spelling"},
		"sub is true":  {bearerOf(l.Sign(`{"iss":"login","aud":"shop","sub":true}`)), 400, "malformed", "", "jwt.sub: it is neither a string nor a whole number"},
		"in a cookie":  {sitetest.NewOrder("Cookie", "session="+good), 401, "no_buyer", "Bearer", ""},
	} {
		a := s.Send(c.r)
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
	if got := shop.Take(); len(got) != 0 {
		t.Errorf("the shop got %v", got)
	}
	if got := s.StockOf("plain"); got != "100 80 0 0 20" {
		t.Errorf("stock %s", got)
	}
}

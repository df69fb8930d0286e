package bearer_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/filters/bearer"
)

// A required claim is one of several values, or an array has one of them.
func TestRequiredClaims(t *testing.T) {
	ed := newEd("")
	for _, c := range []struct {
		name   string
		values string
		claims string
		want   bool
	}{
		{"client_id", "web app", `{"client_id":"app"}`, true},
		{"client_id", "web app", `{"client_id":"App"}`, false},
		{"client_id", "web app", `{"client_id":["x","web"]}`, true},
		{"client_id", "web app", `{"client_id":["x",["web"]]}`, false},
		{"client_id", "web", `{"CLIENT_ID":"web"}`, false},
		{"client_id", "web", `{"client_id":null}`, false},
		{"client_id", "web", `{"client_id":{"web":"web"}}`, false},
		{"client_id", "web", `{"client_id":"web app"}`, false},
		{"client_id", "web", `{"sub":"web"}`, false},
		{"https://shop.test/roles", "buyer vip", `{"https://shop.test/roles":["vip"]}`, true},
		{"https://shop.test/roles", "buyer vip", `{"https://shop.test/roles":[]}`, false},
		{"https://shop.test/roles", "vip", `{"https://shop":{"test/roles":"vip"}}`, false},
		{`https://shop\.test/claims.role`, "vip", `{"https://shop.test/claims":{"role":"vip"}}`, true},
		{"realm_access.roles", "vip", `{"realm_access":{"roles":["x","vip"]}}`, true},
		{"realm_access.roles", "vip", `{"realm_access.roles":"vip"}`, false},
		{`realm_access\.roles`, "vip", `{"realm_access.roles":"vip"}`, true},
		{"realm_access.roles", "vip", `{"realm_access":"vip"}`, false},
		{"verified", "true", `{"verified":true}`, true},
		{"verified", "true", `{"verified":"true"}`, true},
		{"verified", "true", `{"verified":false}`, false},
		{"verified", "true", `{"verified":1}`, false},
		{"tenant", "7", `{"tenant":7}`, true},
		{"tenant", "7", `{"tenant":[6,7.0]}`, true},
		{"tenant", "7", `{"tenant":7.5}`, false},
		{"tenant", "9007199254740993", `{"tenant":9007199254740992}`, false},
		{"scope", "order", `{"scope":"openid order"}`, true},
		{"scope", "order", `{"scope":"openid orders"}`, false},
		{"scp", "order", `{"scp":["order"]}`, true},
		{"a.scope", "order", `{"a":{"scope":"openid order"}}`, false},
	} {
		v := verifier(t, bearer.Options{PublicKey: ed.pem(), Require: []bearer.Claim{{Name: c.name, Values: strings.Fields(c.values)}}})
		for range 2 {
			_, err := v.Verify(t.Context(), ed.token(c.claims), nil)
			invalid, _ := errors.AsType[bearer.Invalid](err)
			if (err == nil) != c.want || err != nil && (!strings.Contains(string(invalid), "required") || strings.ContainsAny(string(invalid), `"\`)) {
				t.Errorf("require %s %s, %s: %v", c.name, c.values, c.claims, err)
			}
		}
	}
	both := verifier(t, bearer.Options{PublicKey: ed.pem(), Require: []bearer.Claim{{Name: "a", Values: []string{"1"}}, {Name: "b", Values: []string{"1"}}}})
	if _, err := both.Verify(t.Context(), ed.token(`{"a":1}`), nil); err == nil || !strings.Contains(err.Error(), "the claim b ") {
		t.Errorf("one of two: %v", err)
	}
}

// twoIssuers are two issuers with keys of one id, and a verifier of both.
func twoIssuers(t *testing.T, clock *hand) (keys [2]signer, sets [2]*idp, both bearer.Issuers) {
	var all [2]*bearer.Verifier
	for i, name := range []string{"a", "b"} {
		keys[i] = newEd("k1")
		sets[i] = newIDP(t, keys[i])
		all[i] = verifier(t, bearer.Options{JWKS: sets[i].URL, Issuer: name, Audience: "shop-" + name, Now: clock.time})
	}
	return keys, sets, must(bearer.NewIssuers(all[:]...))
}

// The iss of a token selects keys and audience. Keys of one issuer verify no token of another.
func TestIssuers(t *testing.T) {
	clock := new(hand)
	keys, sets, both := twoIssuers(t, clock)
	const ofA, ofB = `{"iss":"a","aud":"shop-a","sub":"u1"}`, `{"iss":"b","aud":"shop-b","sub":"u1"}`
	for _, c := range []struct {
		token string
		want  error
	}{
		{keys[0].token(ofA), nil},
		{keys[1].token(ofB), nil},
		{keys[0].token(ofB), bearer.ErrSignature},
		{keys[1].token(ofA), bearer.ErrSignature},
		{keys[0].token(`{"iss":"a","aud":"shop-b"}`), bearer.ErrAudience},
		{keys[0].token(`{"iss":"c","aud":"shop-a"}`), bearer.ErrIssuer},
		{keys[0].token(`{"aud":"shop-a"}`), bearer.ErrIssuer},
		{keys[0].token(`{"iss":"","aud":"shop-a"}`), bearer.ErrIssuer},
		{keys[0].token(`{"iss":["a"],"aud":"shop-a"}`), bearer.ErrMalformed},
		{keys[0].token(`{"iss":"b","iss":"a","aud":"shop-a"}`), bearer.ErrMalformed},
		{keys[0].token(`{"ISS":"a","aud":"shop-a"}`), bearer.ErrIssuer},
		{keys[0].token(``), bearer.ErrMalformed},
		{encode(`{"alg":"none"}`) + "." + encode(ofA) + ".", bearer.ErrAlgorithm},
		{"a.b", bearer.ErrMalformed},
		{"a.b.c", bearer.ErrMalformed},
		{strings.Repeat("a", bearer.MaxSize+1), bearer.ErrTooLong},
	} {
		for range 2 {
			if _, err := both.VerifyAt(t.Context(), c.token, nil, clock.time()); err != c.want {
				t.Errorf("%s: %v, want %v", c.token, err, c.want)
			}
		}
	}
	if a, b := sets[0].fetches.Load(), sets[1].fetches.Load(); a != 1 || b != 1 {
		t.Errorf("%d and %d fetches", a, b)
	}
}

// Each issuer's keys are fetched at their own rate, and while one set cannot be fetched, tokens of the other pass.
func TestIssuersFetchAlone(t *testing.T) {
	clock := new(hand)
	keys, sets, both := twoIssuers(t, clock)
	verify := func(s signer, claims string) error {
		_, err := both.VerifyAt(context.Background(), s.token(claims), nil, clock.time())
		return err
	}
	sets[0].break_()
	for range 3 {
		if err := verify(keys[0], `{"iss":"a","aud":"shop-a"}`); !errors.Is(err, bearer.ErrUnavailable) {
			t.Errorf("of the one that is down: %v", err)
		}
		if err := verify(keys[1], `{"iss":"b","aud":"shop-b"}`); err != nil {
			t.Errorf("of the other: %v", err)
		}
	}
	fresh := newEd("k1")
	sets[1].publish(fresh)
	clock.advance(30 * time.Second)
	for range 5 {
		if err := verify(fresh, `{"iss":"a","aud":"shop-a"}`); !errors.Is(err, bearer.ErrUnavailable) {
			t.Errorf("a key of the other issuer: %v", err)
		}
	}
	if err := verify(fresh, `{"iss":"b","aud":"shop-b"}`); err != nil {
		t.Errorf("the new key of an issuer: %v", err)
	}
	if a, b := sets[0].fetches.Load(), sets[1].fetches.Load(); a != 2 || b != 2 {
		t.Errorf("%d and %d fetches", a, b)
	}
}

// A prefix stands before the claim's value, and before no other.
func TestPrefix(t *testing.T) {
	ed := newEd("")
	v := verifier(t, bearer.Options{PublicKey: ed.pem(), Prefix: map[string]string{"sub": "b:", "user.id": "b\"", "https://x.test/id": "b/"}})
	for claims, want := range map[string]string{
		`{"sub":"u1"}`:                     `{"sub":"b:u1"}`,
		` {"sub":42,"n":1e3}`:              `{"n":1e3,"sub":"b:42"}`,
		`{"sub":1.5}`:                      `{"sub":1.5}`,
		`{"sub":9007199254740992}`:         `{"sub":9007199254740992}`,
		`{"sub":""}`:                       `{"sub":""}`,
		`{"sub":null}`:                     `{"sub":null}`,
		`{"sub":["u1"]}`:                   `{"sub":["u1"]}`,
		`{"sub":{"sub":"u1"}}`:             `{"sub":{"sub":"u1"}}`,
		`{"id":"u1"}`:                      `{"id":"u1"}`,
		`{"user":{"id":"u1","x":[1]}}`:     `{"user":{"id":"b\"u1","x":[1]}}`,
		`{"user":"u1"}`:                    `{"user":"u1"}`,
		`{"https://x.test/id":"u1"}`:       `{"https://x.test/id":"b/u1"}`,
		`{"sub":"\u00fc","user":{"id":7}}`: `{"sub":"b:ü","user":{"id":"b\"7"}}`,
	} {
		for range 2 {
			if got, err := v.Verify(t.Context(), ed.token(claims), nil); err != nil || string(got) != want {
				t.Errorf("%s: %s %v, want %s", claims, got, err, want)
			}
		}
	}
}

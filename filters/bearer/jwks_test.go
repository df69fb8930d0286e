package bearer_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	_ "crypto/sha512"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/stockgate/stockgate/filters/bearer"
)

// One fetch serves all callers that wait for it.
func TestKeysAreFetchedOnce(t *testing.T) {
	ed := newEd("d")
	p := newIDP(t, ed)
	v := verifier(t, bearer.Options{JWKS: p.URL})
	if p.fetches.Load() != 0 {
		t.Error("fetched before the first token")
	}
	token := ed.token(good)
	var crowd sync.WaitGroup
	for range 50 {
		crowd.Go(func() {
			if _, err := v.Verify(t.Context(), token, nil); err != nil {
				t.Error(err)
			}
		})
	}
	crowd.Wait()
	if n := p.fetches.Load(); n != 1 {
		t.Errorf("%d fetches for 50 tokens", n)
	}
}

// A new key is fetched when a token names it; forged ids fetch nothing more.
func TestRotation(t *testing.T) {
	first, second, clock := newEd("1"), newEd("2"), new(hand)
	p := newIDP(t, first)
	v := verifier(t, bearer.Options{JWKS: p.URL, Now: clock.time})
	check := func(s signer, want error) {
		t.Helper()
		if _, err := v.Verify(t.Context(), s.token(good), nil); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	check(first, nil)
	for range 20 {
		check(second, bearer.ErrUnknownKey)
	}
	if n := p.fetches.Load(); n != 1 {
		t.Errorf("%d fetches within the interval", n)
	}
	p.publish(first, second)
	clock.advance(10 * time.Second)
	check(second, nil)
	check(first, nil)
	if n := p.fetches.Load(); n != 2 {
		t.Errorf("%d fetches, want 2", n)
	}
}

// A token of a key that was withdrawn is no longer accepted, remembered or not.
func TestWithdrawnKey(t *testing.T) {
	withdrawn, stays, clock := newEd("1"), newEC("2"), new(hand)
	p := newIDP(t, withdrawn, stays)
	v := verifier(t, bearer.Options{JWKS: p.URL, Now: clock.time, Leeway: time.Minute})
	if _, err := v.Verify(t.Context(), withdrawn.token(`{"sub":"u42"}`), nil); err != nil {
		t.Fatal(err)
	}
	p.publish(stays)
	clock.advance(10 * time.Second)
	// an unknown key causes another fetch of the set
	if _, err := v.Verify(t.Context(), newEd("3").token(good), nil); err != bearer.ErrUnknownKey {
		t.Fatal(err)
	}
	if _, err := v.Verify(t.Context(), withdrawn.token(`{"sub":"u42"}`), nil); err != bearer.ErrUnknownKey {
		t.Errorf("%v", err)
	}
	if _, err := v.Verify(t.Context(), stays.token(good), nil); err != nil {
		t.Errorf("the other key: %v", err)
	}
}

// Tokens without the id of a key: the only key of their algorithm counts, and a
// signature that does not fit may be of a newer one.
func TestTokensWithoutKeyID(t *testing.T) {
	old, fresh, clock := newEd(""), newEd(""), new(hand)
	p := newIDP(t, old, newEC("e"), newRSA("r", rsaKey()))
	v := verifier(t, bearer.Options{JWKS: p.URL, Now: clock.time})
	if _, err := v.Verify(t.Context(), old.token(good), nil); err != nil {
		t.Fatal(err)
	}
	p.publish(fresh)
	if _, err := v.Verify(t.Context(), fresh.token(good), nil); err != bearer.ErrSignature {
		t.Errorf("within the interval: %v", err)
	}
	clock.advance(10 * time.Second)
	if _, err := v.Verify(t.Context(), fresh.token(good), nil); err != nil {
		t.Errorf("after it: %v", err)
	}
	p.publish(old, fresh)
	clock.advance(10 * time.Second)
	if _, err := v.Verify(t.Context(), old.token(`{"sub":"another"}`), nil); err != bearer.ErrSignature {
		t.Errorf("two keys could have signed: %v", err)
	}
}

// While the set cannot be had: a known key works, and nothing is said about a
// token of an unknown one.
func TestUnreachableKeys(t *testing.T) {
	known, unknown, clock := newEd("1"), newEd("2"), new(hand)
	p := newIDP(t, known)
	p.break_()
	var mu sync.Mutex
	var failures []string
	v := verifier(t, bearer.Options{JWKS: p.URL, Now: clock.time, Failed: func(err error) {
		mu.Lock()
		defer mu.Unlock()
		failures = append(failures, err.Error())
	}})
	for range 5 {
		if _, err := v.Verify(t.Context(), known.token(good), nil); !errors.Is(err, bearer.ErrUnavailable) {
			t.Errorf("never fetched: %v", err)
		}
	}
	p.publish(known)
	clock.advance(10 * time.Second)
	if _, err := v.Verify(t.Context(), known.token(good), nil); err != nil {
		t.Errorf("it is back: %v", err)
	}
	p.break_()
	clock.advance(10 * time.Second)
	if _, err := v.Verify(t.Context(), unknown.token(good), nil); !errors.Is(err, bearer.ErrUnavailable) {
		t.Errorf("an unknown key: %v", err)
	}
	if _, err := v.Verify(t.Context(), known.token(`{"sub":"another"}`), nil); err != nil {
		t.Errorf("a known key: %v", err)
	}
	// a token that no key could have signed needs no set
	if _, err := v.Verify(t.Context(), newHMAC([]byte(secret)).token(good), nil); err != bearer.ErrAlgorithm {
		t.Errorf("a secret's token: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if n := p.fetches.Load(); n != 3 || len(failures) != 2 || !strings.Contains(failures[0], "502") {
		t.Errorf("%d fetches, failures %q", n, failures)
	}
}

// A publisher that does not answer holds no caller longer than the caller's own timeout,
// and not at all whose key is known.
func TestSlowKeys(t *testing.T) {
	known, unknown, clock := newEd("1"), newEd("2"), new(hand)
	p := newIDP(t, known)
	v := verifier(t, bearer.Options{JWKS: p.URL, Now: clock.time})
	if _, err := v.Verify(t.Context(), known.token(good), nil); err != nil {
		t.Fatal(err)
	}
	asked, open := make(chan struct{}, 1), make(chan struct{})
	p.set(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-open
	})
	defer close(open)
	clock.advance(10 * time.Second)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := v.Verify(ctx, unknown.token(good), nil)
		left <- err
	}()
	<-asked
	if _, err := v.Verify(t.Context(), known.token(`{"sub":"another"}`), nil); err != nil {
		t.Errorf("a known key: %v", err)
	}
	leave()
	if err := <-left; !errors.Is(err, bearer.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("who left: %v", err)
	}
}

// Of a set only public signing keys that are strong enough count.
func TestKeysOfASet(t *testing.T) {
	ed := newEd("d")
	change := func(s signer, name string, value any) string {
		var members map[string]any
		if err := json.Unmarshal(s.jwk(), &members); err != nil {
			t.Fatal(err)
		}
		if value == nil {
			delete(members, name)
		} else {
			members[name] = value
		}
		return string(must(json.Marshal(members)))
	}
	oct := `{"kty":"oct","kid":"d","alg":"HS256","k":"` + encode(secret) + `"}`
	rs := newRSA("r", rsaKey())
	for name, tc := range map[string]struct {
		member string
		s      signer
		ok     bool
	}{
		"plain":                  {string(ed.jwk()), ed, true},
		"without alg":            {change(ed, "alg", nil), ed, true},
		"without use":            {change(ed, "use", nil), ed, true},
		"for encryption":         {change(ed, "use", "enc"), ed, false},
		"for another algorithm":  {change(ed, "alg", "ES256"), ed, false},
		"RSA":                    {change(rs, "alg", nil), rs, true},
		"RSA for RSA-OAEP":       {change(rs, "alg", "RSA-OAEP"), rs, false},
		"RSA of 1024 bits":       {string(newRSA("r", smallRSA()).jwk()), newRSA("r", smallRSA()), false},
		"a secret":               {oct, signer{"HS256", "d", nil, newHMAC([]byte(secret)).sign}, false},
		"a secret called RS256":  {strings.Replace(oct, "HS256", "RS256", 1), ed, false},
		"private half published": {change(ed, "d", encode(strings.Repeat("x", 32))), ed, false},
		"unknown type":           {`{"kty":"PQ","kid":"d"}`, ed, false},
		"no key at all":          {`7`, ed, false},
	} {
		p := newIDP(t)
		// beside a key of another kind, so that the set as a whole is of use
		p.publishRaw(string(newEC("e").jwk()), tc.member)
		v := verifier(t, bearer.Options{JWKS: p.URL})
		if _, err := v.Verify(t.Context(), tc.s.token(good), nil); (err == nil) != tc.ok || err != nil && errors.Is(err, bearer.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
		p.publishRaw(tc.member)
		if _, err := verifier(t, bearer.Options{JWKS: p.URL}).Verify(t.Context(), ed.token(good), nil); !tc.ok && !errors.Is(err, bearer.ErrUnavailable) {
			t.Errorf("%s alone: %v", name, err)
		}
	}
}

// Each algorithm of a key verifies, and a key that names one verifies no other.
func TestAlgorithms(t *testing.T) {
	rsaOf := func(alg string, hash crypto.Hash) signer {
		return signer{alg, "r", &rsaKey().PublicKey, func(m []byte) []byte {
			h := hash.New()
			h.Write(m)
			if strings.HasPrefix(alg, "PS") {
				return must(rsa.SignPSS(rand.Reader, rsaKey(), hash, h.Sum(nil), &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}))
			}
			return must(rsa.SignPKCS1v15(nil, rsaKey(), hash, h.Sum(nil)))
		}}
	}
	ecOf := func(alg string, curve elliptic.Curve, hash crypto.Hash) signer {
		private := must(ecdsa.GenerateKey(curve, rand.Reader))
		size := (curve.Params().BitSize + 7) / 8
		return signer{alg, "e", &private.PublicKey, func(m []byte) []byte {
			h := hash.New()
			h.Write(m)
			r, s, err := ecdsa.Sign(rand.Reader, private, h.Sum(nil))
			must(r, err)
			return append(r.FillBytes(make([]byte, size)), s.FillBytes(make([]byte, size))...)
		}}
	}
	for _, s := range []signer{
		rsaOf("RS256", crypto.SHA256), rsaOf("RS384", crypto.SHA384), rsaOf("RS512", crypto.SHA512), rsaOf("PS256", crypto.SHA256), rsaOf("PS384", crypto.SHA384), rsaOf("PS512", crypto.SHA512),
		ecOf("ES256", elliptic.P256(), crypto.SHA256), ecOf("ES384", elliptic.P384(), crypto.SHA384), ecOf("ES512", elliptic.P521(), crypto.SHA512), newEd("d"),
	} {
		named := newIDP(t, s)
		bare := newIDP(t)
		bare.publishRaw(string(must(json.Marshal(jose.JSONWebKey{Key: s.public, KeyID: s.kid}))))
		for _, p := range []*idp{named, bare} {
			if _, err := verifier(t, bearer.Options{JWKS: p.URL}).Verify(t.Context(), s.token(good), nil); err != nil {
				t.Errorf("%s: %v", s.alg, err)
			}
		}
		other := rsaOf("PS512", crypto.SHA512)
		if s.alg == "PS512" {
			other = rsaOf("PS384", crypto.SHA384)
		}
		other.kid = s.kid
		if _, err := verifier(t, bearer.Options{JWKS: named.URL}).Verify(t.Context(), other.token(good), nil); !errors.Is(err, bearer.ErrUnknownKey) {
			t.Errorf("%s by a key for %s: %v", other.alg, s.alg, err)
		}
	}
}

// A key that is published under the id of an old one is fetched when a signature does not fit, at most twice a
// minute, and no token of the old key waits for it.
func TestNewKeyUnderAnOldID(t *testing.T) {
	old, fresh, clock := newEd("1"), newEd("1"), new(hand)
	p := newIDP(t, old)
	v := verifier(t, bearer.Options{JWKS: p.URL, Now: clock.time})
	verify := func(s signer, claims string) error {
		_, err := v.Verify(t.Context(), s.token(claims), nil)
		return err
	}
	if err := verify(old, good); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if err := verify(fresh, good); err != bearer.ErrSignature {
			t.Fatalf("it is not published: %v", err)
		}
	}
	if n := p.fetches.Load(); n != 1 {
		t.Errorf("%d fetches for forged tokens", n)
	}
	p.publish(fresh)
	clock.advance(30 * time.Second)
	if err := verify(fresh, good); err != nil {
		t.Errorf("half a minute later: %v", err)
	}
	if err := verify(old, `{"sub":"u7"}`); err != bearer.ErrSignature {
		t.Errorf("the old key: %v", err)
	}
	asked, open := make(chan struct{}, 1), make(chan struct{})
	p.set(func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		<-open
		w.WriteHeader(http.StatusBadGateway)
	})
	clock.advance(30 * time.Second)
	forged := make(chan error)
	go func() { forged <- verify(old, `{"sub":"u8"}`) }()
	<-asked
	if err := verify(fresh, `{"sub":"u9"}`); err != nil {
		t.Errorf("a token of the key while a forged one waits: %v", err)
	}
	close(open)
	if err := <-forged; err != bearer.ErrSignature {
		t.Errorf("the set could not be fetched: %v", err)
	}
}

// A key that was withdrawn counts for five minutes at most while the set can be fetched, and for a day if not.
func TestWithdrawnKeyIsForgotten(t *testing.T) {
	withdrawn, stays, clock := newEd("1"), newEC("2"), new(hand)
	p := newIDP(t, withdrawn, stays)
	v := verifier(t, bearer.Options{JWKS: p.URL, Now: clock.time})
	const claims = `{"sub":"u42"}`
	verify := func(s signer) error {
		_, err := v.Verify(t.Context(), s.token(claims), nil)
		return err
	}
	if err := verify(withdrawn); err != nil {
		t.Fatal(err)
	}
	fetched := make(chan struct{})
	p.set(func(w http.ResponseWriter, _ *http.Request) {
		defer close(fetched)
		w.WriteHeader(http.StatusBadGateway)
	})
	clock.advance(5 * time.Minute)
	if err := verify(withdrawn); err != nil {
		t.Errorf("the fetch goes on behind it: %v", err)
	}
	<-fetched
	clock.advance(24*time.Hour - 5*time.Minute - 1)
	p.break_()
	if err := verify(withdrawn); err != nil {
		t.Errorf("within a day: %v", err)
	}
	p.publish(stays)
	err := verify(stays)
	for clock.advance(1); errors.Is(err, bearer.ErrUnavailable) || err == nil && p.fetches.Load() < 4; err = verify(stays) {
		clock.advance(10 * time.Second) // a fetch that has failed may still be under way
	}
	if err != nil {
		t.Errorf("the set is back: %v", err)
	}
	if err := verify(withdrawn); err != bearer.ErrUnknownKey {
		t.Errorf("after a day: %v", err)
	}
}

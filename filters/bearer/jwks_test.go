package bearer_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

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
		"RSA for PS256":          {change(rs, "alg", "PS256"), rs, false},
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

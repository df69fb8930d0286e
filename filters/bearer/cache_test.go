package bearer_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockgate/stockgate/filters/bearer"
)

// However many tokens come, the bound holds, and who comes often is remembered.
func TestCacheIsBounded(t *testing.T) {
	const bytes = 64 << 10
	c := bearer.NewCache(bytes)
	often := sha256.Sum256([]byte("often"))
	c.Put(often, 100)
	most := 0
	for i := range 10_000 {
		c.Put(sha256.Sum256(fmt.Append(nil, i)), 300+i%1000)
		if most = max(most, c.Bytes()); most > bytes {
			t.Fatalf("%d bytes after %d tokens, the bound is %d", most, i+1, bytes)
		}
		if !c.Has(often) {
			t.Fatalf("who came every time is forgotten after %d tokens", i+1)
		}
	}
	if most < bytes/2 {
		t.Errorf("never more than %d of %d bytes", most, bytes)
	}
	if c.Has(sha256.Sum256(fmt.Append(nil, 0))) {
		t.Error("the first of ten thousand is still there")
	}
	huge := sha256.Sum256([]byte("huge"))
	if c.Put(huge, bytes); c.Has(huge) || !c.Has(often) {
		t.Error("one token takes the place of all")
	}
	for range 3 {
		c.Put(often, 100)
	}
	if got := c.Bytes(); got > bytes {
		t.Errorf("the same token again: %d bytes", got)
	}
}

// What is not genuine leaves nothing behind.
func TestHostileTokensAreNotRemembered(t *testing.T) {
	ed := newEd("d")
	v := verifier(t, bearer.Options{PublicKey: ed.pem(), Audience: "shop"})
	token := ed.token(good)
	for i := range 100 {
		forged := fmt.Sprintf(`{"alg":"EdDSA","n":%d}`, i)
		for _, bad := range []string{
			strings.Replace(token, ".", fmt.Sprintf("%d.", i), 1), newEd("d").raw(forged, good),
			newEd("d").raw(forged, `{"aud":"elsewhere"}`), newEd("d").raw(forged, `{"aud":"shop","exp":1}`),
		} {
			if _, err := v.Verify(t.Context(), bad, nil); err == nil {
				t.Fatalf("accepted %s", bad)
			}
		}
	}
	if n := v.Remembered(); n != 0 {
		t.Errorf("%d bytes are remembered", n)
	}
	if _, err := v.Verify(t.Context(), token, nil); err != nil || v.Remembered() == 0 {
		t.Errorf("a good one: %v, %d bytes", err, v.Remembered())
	}
}

// count is a limit that refuses after so many failures.
type count struct{ asked, failed, most int }

var errLimit = errors.New("too many")

func (c *count) Allow() error {
	c.asked++
	if c.failed == c.most {
		return errLimit
	}
	return nil
}

func (c *count) Failed() { c.failed++ }

// A genuine token that is not accepted costs one signature, however often it comes; only
// tokens that are not genuine count as failures, and a limit keeps them from being verified.
func TestLimit(t *testing.T) {
	ed, clock := newEd("d"), new(hand)
	v := verifier(t, bearer.Options{PublicKey: ed.pem(), Audience: "shop", Now: clock.time})
	l := &count{most: 3}
	check := func(token string, want error, asked, failed int) {
		t.Helper()
		if _, err := v.Verify(t.Context(), token, l); err != want || l.asked != asked || l.failed != failed {
			t.Errorf("%v, asked %d times for %d failures; want %v, %d, %d", err, l.asked, l.failed, want, asked, failed)
		}
	}
	expired, elsewhere := ed.token(`{"aud":"shop","exp":1}`), ed.token(`{"aud":"elsewhere"}`)
	odd, early := ed.token(`{"aud":7}`), ed.token(`{"aud":"shop","nbf":1790000001}`)
	for range 5 {
		check(expired, bearer.ErrExpired, 1, 0)
	}
	for range 5 {
		check(elsewhere, bearer.ErrAudience, 2, 0)
	}
	for range 5 {
		check(odd, bearer.ErrMalformed, 3, 0)
	}
	check(early, bearer.ErrNotYet, 4, 0)
	clock.advance(time.Second)
	check(early, nil, 4, 0)
	check("null", bearer.ErrMalformed, 4, 0)
	check(newEd("d").token(good), bearer.ErrSignature, 5, 1)
	check(ed.raw(`{"alg":"none"}`, good), bearer.ErrAlgorithm, 6, 2)
	check("a.b.c", bearer.ErrMalformed, 7, 3)
	check(newEd("d").token(good), errLimit, 8, 3)
	check(ed.token(good), errLimit, 9, 3)
	check(early, nil, 9, 3)
}

func TestManyAtATime(t *testing.T) {
	ed := newEd("d")
	v := verifier(t, bearer.Options{PublicKey: ed.pem(), CacheBytes: 4 << 10})
	var crowd sync.WaitGroup
	for i := range 16 {
		crowd.Go(func() {
			for j := range 20 {
				claims := fmt.Sprintf(`{"sub":"u%d"}`, (i+j)%10)
				if got, err := v.Verify(t.Context(), ed.token(claims), nil); err != nil || string(got) != claims {
					t.Errorf("%s %v, want %s", got, err, claims)
				}
			}
		})
	}
	crowd.Wait()
}

func BenchmarkVerify(b *testing.B) {
	for _, s := range []signer{newRSA("k", rsaKey()), newEC("k"), newEd("k")} {
		v := verifier(b, bearer.Options{JWKS: newIDP(b, s).URL})
		tokens := make([]string, 512)
		for i := range tokens {
			tokens[i] = s.token(fmt.Sprintf(`{"iss":"https://id.example.com","aud":"shop","sub":"u%d","exp":1790000060,"scope":"openid profile orders"}`, i))
		}
		b.Run(s.alg+" first", func(b *testing.B) {
			small := verifier(b, bearer.Options{JWKS: newIDP(b, s).URL, CacheBytes: 1})
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := small.Verify(b.Context(), tokens[i%len(tokens)], nil); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(s.alg+" again", func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := v.Verify(b.Context(), tokens[i%len(tokens)], nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkForged is a forged token, before and after its address is over the limit.
func BenchmarkForged(b *testing.B) {
	for _, s := range []signer{newRSA("k", rsaKey()), newEC("k"), newEd("k")} {
		v := verifier(b, bearer.Options{JWKS: newIDP(b, s).URL})
		message, _, _ := strings.Cut(s.token(good), ".")
		_, signature, _ := strings.Cut(strings.TrimPrefix(s.token(good), message+"."), ".")
		forged := message + "." + encode(`{"iss":"https://id.example.com","aud":"shop","sub":"u7","exp":1790000060}`) + "." + signature
		for name, limit := range map[string]*count{"verified": {most: -1}, "limited": {}} {
			b.Run(s.alg+" "+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := v.Verify(b.Context(), forged, limit); err == nil {
						b.Fatal("accepted")
					}
				}
			})
		}
	}
}

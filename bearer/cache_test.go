package bearer_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stockgate/stockgate/bearer"
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
			ed.raw(forged, `{"aud":"elsewhere"}`), ed.raw(forged, `{"aud":"shop","exp":1}`), ed.raw(forged, `{"aud":"shop","nbf":1900000000}`),
		} {
			if _, err := v.Verify(t.Context(), bad); err == nil {
				t.Fatalf("accepted %s", bad)
			}
		}
	}
	if n := v.Remembered(); n != 0 {
		t.Errorf("%d bytes are remembered", n)
	}
	if _, err := v.Verify(t.Context(), token); err != nil || v.Remembered() == 0 {
		t.Errorf("a good one: %v, %d bytes", err, v.Remembered())
	}
}

func TestManyAtATime(t *testing.T) {
	ed := newEd("d")
	v := verifier(t, bearer.Options{PublicKey: ed.pem(), CacheBytes: 4 << 10})
	var crowd sync.WaitGroup
	for i := range 16 {
		crowd.Go(func() {
			for j := range 20 {
				claims := fmt.Sprintf(`{"sub":"u%d"}`, (i+j)%10)
				if got, err := v.Verify(t.Context(), ed.token(claims)); err != nil || string(got) != claims {
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
				if _, err := small.Verify(b.Context(), tokens[i%len(tokens)]); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(s.alg+" again", func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := v.Verify(b.Context(), tokens[i%len(tokens)]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

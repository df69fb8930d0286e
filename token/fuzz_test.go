package token_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/token"
)

// FuzzVerify: whatever arrives, nothing but a token that was signed passes.
func FuzzVerify(f *testing.F) {
	key := mustKey(f, token.KindEd25519, vectorPEM)
	good := mustSign(f, key, claims())
	withSecret := mustSign(f, mustKey(f, token.KindHMAC, secret), claims())
	for _, seed := range []string{"", "..", good, withSecret, good[1:], good + "A", strings.ToUpper(good),
		encode(`{"alg":"none","typ":"stockgate+jwt","kid":""}`) + "." + strings.Split(good, ".")[1] + ".",
		encode(strings.Repeat(`{"a":`, 300)) + ".e30.e30",
	} {
		f.Add(seed)
	}
	v := mustVerifier(f, token.Options{Keys: []token.Key{key}, Secret: secret})
	f.Fuzz(func(t *testing.T, candidate string) {
		got, err := v.Verify(candidate, token.Expect{AnySubject: true})
		if err == nil && candidate != good && candidate != withSecret {
			t.Fatalf("accepted: %s", candidate)
		}
		if (err == nil) != (got != nil) {
			t.Fatalf("claims %v with error %v", got, err)
		}
	})
}

// FuzzClaims: claims under a good signature are read the same way twice, or refused.
func FuzzClaims(f *testing.F) {
	body := payload(f)
	for _, seed := range []string{body, "{}", "null", "[]", body + " ", strings.Replace(body, `"ep":3`, `"ep":1e309`, 1),
		strings.Replace(body, "buyer-7", `\ud800`, 1), strings.Replace(body, `"ep"`, `"ep":3,"\u0065p"`, 1),
		strings.Replace(body, `"ep":3`, `"ep":3,"x":`+strings.Repeat("[", 1000), 1),
	} {
		f.Add(seed)
	}
	key := mustKey(f, token.KindHMAC, secret)
	header := `{"alg":"HS256","kid":"` + key.KID() + `","typ":"stockgate+jwt"}`
	s, v := mustSigner(f, key), mustVerifier(f, token.Options{Secret: secret, Now: at(0, 0)})
	f.Fuzz(func(t *testing.T, body string) {
		got, err := v.Verify(rawHMAC([]byte(secret), header, body), token.Expect{AnySubject: true})
		if err != nil {
			return
		}
		signed, err := s.Sign(*got)
		if err != nil {
			// Escapes and spaces may be shorter than what they stand for.
			return
		}
		again, err := v.Verify(signed, token.Expect{Subject: got.Subject, Lines: got.Lines})
		if err != nil || !reflect.DeepEqual(got, again) {
			t.Fatalf("%s\nread as     %+v\nand then as %+v (%v)", body, got, again, err)
		}
	})
}

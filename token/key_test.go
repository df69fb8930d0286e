package token_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/token"
)

// RFC 8037, appendix A.3.
func TestThumbprintVector(t *testing.T) {
	if kid := mustKey(t, token.KindEd25519, vectorPEM).KID(); kid != vectorKID {
		t.Errorf("kid %s, want %s", kid, vectorKID)
	}
}

// RFC 8037, appendix A.2.
func TestPublicJWKVector(t *testing.T) {
	raw, ok := mustKey(t, token.KindEd25519, vectorPEM).PublicJWK()
	if !ok {
		t.Fatal("no public key")
	}
	var got map[string]string
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
		"kid": vectorKID, "alg": "EdDSA", "use": "sig",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestGeneratedKeyComesBackFromItsPEM(t *testing.T) {
	key, text, err := token.GenerateEd25519()
	if err != nil {
		t.Fatal(err)
	}
	again := mustKey(t, token.KindEd25519, string(text))
	if again.KID() != key.KID() || !bytes.Equal(again.Derive("x"), key.Derive("x")) {
		t.Error("the key read from the PEM is another one")
	}
	other, _, err := token.GenerateEd25519()
	if err != nil {
		t.Fatal(err)
	}
	if other.KID() == key.KID() {
		t.Error("two generated keys are equal")
	}
}

func TestParseKeyRefuses(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(ec)
	if err != nil {
		t.Fatal(err)
	}
	ecPEM := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	for _, c := range []struct{ name, kind, material, says string }{
		{"kind", "rsa", "", "use ed25519 or hmac"},
		{"no PEM", token.KindEd25519, "hello", "-----BEGIN PRIVATE KEY-----"},
		{"two keys", token.KindEd25519, vectorPEM + vectorPEM, "more than one"},
		{"text behind", token.KindEd25519, vectorPEM + "x", "more than one"},
		{"public key", token.KindEd25519, string(publicPEM(t, publicKey(t))), "PUBLIC KEY"},
		{"other curve", token.KindEd25519, ecPEM, "ed25519 key is needed"},
		{"broken DER", token.KindEd25519, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "asn1"},
		{"short secret", token.KindHMAC, secret[1:], "31 bytes, it needs at least 32"},
		{"empty secret", token.KindHMAC, "", "0 bytes"},
		{"line end", token.KindHMAC, secret + "\n", "white space"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := token.ParseKey(c.kind, c.material)
			if !errors.Is(err, token.ErrKey) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want one that says %q", err, c.says)
			}
		})
	}
}

func TestHMACKeyHasNoPublicHalf(t *testing.T) {
	if raw, ok := mustKey(t, token.KindHMAC, secret).PublicJWK(); ok || raw != nil {
		t.Errorf("published %s", raw)
	}
	if raw, ok := (token.Key{}).PublicJWK(); ok || raw != nil {
		t.Errorf("published %s", raw)
	}
}

func TestDerive(t *testing.T) {
	ed, mac := mustKey(t, token.KindEd25519, vectorPEM), mustKey(t, token.KindHMAC, secret)
	seen := map[string]string{}
	for name, derived := range map[string][]byte{
		"ed a": ed.Derive("a"), "ed b": ed.Derive("b"), "ed": ed.Derive(""),
		"mac a": mac.Derive("a"), "mac b": mac.Derive("b"), "mac": mac.Derive(""),
	} {
		if len(derived) != 32 {
			t.Errorf("%s: %d bytes", name, len(derived))
		}
		if twin := seen[string(derived)]; twin != "" {
			t.Errorf("%s and %s are equal", name, twin)
		}
		seen[string(derived)] = name
	}
	// What is stored under a derived key must open again after an upgrade.
	for want, got := range map[string][]byte{
		"97222e6b8ca9cff490f2d887ef8fa6cbe7c20f032112ff1fe6808496e23d4e38": ed.Derive("identities"),
		"d338ef94091973c92fb22f96ee59ff7e78fd51d332f394e8fa19c06008305e46": mac.Derive("identities"),
	} {
		if hex.EncodeToString(got) != want {
			t.Errorf("derived %x, want %s", got, want)
		}
	}
}

func TestKeyDoesNotPrintItself(t *testing.T) {
	block, _ := pem.Decode([]byte(vectorPEM))
	seed := block.Bytes[len(block.Bytes)-32:]
	mac := mustKey(t, token.KindHMAC, secret)
	for want, key := range map[string]any{"HS256 key " + mac.KID(): mac, "EdDSA key " + vectorKID: mustKey(t, token.KindEd25519, vectorPEM), "no key": token.Key{}} {
		asJSON, err := json.Marshal(key)
		if err != nil {
			t.Fatal(err)
		}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
			if out := fmt.Sprintf(verb, key); out != want {
				t.Errorf("%s prints %s, want %s", verb, out, want)
			}
			out := fmt.Sprintf(verb, key) + fmt.Sprintf(verb, &key) + string(asJSON)
			for _, bad := range []string{secret, hex.EncodeToString([]byte(secret)), hex.EncodeToString(seed), strings.Trim(fmt.Sprint(seed), "[]"), strings.Trim(fmt.Sprint([]byte(secret)), "[]")} {
				if strings.Contains(out, bad) {
					t.Errorf("%s prints the secret: %s", verb, out)
				}
			}
		}
	}
}

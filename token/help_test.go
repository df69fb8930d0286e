package token_test

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/token"
)

const (
	audience = "order-backend"
	secret   = "0123456789abcdef0123456789abcdef"
	issued   = 1_790_000_000
	expires  = issued + 25
)

// vectorPEM is the private key of RFC 8037, appendix A, in PKCS #8.
const vectorPEM = `-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g
-----END PRIVATE KEY-----
`

const vectorKID = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"

func claims() token.Claims {
	return token.Claims{
		Subject:   "buyer-7",
		ID:        "019a7d3e-5b1c-7f6e-9d5a-3f0d6f6b2c11",
		IssuedAt:  issued,
		ExpiresAt: expires,
		Epoch:     3,
		Sale:      "double11",
		Ref:       "cart-9",
		Lines: []token.Line{
			{SKU: "20002001", Quantity: 2},
			{SKU: "20002002", Quantity: 1, Region: "beijing"},
		},
	}
}

func at(unix int64, nanos int64) func() time.Time {
	return func() time.Time { return time.Unix(unix, nanos) }
}

func mustKey(t testing.TB, kind, material string) token.Key {
	t.Helper()
	key, err := token.ParseKey(kind, material)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func mustSigner(t testing.TB, key token.Key) *token.Signer {
	t.Helper()
	s, err := token.NewSigner("", audience, key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustSign(t testing.TB, key token.Key, c token.Claims) string {
	t.Helper()
	signed, err := mustSigner(t, key).Sign(c)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func mustVerifier(t testing.TB, o token.Options) *token.Verifier {
	t.Helper()
	if o.Audience == "" {
		o.Audience = audience
	}
	if o.Now == nil {
		o.Now = at(issued+1, 0)
	}
	v, err := token.NewVerifier(o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// rawEd25519 signs any header and claims with the key of vectorPEM, right or not.
func rawEd25519(t testing.TB, header, claims string) string {
	t.Helper()
	block, _ := pem.Decode([]byte(vectorPEM))
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	message := encode(header) + "." + encode(claims)
	return message + "." + encode(string(ed25519.Sign(parsed.(ed25519.PrivateKey), []byte(message))))
}

// rawHMAC does the same with a MAC under any key.
func rawHMAC(key []byte, header, claims string) string {
	message := encode(header) + "." + encode(claims)
	h := hmac.New(sha256.New, key)
	h.Write([]byte(message))
	return message + "." + encode(string(h.Sum(nil)))
}

func encode(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

func decode(t testing.TB, s string) string {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// payload is the claims of a good token, for tests that spoil them.
func payload(t testing.TB) string {
	t.Helper()
	return decode(t, strings.Split(mustSign(t, mustKey(t, token.KindEd25519, vectorPEM), claims()), ".")[1])
}

const goodHeader = `{"alg":"EdDSA","kid":"` + vectorKID + `","typ":"stockgate+jwt"}`

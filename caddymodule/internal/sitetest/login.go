package sitetest

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// B64 is the encoding of the parts of a token.
var B64 = base64.RawURLEncoding

// Login is the shop's authentication: it signs tokens, and publishes its key.
type Login struct {
	*Backend
	private ed25519.PrivateKey
	Down    atomic.Bool
}

// NewLogin starts a login with a new key.
func NewLogin(t *testing.T) *Login {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	l := &Login{private: private}
	l.Backend = NewBackend(t, func(w http.ResponseWriter, _ *http.Request) {
		if l.Down.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		fmt.Fprintf(w, `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k1","use":"sig","x":%q}]}`, B64.EncodeToString(l.Public()))
	})
	return l
}

// Public is its key.
func (l *Login) Public() ed25519.PublicKey { return l.private.Public().(ed25519.PublicKey) }

// KeysURL is where it publishes its key.
func (l *Login) KeysURL() string { return l.URL + "/jwks.json" }

// Sign signs claims.
func (l *Login) Sign(claims string) string {
	message := B64.EncodeToString([]byte(`{"alg":"EdDSA","kid":"k1","typ":"JWT"}`)) + "." + B64.EncodeToString([]byte(claims))
	return message + "." + B64.EncodeToString(ed25519.Sign(l.private, []byte(message)))
}

// TokenOf is a token of a buyer that ends so far from now.
func (l *Login) TokenOf(buyer string, ends time.Duration) string {
	return l.Sign(fmt.Sprintf(`{"iss":"login","aud":["shop"],"sub":%q,"exp":%d,"contact":{"phone":13800000000}}`, buyer, time.Now().Add(ends).Unix()))
}

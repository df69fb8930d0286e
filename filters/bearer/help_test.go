package bearer_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/stockgate/stockgate/filters/bearer"
)

const (
	start  = 1_790_000_000
	secret = "0123456789abcdef0123456789abcdef"
)

// good are the claims of a token that is valid at start.
const good = `{"iss":"https://id.example.com","aud":"shop","sub":"u42","exp":1790000060}`

// signer signs as the shop's authentication does, whatever it is given.
type signer struct {
	alg    string
	kid    string
	public any // nil: a secret
	sign   func(message []byte) []byte
}

// Keys take long to make, so each kind is made once.
var (
	rsaKey   = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	smallRSA = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 1024)) })
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func newRSA(kid string, private *rsa.PrivateKey) signer {
	return signer{"RS256", kid, &private.PublicKey, func(m []byte) []byte {
		sum := sha256.Sum256(m)
		return must(rsa.SignPKCS1v15(nil, private, crypto.SHA256, sum[:]))
	}}
}

func newEC(kid string) signer {
	private := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	return signer{"ES256", kid, &private.PublicKey, func(m []byte) []byte {
		sum := sha256.Sum256(m)
		r, s, err := ecdsa.Sign(rand.Reader, private, sum[:])
		must(r, err)
		return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	}}
}

func newEd(kid string) signer {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	must(public, err)
	return signer{"EdDSA", kid, public, func(m []byte) []byte { return ed25519.Sign(private, m) }}
}

func newHMAC(key []byte) signer {
	return signer{"HS256", "", nil, func(m []byte) []byte {
		h := hmac.New(sha256.New, key)
		h.Write(m)
		return h.Sum(nil)
	}}
}

// header is what a token of the signer says by default.
func (s signer) header() string {
	if s.kid == "" {
		return fmt.Sprintf(`{"alg":%q,"typ":"JWT"}`, s.alg)
	}
	return fmt.Sprintf(`{"alg":%q,"kid":%q,"typ":"JWT"}`, s.alg, s.kid)
}

func (s signer) token(claims string) string { return s.raw(s.header(), claims) }

// raw signs any header and claims.
func (s signer) raw(header, claims string) string {
	message := encode(header) + "." + encode(claims)
	return message + "." + encode(string(s.sign([]byte(message))))
}

func (s signer) jwk() json.RawMessage {
	return must(json.Marshal(jose.JSONWebKey{Key: s.public, KeyID: s.kid, Use: "sig", Algorithm: s.alg}))
}

func (s signer) pem() string {
	der := must(x509.MarshalPKIXPublicKey(s.public))
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func encode(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

// idp publishes a key set that tests change.
type idp struct {
	*httptest.Server
	fetches atomic.Int64
	mu      sync.Mutex
	answer  http.HandlerFunc
}

func newIDP(t testing.TB, keys ...signer) *idp {
	p := new(idp)
	p.publish(keys...)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.fetches.Add(1)
		p.mu.Lock()
		answer := p.answer
		p.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *idp) set(answer http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = answer
}

func (p *idp) publish(keys ...signer) {
	var members []string
	for _, k := range keys {
		members = append(members, string(k.jwk()))
	}
	p.publishRaw(members...)
}

func (p *idp) publishRaw(members ...string) {
	set := `{"keys":[` + strings.Join(members, ",") + `]}`
	p.set(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(set)) })
}

func (p *idp) break_() {
	p.set(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
}

// hand is a clock that tests move.
type hand struct{ after atomic.Int64 }

func (h *hand) time() time.Time         { return time.Unix(start, h.after.Load()) }
func (h *hand) advance(d time.Duration) { h.after.Add(int64(d)) }

func verifier(t testing.TB, o bearer.Options) *bearer.Verifier {
	t.Helper()
	if o.Now == nil {
		o.Now = new(hand).time
	}
	v, err := bearer.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

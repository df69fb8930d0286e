package bearer

import (
	"bytes"
	"cmp"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/stockgate/stockgate/internal/jwks"
)

// key verifies signatures, with one algorithm and no other.
type key struct {
	alg    jose.SignatureAlgorithm
	public any
	// print is the key's SHA-256 thumbprint (RFC 7638): the same key has the same
	// one after every fetch.
	print string
}

// keyring finds keys.
type keyring interface {
	// accepts tells whether any key can have that algorithm.
	accepts(jose.SignatureAlgorithm) bool
	// find finds the key for a token, other than not, which did not fit. Its errors are
	// those of jwks.
	find(ctx context.Context, h header, not *key) (*key, error)
	// still reports whether a key that was found before still counts.
	still(context.Context, *key) bool
}

// newKeyring reads the keys of the options.
func newKeyring(o Options) (keyring, error) {
	given := 0
	for _, one := range []string{o.JWKS, o.Secret, o.PublicKey} {
		if one != "" {
			given++
		}
	}
	if given != 1 {
		return nil, errors.New("give either the URL of a JWKS, a secret or a public key")
	}
	switch {
	case o.Secret != "":
		return newSecret(o.Secret)
	case o.PublicKey != "":
		return newPublicKey(o.PublicKey)
	}
	set, err := jwks.New(jwks.Options{
		URL: o.JWKS, Client: o.Client, Timeout: o.Timeout, MinInterval: o.MinInterval, MaxAge: cmp.Or(o.MaxAge, maxAge), MaxStale: maxStale,
		Failed: o.Failed, Now: o.Now,
	}, parseSet)
	if err != nil {
		return nil, err
	}
	return published{set}, nil
}

// configured is one key from the configuration. The kid that the shop gives it does not matter.
type configured struct{ key *key }

func (o configured) accepts(alg jose.SignatureAlgorithm) bool { return alg == o.key.alg }
func (o configured) still(context.Context, *key) bool         { return true }

func (o configured) find(_ context.Context, _ header, not *key) (*key, error) {
	if not != nil {
		return nil, jwks.ErrMissing
	}
	return o.key, nil
}

func newSecret(secret string) (keyring, error) {
	switch {
	case strings.TrimSpace(secret) != secret:
		return nil, errors.New("the hmac secret begins or ends with white space: remove it (often the line end of a file)")
	case len(secret) < sha256.Size:
		return nil, fmt.Errorf("the hmac secret has %d bytes, it needs at least %d: a shorter one can be guessed", len(secret), sha256.Size)
	case strings.HasPrefix(secret, "-----BEGIN"):
		// A public key is no secret: any client could sign with it.
		return nil, errors.New("the hmac secret is a PEM block: for a public key write ed25519, or the URL of a JWKS")
	}
	return configured{&key{alg: jose.HS256, public: []byte(secret)}}, nil
}

func newPublicKey(text string) (keyring, error) {
	block, rest := pem.Decode([]byte(text))
	switch {
	case block == nil:
		return nil, errors.New("no PEM block in the ed25519 key: it begins with -----BEGIN PUBLIC KEY-----")
	case len(bytes.TrimSpace(rest)) > 0:
		return nil, errors.New("more than one PEM block in the ed25519 key")
	case strings.HasSuffix(block.Type, "PRIVATE KEY"):
		return nil, errors.New("the ed25519 key is a private one, which only the shop should have: write its public half (openssl pkey -pubout)")
	case block.Type != "PUBLIC KEY":
		return nil, fmt.Errorf("the PEM block is %q, not PUBLIC KEY", block.Type)
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the ed25519 key cannot be read: %w", err)
	}
	public, ok := parsed.(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("%T where an ed25519 key is needed: publish other keys as a JWKS", parsed)
	}
	return configured{&key{alg: jose.EdDSA, public: public}}, nil
}

const (
	// maxAge is how long a key that was withdrawn may count while tokens come.
	maxAge = 5 * time.Minute
	// maxStale is how long it may if the set cannot be fetched.
	maxStale = 24 * time.Hour
)

// published is a key set that is fetched.
type published struct{ set *jwks.Remote[*keySet] }

func (p published) accepts(alg jose.SignatureAlgorithm) bool {
	return alg == jose.EdDSA || slices.Contains(ofRSA, alg) || slices.Contains(slices.Collect(maps.Values(ofCurve)), alg)
}

// ofRSA are the algorithms of an RSA key that names none, ofCurve has the one of each elliptic curve (RFC 7518,
// section 3.1).
var (
	ofRSA   = []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512}
	ofCurve = map[elliptic.Curve]jose.SignatureAlgorithm{elliptic.P256(): jose.ES256, elliptic.P384(): jose.ES384, elliptic.P521(): jose.ES512}
)

func (p published) find(ctx context.Context, h header, not *key) (*key, error) {
	var found *key
	look := p.set.Find
	if not != nil && h.kid != "" { // a new key under an old id, or a forged token
		look = p.set.FindNewer
	}
	_, err := look(ctx, func(s *keySet) bool {
		found = s.find(h)
		return found != nil && (not == nil || found.print != not.print)
	})
	return found, err
}

func (p published) still(ctx context.Context, k *key) bool {
	_, err := p.set.Find(ctx, func(s *keySet) bool { return s.prints[k.print] })
	return err == nil
}

// keySet is one state of a JWKS.
type keySet struct {
	byID   map[header]*key
	byAlg  map[jose.SignatureAlgorithm][]*key
	prints map[string]bool
}

// find finds the key that a token names, or the only one of its algorithm for a
// token that names none.
func (s *keySet) find(h header) *key {
	if h.kid != "" {
		return s.byID[h]
	}
	if only := s.byAlg[h.alg]; len(only) == 1 {
		return only[0]
	}
	return nil
}

// parseSet reads the keys that can verify a token. Others are passed over (RFC
// 7517, section 5); a set without any is an error. Of two keys with one id and
// algorithm the first counts.
func parseSet(raw []byte) (*keySet, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(raw, &set); err != nil {
		return nil, fmt.Errorf("not a JWKS: %w", err)
	}
	out := &keySet{byID: make(map[header]*key), byAlg: make(map[jose.SignatureAlgorithm][]*key), prints: make(map[string]bool)}
	for _, member := range set.Keys {
		keys, kid := parseKey(member)
		for _, k := range keys {
			if id := (header{k.alg, kid}); kid != "" && out.byID[id] == nil {
				out.byID[id] = k
			}
			if !slices.ContainsFunc(out.byAlg[k.alg], func(other *key) bool { return other.print == k.print }) {
				out.byAlg[k.alg] = append(out.byAlg[k.alg], k)
			}
			out.prints[k.print] = true
		}
	}
	if len(out.prints) == 0 {
		return nil, fmt.Errorf("none of the %d keys can verify a token: there are RSA (of 2048 bits), P-256, P-384, P-521 and Ed25519 signing keys", len(set.Keys))
	}
	return out, nil
}

// parseKey reads one public signing key, once for each algorithm that it may verify: its own, or all that its
// type has.
func parseKey(raw []byte) (keys []*key, kid string) {
	var j jose.JSONWebKey
	if j.UnmarshalJSON(raw) != nil || !j.IsPublic() || !j.Valid() || j.Use != "" && j.Use != "sig" || len(j.KeyID) > maxKid {
		return nil, ""
	}
	var algorithms []jose.SignatureAlgorithm
	switch public := j.Key.(type) {
	case *rsa.PublicKey:
		if bits := public.N.BitLen(); bits >= 2048 && bits <= 8192 {
			algorithms = ofRSA
		}
	case *ecdsa.PublicKey:
		if alg := ofCurve[public.Curve]; alg != "" {
			algorithms = []jose.SignatureAlgorithm{alg}
		}
	case ed25519.PublicKey:
		algorithms = []jose.SignatureAlgorithm{jose.EdDSA}
	} // a secret above all has none
	print, err := j.Thumbprint(crypto.SHA256)
	if err != nil {
		return nil, ""
	}
	for _, alg := range algorithms {
		if j.Algorithm == "" || j.Algorithm == string(alg) {
			keys = append(keys, &key{alg: alg, public: j.Key, print: string(print)})
		}
	}
	return keys, j.KeyID
}

package bearer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/stockgate/stockgate/internal/jwks"
)

// MaxSize is how long a token may be, in bytes. Caddy takes 16 KiB of headers
// by default.
const MaxSize = 8 << 10

// MaxLeeway bounds Options.Leeway: clocks that are further apart are broken.
const MaxLeeway = time.Minute

// defaultCache holds some ten thousand tokens of a usual size.
const defaultCache = 16 << 20

// Options says which tokens a Verifier accepts. Exactly one of JWKS, Secret and
// PublicKey is required.
type Options struct {
	// JWKS is the URL of a key set, http or https. Its RSA keys (of 2048 bits at
	// least) verify RS256 to RS512 and PS256 to PS512, its P-256, P-384 and P-521 keys ES256, ES384 and
	// ES512, its Ed25519 keys EdDSA, each only the algorithm that it names, if it names one; all
	// others are passed over, secrets above all.
	JWKS string
	// Secret is a shared secret of at least 32 bytes (RFC 7518, section 3.2), byte
	// for byte, for HS256.
	Secret string
	// PublicKey is an Ed25519 public key in PEM (SubjectPublicKeyInfo), for EdDSA.
	PublicKey string
	// Issuer is what iss must be. Default: anything.
	Issuer string
	// Audience is what aud must be or contain. Default: anything.
	Audience string
	// Require are other claims that it must have, each of them. Default: none.
	Require []Claim
	// Prefix has texts that are put before the values of claims once the token is verified, by the path of
	// the claim, as in Claim.Name. Default: none.
	Prefix map[string]string
	// Leeway is how far the clocks may be apart, for exp and nbf. Default 0, at
	// most MaxLeeway.
	Leeway time.Duration
	// CacheBytes bounds the memory of verified tokens. Default 16 MiB.
	CacheBytes int

	// How the JWKS is fetched: see the fields of the same names in
	// [github.com/stockgate/stockgate/token.RemoteOptions]; MaxAge is 5 minutes by default here. A set that
	// cannot be fetched again counts for 24 hours.
	Client      *http.Client
	Timeout     time.Duration
	MinInterval time.Duration
	MaxAge      time.Duration
	// Failed is called with the reason each time a fetch of the JWKS fails.
	Failed func(error)
	// Now is the clock. Default: [time.Now].
	Now func() time.Time
}

// Verifier verifies tokens. It may be used by many goroutines at once.
type Verifier struct {
	keys     keyring
	issuer   string
	audience string
	require  []requirement
	prefix   prefixes
	leeway   time.Duration
	now      func() time.Time
	known    *cache
}

// New makes a Verifier. Nothing is fetched yet.
func New(o Options) (*Verifier, error) {
	if o.Leeway < 0 || o.Leeway > MaxLeeway {
		return nil, fmt.Errorf("leeway %v is outside 0s to %v", o.Leeway, MaxLeeway)
	}
	if o.CacheBytes < 0 {
		return nil, errors.New("the size of the cache must not be negative")
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = defaultCache
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	require, prefix, err := o.claims()
	if err != nil {
		return nil, err
	}
	keys, err := newKeyring(o)
	if err != nil {
		return nil, err
	}
	return &Verifier{
		keys: keys, issuer: o.Issuer, audience: o.Audience, require: require, prefix: prefix, leeway: o.Leeway, now: o.Now,
		known: newCache(o.CacheBytes),
	}, nil
}

// CheckClaims reports what is wrong with Require and Prefix, whatever the keys are.
func (o *Options) CheckClaims() error {
	_, _, err := o.claims()
	return err
}

func (o *Options) claims() ([]requirement, prefixes, error) {
	require, err := newRequirements(o.Require)
	if err != nil {
		return nil, nil, err
	}
	prefix, err := newPrefixes(o.Prefix)
	return require, prefix, err
}

// Brake bounds how many tokens that turn out not to be genuine one client may have
// verified: a signature costs a hundred times as much as a refusal.
type Brake interface {
	// Allow is called before a token that is not cached is verified. If it fails,
	// Verify returns its error.
	Allow() error
	// Failed counts a token that is not genuine.
	Failed()
}

// Verify returns the claims of a genuine token that is valid now: one JSON object,
// which other callers share and must not change. ctx bounds the wait when the JWKS has to
// be fetched. limit may be nil. The error is an [Invalid], that of the limit, or
// wraps [ErrUnavailable].
func (v *Verifier) Verify(ctx context.Context, token string, limit Brake) ([]byte, error) {
	return v.VerifyAt(ctx, token, limit, v.now())
}

// VerifyAt is Verify for a token that came at that time: it must have been valid then.
func (v *Verifier) VerifyAt(ctx context.Context, token string, limit Brake, at time.Time) ([]byte, error) {
	if err := checkShape(token); err != nil {
		return nil, err
	}
	return v.verify(ctx, token, sha256.Sum256([]byte(token)), limit, at)
}

// checkShape looks at what is cheap to see.
func checkShape(token string) error {
	switch {
	case len(token) > MaxSize:
		return ErrTooLong
	case strings.Count(token, ".") != 2:
		return ErrMalformed
	}
	return nil
}

// verify is VerifyAt of a token whose digest is id.
func (v *Verifier) verify(ctx context.Context, token string, id digest, limit Brake, at time.Time) ([]byte, error) {
	seen, ok := v.known.get(id)
	if !ok || !v.keys.still(ctx, seen.key) {
		key, payload, err := v.limited(ctx, token, limit)
		if err != nil {
			return nil, err
		}
		seen = v.judge(key, payload)
		v.known.put(id, seen)
	}
	if err := seen.valid(at, v.leeway); err != nil {
		return nil, err
	}
	return seen.claims, nil
}

// judge reads a genuine payload.
func (v *Verifier) judge(key *key, payload []byte) *verified {
	c, err := readClaims(payload)
	switch {
	case err != nil:
	case v.issuer != "" && c.issuer != v.issuer:
		err = ErrIssuer
	case v.audience != "" && !c.isFor(v.audience):
		err = ErrAudience
	default:
		err = v.lacking(&c)
	}
	if err == nil {
		if payload, err = v.prefix.apply(payload); err != nil {
			err = ErrMalformed
		}
	}
	if err != nil {
		return &verified{never: err, key: key}
	}
	return &verified{claims: payload, key: key, from: c.notBefore, until: c.expires}
}

// lacking says which claim a token does not have that is required.
func (v *Verifier) lacking(c *claims) error {
	for i := range v.require {
		if r := &v.require[i]; !r.holds(c.all) {
			return r.lacks
		}
	}
	return nil
}

// limited is genuine within the client's limit.
func (v *Verifier) limited(ctx context.Context, token string, limit Brake) (*key, []byte, error) {
	if limit == nil {
		return v.genuine(ctx, token)
	}
	if err := limit.Allow(); err != nil {
		return nil, nil, err
	}
	k, payload, err := v.genuine(ctx, token)
	if err != nil && !errors.Is(err, ErrUnavailable) {
		limit.Failed()
	}
	return k, payload, err
}

// genuine returns the payload of a token that one of the keys has signed.
func (v *Verifier) genuine(ctx context.Context, token string) (*key, []byte, error) {
	h, err := readHeader(token)
	if err != nil {
		return nil, nil, err
	}
	if !v.keys.accepts(h.alg) {
		return nil, nil, ErrAlgorithm
	}
	k, err := v.find(ctx, h, nil)
	if err != nil {
		return nil, nil, err
	}
	payload, err := k.open(token)
	if err == ErrSignature {
		// The set may be older than the token, whose key has the same id or none.
		newer, missing := v.find(ctx, h, k)
		if missing != nil {
			return nil, nil, err
		}
		k = newer
		payload, err = k.open(token)
	}
	return k, payload, err
}

// find finds the key that a header asks for, other than one that did not fit.
func (v *Verifier) find(ctx context.Context, h header, not *key) (*key, error) {
	k, err := v.keys.find(ctx, h, not)
	switch {
	case err == nil:
		return k, nil
	case errors.Is(err, jwks.ErrMissing):
		return nil, ErrUnknownKey
	}
	return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// open verifies a token with the key and returns its payload.
func (k *key) open(token string) ([]byte, error) {
	jws, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{k.alg})
	if err != nil {
		return nil, ErrMalformed
	}
	payload, err := jws.Verify(k.public)
	if err != nil {
		return nil, ErrSignature
	}
	return payload, nil
}

package token

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// maxLeeway bounds Options.Leeway: a value far above any margin of a hold is probably
// in the wrong unit.
const maxLeeway = time.Minute

// Options says which tokens a Verifier accepts. At least one of Keys, JWKS, Secret and
// Remote is required; several are combined.
type Options struct {
	// Keys are keys that this process holds itself.
	Keys []Key
	// JWKS is a fixed set of public keys (RFC 7517).
	JWKS []byte
	// Secret is the shared HMAC secret, as in `key hmac` of the edge.
	Secret string
	// Remote is a set of public keys that is fetched from the edge.
	Remote *RemoteKeys
	// Issuer is who made the token. Default: [DefaultIssuer].
	Issuer string
	// Audience is this backend, as in `audience` of the edge. Required.
	Audience string
	// Leeway is how long after exp a token is still accepted, for a clock that
	// is ahead of Redis's. Keep it below the margin that the edge subtracted
	// (1 s to 5 s by default), or the hold may be gone. Default 0, at most 1 min.
	Leeway time.Duration
	// Now is the clock. Default: [time.Now].
	Now func() time.Time
}

// Expect is the order that the backend is about to write, to compare with the token.
type Expect struct {
	// Subject is the buyer. Required, unless AnySubject is set: an empty one is
	// [ErrSubject], so that a missing login or header is never accepted.
	Subject string
	// AnySubject allows an empty Subject, which accepts every buyer's token: for a
	// backend that takes the buyer from [Claims.Subject].
	AnySubject bool
	// Lines is the order, in any order, equal lines summed; nil: not compared.
	// A token's line without a region holds stock that is not split by region,
	// so it answers for any region; a line with one answers only for the same.
	Lines []Line
	// Known reports whether the backend has answered this reservation id before, with an order or a refusal; nil:
	// not asked. It is asked last, about a token that is correct but for its time. The column that is unique
	// decides nevertheless: two requests with one token may both come to the answer that it is new.
	Known func(ctx context.Context, id string) (bool, error)
}

// Verifier checks tokens. It may be used by many goroutines at once.
type Verifier struct {
	keys     map[string]checker
	remote   *RemoteKeys
	issuer   string
	audience string
	leeway   time.Duration
	now      func() time.Time
}

// NewVerifier makes a Verifier. Nothing is fetched yet. It fails with [ErrKey]
// or with an error that names the option.
func NewVerifier(o Options) (*Verifier, error) {
	if o.Audience == "" {
		return nil, fmt.Errorf("token verifier: Audience is empty: give the audience that the edge signs for")
	}
	if o.Leeway < 0 || o.Leeway > maxLeeway {
		return nil, fmt.Errorf("token verifier: Leeway is %s: it must lie between 0 and %s", o.Leeway, maxLeeway)
	}
	v := &Verifier{
		keys:     make(map[string]checker),
		remote:   o.Remote,
		issuer:   o.Issuer,
		audience: o.Audience,
		leeway:   o.Leeway,
		now:      o.Now,
	}
	if v.issuer == "" {
		v.issuer = DefaultIssuer
	}
	if v.now == nil {
		v.now = time.Now
	}
	if err := v.collect(o); err != nil {
		return nil, err
	}
	if len(v.keys) == 0 && v.remote == nil {
		return nil, fmt.Errorf("%w: none given: set Keys, JWKS, Secret or Remote", ErrKey)
	}
	return v, nil
}

func (v *Verifier) collect(o Options) error {
	for i, k := range o.Keys {
		if k.alg == "" {
			return fmt.Errorf("%w: key %d is the zero Key", ErrKey, i+1)
		}
		v.keys[k.kid] = k.checker
	}
	if len(o.JWKS) > 0 {
		set, err := parseJWKS(o.JWKS)
		if err != nil {
			return err
		}
		for kid, c := range set {
			v.keys[kid] = c
		}
	}
	if o.Secret != "" {
		k, err := ParseKey(KindHMAC, o.Secret)
		if err != nil {
			return err
		}
		v.keys[k.kid] = k.checker
	}
	return nil
}

// Verify checks a token and returns its claims.
//
// Errors wrap one sentinel of this package, or come from [Expect.Known]. With [ErrSubject], [ErrLines],
// [ErrExpired] and [ErrKnown] the claims are returned too: the token is genuine. A backend that has answered this id
// before repeats its first answer, also when the token has expired meanwhile: Known tells. The time is checked last, so
// with ErrExpired everything else is correct.
func (v *Verifier) Verify(token string, expect Expect) (*Claims, error) {
	return v.VerifyContext(context.Background(), token, expect)
}

// VerifyContext is Verify; ctx bounds the wait when a key has to be fetched.
func (v *Verifier) VerifyContext(ctx context.Context, token string, expect Expect) (*Claims, error) {
	claims, err := v.genuine(ctx, token)
	if err != nil {
		return nil, err
	}
	switch {
	case expect.Subject == "" && !expect.AnySubject:
		return claims, fmt.Errorf("%w: the order names no buyer to compare with: give Expect.Subject, or set AnySubject and sell to Claims.Subject", ErrSubject)
	case expect.Subject != "" && expect.Subject != claims.Subject:
		return claims, fmt.Errorf("%w: the token is for another buyer than the order", ErrSubject)
	}
	if expect.Lines != nil {
		if err := compareLines(claims.Lines, expect.Lines); err != nil {
			return claims, err
		}
	}
	if expect.Known != nil {
		known, err := expect.Known(ctx, claims.ID)
		if err != nil {
			return claims, fmt.Errorf("looking for the answer to a reservation id: %w", err)
		}
		if known {
			return claims, fmt.Errorf("%w: answer as the first time", ErrKnown)
		}
	}
	return claims, v.checkTime(claims)
}

func (v *Verifier) checkTime(claims *Claims) error {
	now := v.now()
	if now.Add(-v.leeway).Unix() < claims.ExpiresAt { // in seconds: no exp is too large
		return nil
	}
	ends := time.Unix(claims.ExpiresAt, 0)
	return fmt.Errorf("%w: it ended %s ago, at %s: do not sell; let the buyer try again, and compare this machine's clock with Redis's", ErrExpired, now.Sub(ends).Round(time.Millisecond), ends.UTC().Format(time.RFC3339))
}

// genuine returns the claims of a token that one of our keys signed, by the
// issuer and for the audience that are ours.
func (v *Verifier) genuine(ctx context.Context, token string) (*Claims, error) {
	parts, err := split(token)
	if err != nil {
		return nil, err
	}
	key, err := v.key(ctx, parts.header)
	if err != nil {
		return nil, err
	}
	if !key.valid([]byte(parts.signed), parts.signature) {
		return nil, fmt.Errorf("%w: the token was changed, or signed with another key than %s", ErrSignature, key.kid)
	}
	claims, err := parseClaims(parts.claims)
	if err != nil {
		return nil, fmt.Errorf("%w: claims: %w", ErrMalformed, err)
	}
	if claims.Issuer != v.issuer {
		return nil, fmt.Errorf("%w: %q, expected %q", ErrIssuer, short(claims.Issuer), v.issuer)
	}
	if claims.Audience != v.audience {
		return nil, fmt.Errorf("%w: %q, expected %q", ErrAudience, short(claims.Audience), v.audience)
	}
	return claims, nil
}

// key finds the key that the header names, if it may be used that way.
func (v *Verifier) key(ctx context.Context, raw []byte) (checker, error) {
	h, err := parseHeader(raw)
	if err != nil {
		return checker{}, fmt.Errorf("%w: header: %w", ErrMalformed, err)
	}
	if h.typ != Type {
		return checker{}, fmt.Errorf("%w: typ is %q, expected %q", ErrType, short(h.typ), Type)
	}
	if h.alg != EdDSA && h.alg != HS256 {
		return checker{}, fmt.Errorf("%w: %q: only %s and %s are accepted", ErrAlgorithm, short(h.alg), EdDSA, HS256)
	}
	key, known := v.keys[h.kid]
	if !known {
		if v.remote == nil {
			return checker{}, fmt.Errorf("%w: %q: refetch the JWKS, or compare the secret with the edge's", ErrUnknownKey, short(h.kid))
		}
		if key, err = v.remote.lookup(ctx, h.kid); err != nil {
			return checker{}, err
		}
	}
	if key.alg != h.alg {
		return checker{}, fmt.Errorf("%w: the token says %s, key %s is for %s only", ErrAlgorithm, h.alg, key.kid, key.alg)
	}
	return key, nil
}

// parts is a token in JWS compact form (RFC 7515, 7.1), decoded.
type parts struct {
	signed                    string // what the signature covers
	header, claims, signature []byte
}

func split(token string) (parts, error) {
	if len(token) > MaxSize {
		return parts{}, fmt.Errorf("%w: %d bytes, at most %d", ErrMalformed, len(token), MaxSize)
	}
	// The decoder would ignore line ends: one token would have many spellings.
	if strings.ContainsAny(token, "\r\n") {
		return parts{}, fmt.Errorf("%w: it contains a line end", ErrMalformed)
	}
	segments := strings.Split(token, ".")
	if len(segments) != 3 {
		return parts{}, fmt.Errorf("%w: %d parts between dots, expected 3", ErrMalformed, len(segments))
	}
	var p parts
	p.signed = token[:len(segments[0])+1+len(segments[1])]
	for i, to := range []*[]byte{&p.header, &p.claims, &p.signature} {
		decoded, err := b64.DecodeString(segments[i])
		if err != nil {
			return parts{}, fmt.Errorf("%w: part %d is not base64url: %w", ErrMalformed, i+1, err)
		}
		*to = decoded
	}
	return p, nil
}

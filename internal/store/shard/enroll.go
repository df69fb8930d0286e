package shard

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stockgate/stockgate/internal/store/identity"
	"github.com/stockgate/stockgate/lua"
)

// ErrForeignKey says that the other edges on this Redis sign with a key that this edge does not
// have. Shops would refuse its tokens.
var ErrForeignKey = errors.New("other edges on this redis sign with another key")

// SigningKey is one of an edge's signing keys, as far as this package needs it.
type SigningKey struct {
	// KID names the key (RFC 7638).
	KID string
	// JWK is the public key, empty for a shared secret.
	JWK string
	// Seal is derived from the private key: it seals what edges share in Redis.
	Seal [32]byte
}

// Enroll agrees with the other edges on the identity secret. The first edge derives it from its
// oldest key, which is the last of keys, so that a Redis that has lost the secret gets the same
// one again. It seals the secret in Redis for its keys; other edges open it with one of the
// same keys. candidate is the secret that this edge already uses; nil: none. Enroll returns
// ErrForeignKey when the other edges sign with a key that is not among keys.
func (s *Client) Enroll(ctx context.Context, keys []SigningKey, candidate *identity.Secret) (*identity.Secret, error) {
	if candidate == nil {
		candidate = keys[len(keys)-1].proposal()
	}
	// A second round: the signing key moves on only after the secret is sealed for it.
	var agreed *identity.Secret
	for range 2 {
		args := []any{len(keys)}
		for _, k := range keys {
			args = append(args, k.KID, k.seal(candidate), k.JWK)
		}
		raw, err := s.Eval(ctx, lua.Enroll, []string{s.SecretKey()}, args, 0)
		if err != nil {
			return nil, err
		}
		r := Reply(raw)
		switch r.Code() {
		case lua.OK:
		case lua.Foreign:
			return nil, fmt.Errorf("%w: key %s is registered; give this edge the same `key`, or let all edges share Caddy's storage. If that key is lost with the storage that had it, `caddy stockgate key replace` registers this edge's key, and says what that costs", ErrForeignKey, r.Text(1))
		case lua.Lost:
			return nil, fmt.Errorf("the identity secret of key %s is gone from redis: purchase limits cannot be checked; restore it, or delete %s to begin with a new one", r.Text(1), s.SecretKey())
		default:
			return nil, fmt.Errorf("%w: enroll gave %q", ErrUnavailable, r.Code())
		}
		for _, k := range keys {
			if k.KID == r.Text(1) {
				if agreed, err = k.open(r.Text(2)); err != nil {
					return nil, err
				}
			}
		}
		if agreed == nil {
			return nil, fmt.Errorf("%w: enroll named a foreign key", ErrUnavailable)
		}
		for _, k := range keys {
			if err := behind(s.redis).HSetNX(ctx, s.SecretKey(), "secret:"+k.KID, k.seal(agreed)).Err(); err != nil {
				return nil, Explain(err)
			}
		}
	}
	return agreed, nil
}

// Keyring is what Redis has of the edges' keys, see lua/enroll.lua.
func (s *Client) Keyring(ctx context.Context) (map[string]string, error) {
	all, err := behind(s.redis).HGetAll(ctx, s.SecretKey()).Result()
	return all, Explain(err)
}

// PublicKeys returns the JWKs of all edges that have enrolled.
func (s *Client) PublicKeys(ctx context.Context) ([]string, error) {
	all, err := s.Keyring(ctx)
	if err != nil {
		return nil, err
	}
	var keys []string
	for field, jwk := range all {
		if strings.HasPrefix(field, "public:") {
			keys = append(keys, jwk)
		}
	}
	slices.Sort(keys) // a map has no order; what is published needs one
	return keys, nil
}

func (k *SigningKey) aead() cipher.AEAD {
	block, err := aes.NewCipher(k.Seal[:])
	if err != nil {
		panic(err) // 32 bytes are always a valid key
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	return aead
}

// proposal is the secret that an edge with this key proposes.
func (k *SigningKey) proposal() *identity.Secret {
	mac := hmac.New(sha256.New, k.Seal[:])
	mac.Write([]byte("stockgate identity secret"))
	return (*identity.Secret)(mac.Sum(nil))
}

func (k *SigningKey) seal(s *identity.Secret) string {
	aead := k.aead()
	nonce := make([]byte, aead.NonceSize())
	rand.Read(nonce)
	return base64.RawURLEncoding.EncodeToString(aead.Seal(nonce, nonce, s[:], []byte(k.KID)))
}

func (k *SigningKey) open(sealed string) (*identity.Secret, error) {
	aead := k.aead()
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	if err == nil && len(raw) > aead.NonceSize() {
		raw, err = aead.Open(nil, raw[:aead.NonceSize()], raw[aead.NonceSize():], []byte(k.KID))
	}
	if err != nil || len(raw) != len(identity.Secret{}) {
		return nil, fmt.Errorf("the identity secret in redis cannot be opened with key %s: it was damaged", k.KID)
	}
	s := identity.Secret(raw)
	return &s, nil
}

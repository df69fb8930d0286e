package token

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
)

var b64 = base64.RawURLEncoding.Strict()

// okpThumbprint is the RFC 7638 thumbprint of an Ed25519 key: the hash of its
// required members in lexical order (RFC 8037, 2).
func okpThumbprint(public ed25519.PublicKey) string {
	return thumbprint(`{"crv":"Ed25519","kty":"OKP","x":"` + b64.EncodeToString(public) + `"}`)
}

func octThumbprint(secret []byte) string {
	return thumbprint(`{"k":"` + b64.EncodeToString(secret) + `","kty":"oct"}`)
}

func thumbprint(members string) string {
	sum := sha256.Sum256([]byte(members))
	return b64.EncodeToString(sum[:])
}

// jwk holds the members of a JSON Web Key (RFC 7517) that matter here.
type jwk struct {
	Alg string `json:"alg,omitempty"`
	Crv string `json:"crv"`
	Kid string `json:"kid,omitempty"`
	Kty string `json:"kty"`
	Use string `json:"use,omitempty"`
	X   string `json:"x"`
}

// PublicJWK returns the public key as a JWK; false for HMAC, whose key is
// secret, and for the zero Key.
func (k Key) PublicJWK() (json.RawMessage, bool) {
	if k.public == nil {
		return nil, false
	}
	raw, err := json.Marshal(jwk{Alg: EdDSA, Crv: "Ed25519", Kid: k.kid, Kty: "OKP", Use: "sig", X: b64.EncodeToString(k.public)})
	if err != nil {
		panic("token: " + err.Error()) // six strings of ASCII
	}
	return raw, true
}

// JWKS puts public JWKs into one set, as it is published under
// /.well-known/jwks.json. It fails if one of them is not JSON.
func JWKS(keys ...json.RawMessage) ([]byte, error) {
	set := struct {
		Keys []json.RawMessage `json:"keys"`
	}{Keys: append([]json.RawMessage{}, keys...)}
	raw, err := json.Marshal(set)
	if err != nil {
		return nil, fmt.Errorf("making a JWKS: %w", err)
	}
	return raw, nil
}

// parseJWKS reads the keys of a set that can check a token, by thumbprint.
// Other keys are ignored (RFC 7517, 5), above all "oct", a secret that does not belong
// in a public set. A set without any usable key is an error.
func parseJWKS(raw []byte) (map[string]checker, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(raw, &set); err != nil {
		return nil, fmt.Errorf("%w: not a JWKS: %w", ErrKey, err)
	}
	keys := make(map[string]checker)
	for _, member := range set.Keys {
		if c, ok := parseJWK(member); ok {
			keys[c.kid] = c
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%w: the JWKS has no Ed25519 signing key among its %d keys; if the edge signs with hmac, give the verifier the secret", ErrKey, len(set.Keys))
	}
	return keys, nil
}

func parseJWK(raw json.RawMessage) (checker, bool) {
	var k jwk
	if json.Unmarshal(raw, &k) != nil || k.Kty != "OKP" || k.Crv != "Ed25519" {
		return checker{}, false
	}
	if k.Use != "" && k.Use != "sig" || k.Alg != "" && k.Alg != EdDSA {
		return checker{}, false
	}
	public, err := b64.DecodeString(k.X)
	if err != nil || len(public) != ed25519.PublicKeySize {
		return checker{}, false
	}
	// The kid is computed, not trusted: it is the thumbprint by contract.
	return ed25519Checker(public), true
}

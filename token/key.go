package token

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"hash"
	"strings"
	"sync"
)

// The kinds of key material.
const (
	KindEd25519 = "ed25519"
	KindHMAC    = "hmac"
)

// minSecret is the least length of an HMAC secret (RFC 7518, 3.2: at least as
// long as the hash).
const minSecret = sha256.Size

// Key signs tokens and derives further secrets. Every edge of a shop has the
// same one. The zero Key is no key. It never prints its secret.
type Key struct {
	checker
	private ed25519.PrivateKey
}

// ParseKey reads key material. kind "ed25519": a private key in PEM (PKCS #8,
// RFC 8410; `openssl genpkey -algorithm ed25519`). kind "hmac": a secret, taken
// byte for byte, of at least 32 bytes.
//
// A token shows a hash of the secret (kid) and a MAC made with it, so a secret chosen
// by a person can be guessed offline: use a random one (`openssl rand -base64 32`). It
// fails with [ErrKey].
func ParseKey(kind, material string) (Key, error) {
	switch kind {
	case KindEd25519:
		return parseEd25519(material)
	case KindHMAC:
		return parseHMAC(material)
	default:
		return Key{}, fmt.Errorf("%w: unknown kind %q: use %s or %s", ErrKey, kind, KindEd25519, KindHMAC)
	}
}

// GenerateEd25519 makes a new key, and the PEM that ParseKey reads.
func GenerateEd25519() (Key, []byte, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Key{}, nil, fmt.Errorf("making an ed25519 key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return Key{}, nil, fmt.Errorf("encoding an ed25519 key: %w", err)
	}
	return newEd25519(private), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// KID is the RFC 7638 thumbprint of the key: the kid of its tokens, and a fingerprint
// that shows whether edges have the same secret.
func (k Key) KID() string { return k.kid }

// Alg is EdDSA or HS256; empty for the zero Key.
func (k Key) Alg() string { return k.alg }

// Derive returns 32 bytes that depend on the private key and on info, the name of their
// use (HKDF-SHA256, RFC 5869). They reveal nothing about the key or about the bytes for
// another info. The zero Key panics.
func (k Key) Derive(info string) []byte {
	material := k.secret
	if k.private != nil {
		material = k.private.Seed()
	}
	if material == nil {
		panic("token: Derive of the zero Key")
	}
	derived, err := hkdf.Key(sha256.New, material, nil, "stockgate derive 1 "+k.alg+" "+info, sha256.Size)
	if err != nil {
		panic("token: " + err.Error()) // only for lengths that are constant here
	}
	return derived
}

// Format prints algorithm and kid, whatever the verb: a key in a log line must
// not give itself away.
func (k Key) Format(f fmt.State, _ rune) {
	if k.alg == "" {
		fmt.Fprint(f, "no key")
		return
	}
	fmt.Fprint(f, k.alg, " key ", k.kid)
}

func (k Key) sign(message []byte) []byte {
	if k.private != nil {
		return ed25519.Sign(k.private, message)
	}
	return k.mac(message)
}

func (k Key) signatureSize() int {
	if k.private != nil {
		return ed25519.SignatureSize
	}
	return sha256.Size
}

func parseEd25519(material string) (Key, error) {
	block, rest := pem.Decode([]byte(material))
	if block == nil {
		return Key{}, fmt.Errorf("%w: no PEM block in the ed25519 key: it begins with -----BEGIN PRIVATE KEY-----", ErrKey)
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return Key{}, fmt.Errorf("%w: more than one PEM block: give each key separately", ErrKey)
	}
	if block.Type != "PRIVATE KEY" {
		return Key{}, fmt.Errorf("%w: the PEM block is %q, not PRIVATE KEY (PKCS #8)", ErrKey, block.Type)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return Key{}, fmt.Errorf("%w: %w", ErrKey, err)
	}
	private, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return Key{}, fmt.Errorf("%w: %T where an ed25519 key is needed: make one with `openssl genpkey -algorithm ed25519`", ErrKey, parsed)
	}
	return newEd25519(private), nil
}

func parseHMAC(material string) (Key, error) {
	if strings.TrimSpace(material) != material {
		// Some programs would trim it and some would not: the two would never agree.
		return Key{}, fmt.Errorf("%w: the hmac secret begins or ends with white space: remove it (often the line end of a file)", ErrKey)
	}
	if len(material) < minSecret {
		return Key{}, fmt.Errorf("%w: the hmac secret has %d bytes, it needs at least %d: make one with `openssl rand -base64 32`", ErrKey, len(material), minSecret)
	}
	secret := []byte(material)
	macs := &sync.Pool{New: func() any { return hmac.New(sha256.New, secret) }}
	return Key{checker: checker{alg: HS256, kid: octThumbprint(secret), secret: secret, macs: macs}}, nil
}

func newEd25519(private ed25519.PrivateKey) Key {
	return Key{checker: ed25519Checker(private.Public().(ed25519.PublicKey)), private: private}
}

// checker is the half of a key that checks a signature. The algorithm belongs to the
// key: a token can never choose another (RFC 8725, 3.1).
type checker struct {
	alg    string
	kid    string
	public ed25519.PublicKey
	secret []byte
	macs   *sync.Pool // of hash.Hash, with the secret; nil: none is needed
}

func ed25519Checker(public ed25519.PublicKey) checker {
	return checker{alg: EdDSA, kid: okpThumbprint(public), public: public}
}

func (c checker) valid(message, signature []byte) bool {
	if c.alg == EdDSA {
		return ed25519.Verify(c.public, message, signature)
	}
	return hmac.Equal(c.mac(message), signature)
}

func (c checker) mac(message []byte) []byte {
	h := c.macs.Get().(hash.Hash)
	defer c.macs.Put(h)
	h.Reset()
	h.Write(message)
	return h.Sum(nil)
}

package webhook

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strings"
)

// algorithm is a way to sign with one key.
type algorithm struct {
	// digest returns what signatures are compared with, for what is signed.
	digest func(parts [][]byte) []byte
	// fits reports whether a signature is one of the digest. It takes the same time for all that have
	// the right length.
	fits func(digest, signature []byte) bool
	// size is how many bytes a signature has; 0: it differs.
	size int
}

// verify checks whether one of the signatures is of what is signed. All are compared.
func (a *algorithm) verify(parts, signatures [][]byte) error {
	digest, good := a.digest(parts), false
	for _, s := range signatures {
		good = a.fits(digest, s) || good
	}
	if !good {
		return errNoneFits
	}
	return nil
}

// token is the algorithm of providers that sign nothing and send a secret.
const token = "token"

// makers make the algorithms, by their names.
var makers = map[string]func(d *Description) (*algorithm, error){
	"hmac-sha1":    hmacOf(sha1.New),
	"hmac-sha256":  hmacOf(sha256.New),
	"hmac-sha512":  hmacOf(sha512.New),
	"rsa-sha256":   rsaOf(crypto.SHA256, sha256.New),
	"rsa-sha512":   rsaOf(crypto.SHA512, sha512.New),
	"ecdsa-sha256": ecdsaOf(sha256.New),
	"ed25519":      ed25519Of,
	token:          tokenOf,
}

func (d *Description) algorithm() (*algorithm, error) {
	make := makers[d.Algorithm]
	if make == nil {
		return nil, fmt.Errorf("there is no algorithm %q: there are %s", d.Algorithm, strings.Join(slices.Sorted(maps.Keys(makers)), ", "))
	}
	return make(d)
}

func hmacOf(hash func() hash.Hash) func(*Description) (*algorithm, error) {
	return func(d *Description) (*algorithm, error) {
		key, err := d.secret()
		if err != nil {
			return nil, err
		}
		return &algorithm{
			digest: func(parts [][]byte) []byte { return sum(hmac.New(hash, key), parts) },
			fits:   hmac.Equal,
			size:   hash().Size(),
		}, nil
	}
}

// tokenOf compares hashes, so that the time tells nothing of the secret's length either.
func tokenOf(d *Description) (*algorithm, error) {
	key, err := d.secret()
	if err != nil {
		return nil, err
	}
	want := sha256.Sum256(key)
	return &algorithm{
		digest: func([][]byte) []byte { return want[:] },
		fits: func(want, sent []byte) bool {
			got := sha256.Sum256(sent)
			return hmac.Equal(got[:], want)
		},
	}, nil
}

func rsaOf(id crypto.Hash, hash func() hash.Hash) func(*Description) (*algorithm, error) {
	return func(d *Description) (*algorithm, error) {
		key, err := publicKey[*rsa.PublicKey](d, "RSA")
		if err != nil {
			return nil, err
		}
		if key.Size() < 256 {
			return nil, fmt.Errorf("the RSA key has %d bits: at least 2048 are needed", key.N.BitLen())
		}
		return &algorithm{
			digest: func(parts [][]byte) []byte { return sum(hash(), parts) },
			fits:   func(digest, s []byte) bool { return rsa.VerifyPKCS1v15(key, id, digest, s) == nil },
			size:   key.Size(),
		}, nil
	}
}

func ecdsaOf(hash func() hash.Hash) func(*Description) (*algorithm, error) {
	return func(d *Description) (*algorithm, error) {
		key, err := publicKey[*ecdsa.PublicKey](d, "ECDSA")
		if err != nil {
			return nil, err
		}
		return &algorithm{
			digest: func(parts [][]byte) []byte { return sum(hash(), parts) },
			fits:   func(digest, s []byte) bool { return ecdsa.VerifyASN1(key, digest, s) },
		}, nil
	}
}

// ed25519Of signs the message itself, so that it is the digest.
func ed25519Of(d *Description) (*algorithm, error) {
	key, err := d.ed25519Key()
	if err != nil {
		return nil, err
	}
	return &algorithm{
		digest: func(parts [][]byte) []byte { return bytes.Join(parts, nil) },
		fits:   func(message, s []byte) bool { return ed25519.Verify(key, message, s) },
		size:   ed25519.SignatureSize,
	}, nil
}

func sum(h hash.Hash, parts [][]byte) []byte {
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

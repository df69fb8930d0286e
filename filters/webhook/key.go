package webhook

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// leastKey is how many bytes a secret needs where a scheme says nothing else.
const leastKey = 8

// encodings decode keys and signatures.
var encodings = map[string]func(string) ([]byte, error){
	"hex":    hex.DecodeString,
	"base64": base64.StdEncoding.DecodeString,
	"base64url": func(text string) ([]byte, error) {
		return base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
	},
}

// decodedKey undoes the key's encoding.
func (d *Description) decodedKey() ([]byte, error) {
	if d.KeyEncoding == "" || d.KeyEncoding == "text" {
		return []byte(d.Key), nil
	}
	decode := encodings[d.KeyEncoding]
	if decode == nil {
		return nil, fmt.Errorf("there is no encoding %q of keys: there are text, hex, base64 and base64url", d.KeyEncoding)
	}
	key, err := decode(d.Key)
	if err != nil {
		return nil, fmt.Errorf("the key is no %s", d.KeyEncoding) // without what it is
	}
	return key, nil
}

// secret returns the key of an algorithm whose key is a secret of both sides.
func (d *Description) secret() ([]byte, error) {
	if strings.Contains(d.Key, "-----BEGIN ") {
		return nil, fmt.Errorf("the key of %s is a PEM file, which anyone may know: write the secret, or an algorithm of public keys such as rsa-sha256", d.Algorithm)
	}
	key, err := d.decodedKey()
	if least := max(d.leastKey, 1); err == nil && (d.leastKey == 0 && len(key) < leastKey || len(key) < least) {
		return nil, fmt.Errorf("the key is empty or shorter than %d bytes", max(d.leastKey, leastKey))
	}
	return key, err
}

// publicKey returns the PEM key or certificate of an algorithm, which must be of that kind.
func publicKey[K any](d *Description, kind string) (key K, err error) {
	if d.KeyEncoding != "" {
		return key, fmt.Errorf("the key of %s is a PEM file: it takes no encoding", d.Algorithm)
	}
	found, err := readPEM(d)
	if err != nil {
		return key, err
	}
	key, ok := found.(K)
	if !ok {
		return key, fmt.Errorf("the key of %s is no %s key: take the one that the provider names for it", d.Algorithm, kind)
	}
	return key, nil
}

// readPEM returns the public key of a PEM file.
func readPEM(d *Description) (any, error) {
	block, rest := pem.Decode([]byte(d.Key))
	switch {
	case block == nil:
		return nil, fmt.Errorf("the key of %s is no PEM: give the provider's public key or certificate, which begins with -----BEGIN, such as {file./etc/stockgate/provider.pem}", d.Algorithm)
	case len(strings.TrimSpace(string(rest))) > 0:
		return nil, fmt.Errorf("the key of %s is several in one file: write a verify for each", d.Algorithm)
	case strings.Contains(block.Type, "PRIVATE"):
		return nil, fmt.Errorf("the key of %s is a private key: give the provider's public key", d.Algorithm)
	}
	var key any
	var err error
	switch block.Type {
	case "PUBLIC KEY":
		key, err = x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		key, err = x509.ParsePKCS1PublicKey(block.Bytes)
	case "CERTIFICATE":
		var certificate *x509.Certificate
		if certificate, err = x509.ParseCertificate(block.Bytes); err == nil {
			key = certificate.PublicKey
		}
	default:
		err = errors.New("it is none")
	}
	if err != nil {
		return nil, fmt.Errorf("the key of %s cannot be read: give a PUBLIC KEY or a CERTIFICATE", d.Algorithm)
	}
	return key, nil
}

// ed25519Key takes a PEM file, or the 32 bytes of the key in an encoding.
func (d *Description) ed25519Key() (ed25519.PublicKey, error) {
	if d.KeyEncoding == "" {
		return publicKey[ed25519.PublicKey](d, "Ed25519")
	}
	key, err := d.decodedKey()
	if err == nil && len(key) != ed25519.PublicKeySize {
		err = fmt.Errorf("the key has %d bytes in %s: a public key of ed25519 has %d", len(key), d.KeyEncoding, ed25519.PublicKeySize)
	}
	return key, err
}

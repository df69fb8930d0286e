package resolve

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"
)

// maxChain bounds the certificates of one file.
const maxChain = 8

// verifyCertificate verifies the first certificate of a PEM file: its chain, its time, its name and its key. The
// others, and those beside, may be between it and a root; they are trusted no more than that.
func verifyCertificate(file []byte, beside []*x509.Certificate, name string, roots *x509.CertPool, now time.Time) (*certificate, error) {
	chain, err := readChain(file)
	if err != nil {
		return nil, err
	}
	leaf, between := chain[0], x509.NewCertPool()
	for _, c := range append(chain[1:], beside...) {
		between.AddCert(c)
	}
	_, err = leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	if err != nil {
		return nil, err
	}
	if leaf.Subject.CommonName != name && !slices.Contains(leaf.DNSNames, name) {
		return nil, fmt.Errorf("its name is %.80q, and not %s", leaf.Subject.CommonName, name)
	}
	key, ok := leaf.PublicKey.(*rsa.PublicKey)
	switch {
	case leaf.IsCA:
		return nil, errors.New("it is the certificate of an authority")
	case !ok:
		return nil, errors.New("its key is no RSA key")
	case key.N.BitLen() < 2048:
		return nil, fmt.Errorf("its RSA key has %d bits: at least 2048 are needed", key.N.BitLen())
	}
	until := now.Add(certificateFor)
	if leaf.NotAfter.Before(until) {
		until = leaf.NotAfter
	}
	return &certificate{key, until}, nil
}

func readChain(file []byte) (chain []*x509.Certificate, err error) {
	for {
		block, rest := pem.Decode(file)
		switch {
		case block == nil && len(chain) > 0 && len(bytes.TrimSpace(rest)) == 0:
			return chain, nil
		case block == nil:
			return nil, errors.New("it is no PEM")
		case block.Type != "CERTIFICATE":
			return nil, fmt.Errorf("it has a %.40q, and may have certificates only", block.Type)
		case len(chain) == maxChain:
			return nil, fmt.Errorf("it has more than %d certificates", maxChain)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errors.New("it cannot be read")
		}
		chain, file = append(chain, c), rest
	}
}

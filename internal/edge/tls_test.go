package edge_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// An edge speaks TLS to a server whose certificate it can verify, and to no other one.
func TestTLS(t *testing.T) {
	certificate, key := selfSigned(t)
	t.Setenv("SSL_CERT_FILE", certificate) // the process reads it once, and no other test here needs a certificate
	stranger, strangersKey := selfSigned(t)
	good, bad := redistest.Start(t, redistest.TLS(certificate, key)), redistest.Start(t, redistest.TLS(stranger, strangersKey))

	o := stocktest.At(good.TLSAddr(), stocktest.Long)
	o.TLS = true
	everything(t, o, good.Client())
	if err := good.Client().FlushAll(stocktest.Soon(t)).Err(); err != nil {
		t.Fatal(err)
	}
	in1 := redis.NewClient(&redis.Options{Addr: good.Addr(), DB: 1})
	defer in1.Close()
	everything(t, stocktest.At("rediss://"+good.TLSAddr()+"/1", stocktest.Long), in1)

	for name, test := range map[string]struct {
		addr    string
		tls     bool
		timeout time.Duration
		want    string
	}{
		"an unknown certificate": {bad.TLSAddr(), true, stocktest.Long, "certificate"},
		"no TLS at the server":   {good.Addr(), true, 200 * time.Millisecond, ""}, // which waits for the end of a line
		"no TLS at the edge":     {good.TLSAddr(), false, stocktest.Long, ""},
	} {
		o := stocktest.At(test.addr, test.timeout)
		o.TLS = test.tls
		err := stocktest.NewEdge(t, o, edge.Options{}).Refresh(stocktest.Soon(t))
		if !errors.Is(err, shard.ErrUnavailable) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("with %s refresh ends with %v", name, err)
		}
	}
}

// selfSigned makes a certificate for 127.0.0.1 that is its own authority.
func selfSigned(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "redis"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certificate, key = filepath.Join(dir, "redis.crt"), filepath.Join(dir, "redis.key")
	for name, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "EC PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certificate, key
}

package fastpath_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stockgate/stockgate/fastpath"
)

// certificate signs itself.
func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// The timeout of the handshake and of the preface ends with them: an HTTP/2 connection may wait
// longer than that for its next frame.
func TestHTTP2OutlivesTheHandshake(t *testing.T) {
	key := certificate(t)
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		s := &fastpath.Server{Judge: answering{}, Timeouts: fastpath.Timeouts{Header: brief}}
		conn := s.WrapTLS(tls.Server(server, &tls.Config{Certificates: []tls.Certificate{key}, NextProtos: []string{"h2"}}))
		conn.Follow(http.StateNew)
		got := make(chan string, 1)
		go func() {
			b := make([]byte, len(http2Preface)+len("later"))
			n, err := io.ReadFull(conn, b)
			if err != nil {
				t.Error(err)
			}
			got <- string(b[:n])
		}()
		encrypted := tls.Client(client, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		if _, err := io.WriteString(encrypted, http2Preface); err != nil {
			t.Fatal(err)
		}
		time.Sleep(long)
		_, _ = io.WriteString(encrypted, "later")
		if b := <-got; b != http2Preface+"later" {
			t.Errorf("%q", b)
		}
		_ = client.Close()
		_ = conn.Close()
	})
}

const http2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

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
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stockgate/stockgate/internal/fastpath"
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

// ALPN decides: a connection on which HTTP/2 was agreed ends where another protocol begins, and
// every other one where HTTP/2 does, as net/http would end it.
func TestProtocolIsTheAgreedOne(t *testing.T) {
	key := certificate(t)
	for name, c := range map[string]struct {
		protocols []string
		sends     string
	}{
		"HTTP/1.1 agreed":   {[]string{"http/1.1"}, http2Preface},
		"nothing agreed":    {nil, http2Preface},
		"HTTP/2 agreed":     {[]string{"h2"}, get("/fast")},
		"another one":       {[]string{"acme-tls/1"}, get("/fast")},
		"another, preface":  {[]string{"acme-tls/1"}, http2Preface},
		"HTTP/2, no method": {[]string{"h2"}, "PRI * HTTP/1.1\r\n\r\nSM\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			client, server := net.Pipe()
			s := &fastpath.Server{Judge: answering{}}
			conn := s.WrapTLS(tls.Server(server, &tls.Config{Certificates: []tls.Certificate{key}, NextProtos: []string{"h2", "http/1.1", "acme-tls/1"}}))
			defer conn.Close()
			defer client.Close()
			conn.Follow(http.StateNew)
			go func() {
				_, _ = io.WriteString(tls.Client(client, &tls.Config{InsecureSkipVerify: true, NextProtos: c.protocols}), c.sends)
			}()
			b := make([]byte, 100)
			if n, err := conn.Read(b); n != 0 || err != io.EOF {
				t.Errorf("%q, %v", b[:n], err)
			}
		})
	}
}

// A client that says nothing, or stops in the middle of its handshake, is closed after the least
// of the timeouts that are set, as in net/http.
func TestHandshakeEnds(t *testing.T) {
	key := certificate(t)
	for name, times := range map[string]fastpath.Timeouts{
		"Header":              {Header: brief},
		"Request":             {Request: brief},
		"Response":            {Response: brief},
		"Header, the least":   {Header: brief, Request: long, Response: long},
		"Response, the least": {Header: long, Request: long, Response: brief},
	} {
		for _, sent := range []string{"", "\x16\x03\x01"} {
			t.Run(name+" after "+strconv.Quote(sent), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					client, server := net.Pipe()
					s := &fastpath.Server{Judge: answering{}, Timeouts: times}
					conn := s.WrapTLS(tls.Server(server, &tls.Config{Certificates: []tls.Certificate{key}}))
					conn.Follow(http.StateNew)
					go func() { _, _ = io.WriteString(client, sent) }()
					began := time.Now()
					if n, err := conn.Read(make([]byte, 1)); n != 0 || err != io.EOF {
						t.Errorf("%d bytes, %v", n, err)
					}
					if after := time.Since(began); after > brief {
						t.Errorf("it ends after %v, not %v", after, brief)
					}
					_ = client.Close()
					_ = conn.Close()
				})
			})
		}
	}
}

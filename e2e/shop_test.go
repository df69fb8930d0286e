package e2e_test

import (
	"bufio"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stockgate/stockgate/internal/shop"
	"github.com/stockgate/stockgate/token"
)

// startShop starts a shop that trusts the tokens of an edge, which need not run yet.
func startShop(t *testing.T, e *edge) (*shop.Shop, string) {
	t.Helper()
	remote, err := token.NewRemoteKeys(token.RemoteOptions{URL: e.url + "/.well-known/jwks.json", Client: e.buyers, Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := token.NewVerifier(token.Options{Remote: remote, Audience: "order-backend"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := shop.New(shop.Options{Verifier: verifier, AllowMisbehave: true, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	addr := serve(t, s)
	t.Cleanup(func() { // before the listener closes: that waits for what hangs
		if err := s.Close(); err != nil {
			t.Errorf("closing the shop: %v", err)
		}
	})
	return s, addr
}

// serve serves a handler on a real listener and returns its host:port.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // panics are what some tests ask for
	server.Start()
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// seen is one request as a shop got it.
type seen struct {
	method, uri, host string
	header            http.Header
	body              string
	transferEncoding  []string
	trailer           http.Header
}

// recorder is a shop that notes what it gets and answers 201.
type recorder struct {
	answer http.HandlerFunc // nil: 201

	mu   sync.Mutex
	list []seen
}

func (s *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		body = append(body, "\nUNREADABLE: "+err.Error()...)
	}
	s.mu.Lock()
	s.list = append(s.list, seen{r.Method, r.RequestURI, r.Host, r.Header.Clone(), string(body), r.TransferEncoding, r.Trailer.Clone()})
	s.mu.Unlock()
	if s.answer != nil {
		s.answer(w, r)
		return
	}
	w.WriteHeader(http.StatusCreated)
}

// requests are those that have come so far.
func (s *recorder) requests() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]seen(nil), s.list...)
}

// forget makes requests empty again.
func (s *recorder) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = nil
}

// orders counts the requests that carry a token.
func (s *recorder) orders() int {
	n := 0
	for _, r := range s.requests() {
		if r.header.Get(token.Header) != "" {
			n++
		}
	}
	return n
}

// rawShop is a shop below HTTP: talk is called for every connection, numbered from
// 1, which it owns.
func rawShop(t *testing.T, talk func(n int, ln net.Listener, conn net.Conn, in *bufio.Reader)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var talks sync.WaitGroup
	talks.Go(func() {
		for n := 1; ; n++ {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			talks.Go(func() {
				defer conn.Close()
				talk(n, ln, conn, bufio.NewReader(conn))
			})
		}
	})
	t.Cleanup(func() {
		ln.Close()
		talks.Wait()
	})
	return ln.Addr().String()
}

package fastpath_test

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stockgate/stockgate/internal/fastpath"
)

const http2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// closeCounter is an HTTP2 that counts how often it was closed.
type closeCounter struct {
	net.Conn
	closed atomic.Int32
}

func (c *closeCounter) Close() { c.closed.Add(1) }

// What shares a connection with net/http hears that it is closed: it may wait for net/http's first
// frame, which then does not come.
func TestCloseEndsHTTP2(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	var shared *closeCounter
	s := &fastpath.Server{Judge: answering{}, HTTP2: func(c net.Conn, _ *tls.ConnectionState, _ []byte) fastpath.HTTP2 {
		shared = &closeCounter{Conn: c}
		return shared
	}}
	conn := s.Wrap(server)
	conn.Follow(http.StateNew)
	go func() { _, _ = io.WriteString(client, http2Preface) }()
	b := make([]byte, len(http2Preface))
	if _, err := io.ReadFull(conn, b); err != nil || string(b) != http2Preface {
		t.Fatalf("%q, %v", b, err)
	}
	if n := shared.closed.Load(); n != 0 {
		t.Errorf("closed %d times before its connection", n)
	}
	_ = conn.Close()
	if shared.closed.Load() == 0 {
		t.Error("HTTP2.Close was not called")
	}
}

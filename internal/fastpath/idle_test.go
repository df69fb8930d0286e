package fastpath_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stockgate/stockgate/internal/fastpath"
)

// waitsConn calls a function before it reads.
type waitsConn struct {
	net.Conn
	before func()
}

func (c *waitsConn) Read(p []byte) (int, error) {
	c.before()
	return c.Conn.Read(p)
}

const fastRequest = "GET /fast HTTP/1.1\r\nHost: a\r\n\r\n"

// TestIdleTLSHoldsNoBuffer answers requests over TLS. While it waits for the next one, the
// connection has no buffer.
func TestIdleTLSHoldsNoBuffer(t *testing.T) {
	client, server := net.Pipe()
	s := &fastpath.Server{Judge: answering{}}
	var conn *fastpath.TLSConn
	waits := &waitsConn{Conn: server, before: func() {}}
	conn = s.WrapTLS(tls.Server(waits, &tls.Config{Certificates: []tls.Certificate{certificate(t)}, NextProtos: []string{"http/1.1"}}))
	var held []bool
	var shook atomic.Bool
	waits.before = func() {
		if shook.Load() {
			held = append(held, conn.HoldsBuffers())
		}
	}
	conn.Follow(http.StateNew)
	ended := make(chan error, 1)
	go func() {
		_, err := conn.Read(make([]byte, 100))
		ended <- err
	}()
	encrypted := tls.Client(client, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	if err := encrypted.Handshake(); err != nil {
		t.Fatal(err)
	}
	shook.Store(true)
	answers := bufio.NewReader(encrypted)
	for range 3 {
		if _, err := io.WriteString(encrypted, fastRequest); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
	}
	_ = client.Close()
	<-ended
	waiting := 0
	for _, has := range held {
		if !has {
			waiting++
		}
	}
	if waiting < 3 { // after each answer
		t.Errorf("of %d reads, %d were without a buffer, want 3: %v", len(held), waiting, held)
	}
}

// TestIdleSocketsHoldNoBuffers leaves connections open after an answer each, and looks what of
// them is live.
func TestIdleSocketsHoldNoBuffers(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	s := &fastpath.Server{Judge: answering{}}
	const connections, most = 400, 5 << 10 // a buffer has 4 KiB, and there were two
	before := live()
	var clients []net.Conn
	for range connections {
		client, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		clients = append(clients, client)
		server, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		conn := s.Wrap(server)
		conn.Follow(http.StateNew)
		go func() { _, _ = conn.Read(make([]byte, 10)) }()
		if _, err := io.WriteString(client, fastRequest); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 512)
		if n, err := client.Read(answer); err != nil || n == 0 {
			t.Fatal(err)
		}
	}
	each := live() - before
	for range 100 { // the last may not yet wait
		if each = (live() - before) / connections; each < most {
			break
		}
		runtime.Gosched()
	}
	if each >= most {
		t.Errorf("an idle connection has %d bytes, want less than %d", each, most)
	}
	runtime.KeepAlive(clients)
}

// live is how many bytes of the heap are live. A pool loses what it has in two collections.
func live() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

package fastpath

import (
	"bytes"
	"io"
	"net"
	"time"
)

// alpn is the protocol that a connection's handshake has agreed on.
type alpn uint8

const (
	alpnNone  alpn = iota // no TLS: the first bytes tell
	alpnHTTP1             // HTTP/1.1, or nothing was negotiated
	alpnHTTP2
)

// preface is what a client's HTTP/2 begins with (RFC 9113, section 3.4).
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// prefaceLine is its first line, which no HTTP/1 client sends.
const prefaceLine = "PRI * HTTP/2.0\r\n"

// HTTP2 shares a connection that speaks HTTP/2 with net/http. net/http has read the preface.
type HTTP2 interface {
	// Read and Write are those of the net.Conn that net/http has.
	io.ReadWriter
	SetReadDeadline(time.Time) error
	// Close is called before the connection is closed. It may be called more than once.
	Close()
}

// startHTTP2 begins with HTTP/2 if the buffer has its preface. It returns false if more
// input is needed.
func (c *Conn) startHTTP2() bool {
	b := c.buf[c.start:c.end]
	if n := min(len(b), len(preface)); string(b[:n]) != preface[:n] {
		c.mode.Store(modeDetached)
		if c.alpn == alpnHTTP2 {
			c.mode.Store(modeRefused)
		}
		return true
	} else if n < len(preface) {
		return false
	}
	c.mode.Store(modeDetached)
	_ = c.SetReadDeadline(time.Time{}) // that of the handshake
	if c.server.HTTP2 != nil {
		rest := bytes.Clone(b[len(preface):])
		c.end = c.start + len(preface)
		http2 := c.server.HTTP2(c.Conn, c.request.TLS, rest)
		c.http2.Store(&http2)
		if c.server.stopped.Load() { // Close may have come before
			http2.Close()
		}
	}
	return true
}

// awaitPreface reads until it is known whether the connection begins with HTTP/2's preface.
func (c *Conn) awaitPreface() error {
	for c.end == c.start || !c.startHTTP2() {
		c.room()
		n, err := c.Conn.Read(c.buf[c.end:])
		c.end += n
		if n == 0 && err != nil {
			return err
		}
	}
	return nil
}

// readHTTP2 continues where HTTP/2 begins.
func (c *Conn) readHTTP2(p []byte) (int, error) {
	if c.alpn == alpnHTTP1 { // net/http does not look for a preface where TLS was told otherwise
		c.mode.Store(modeRefused)
	} else if err := c.awaitPreface(); err != nil {
		if c.mode.Store(modeDetached); c.start == c.end {
			return 0, err
		}
	} else {
		c.times.hand(c)
	}
	return c.Read(p)
}

// beginsHTTP2 reports whether input that cannot be framed is the beginning of HTTP/2, on a
// connection that has had nothing else.
func (c *Conn) beginsHTTP2() bool {
	return !c.served() && bytes.HasPrefix(c.buf[c.start:c.end], []byte(prefaceLine))
}

// Write writes what net/http answers.
func (c *Conn) Write(p []byte) (int, error) {
	if http2 := c.http2.Load(); http2 != nil {
		return (*http2).Write(p)
	}
	return c.Conn.Write(p)
}

// Interface guard
var _ net.Conn = (*Conn)(nil)

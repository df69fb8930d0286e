package fastpath

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// mode says who reads the next byte of a connection.
type mode = int32

const (
	// net/http has not yet reported the connection, so it is not known whether
	// it reads from it directly.
	modeUnknown mode = iota
	// the next byte begins a request, of which net/http has nothing.
	modeBoundary
	// net/http has, or is reading, one request, and answers it.
	modeDelegated
	// the connection belongs to net/http, or to the handler that hijacked it, for good.
	modeDetached
	// no protocol that net/http speaks: it reads nothing, and closes the connection
	modeRefused
)

// Conn is a connection that is shared with net/http. net/http asks for a request by calling Read.
//
// Calls of Read and Follow must not overlap; net/http's do not. Close and the deadlines
// may be called at any time.
type Conn struct {
	net.Conn
	server *Server

	mode atomic.Int32
	// answering is free, busy or shut: a connection that is closed while an answer is
	// being written is closed after that answer.
	answering atomic.Int32

	buf        []byte // pooled; nil: nothing is buffered
	start, end int    // the unused part of it
	out        []byte // answers not yet written; pooled
	first      [1]byte
	failed     error // why an answer was not written; nil: all were
	left       int64 // bytes of the delegated request that net/http has not read

	request  Request
	posted   bool // the last answer was to a POST
	answered bool // there was one since net/http last saw the connection idle
	waited   bool // the body of this request has been waited for
	// requested: a request has been answered here.
	requested bool

	alpn  alpn
	http2 atomic.Pointer[HTTP2] // nil: the connection does not speak HTTP/2, or net/http alone serves it

	times  times
	socket socket
}

// Server has what the connections of one http.Server have in common.
type Server struct {
	Judge Judge
	Timeouts
	// MaxHead is how long a head may be, in bytes, at most 16 KiB. Default: 16 KiB.
	MaxHead int
	// HTTP2 shares a connection that speaks HTTP/2. state is nil without TLS; rest is what has
	// arrived after the preface. nil: net/http alone serves HTTP/2.
	HTTP2 func(c net.Conn, state *tls.ConnectionState, rest []byte) HTTP2
	// HandshakeFailed is called with the reason when a TLS handshake fails; nil: nothing is.
	HandshakeFailed func(c net.Conn, reason string)

	held    answeredConns
	stopped atomic.Bool
}

const (
	free int32 = iota
	busy
	shut
)

// Wrap makes a Conn. It answers nothing until Follow has reported the connection as new.
func (s *Server) Wrap(c net.Conn) *Conn {
	conn := &Conn{Conn: c, server: s}
	conn.request.conn, conn.request.addrs = conn, c
	conn.request.head.reset()
	conn.socket.open(conn)
	return conn
}

// Follow must be called with each state of the connection, as http.Server.ConnState is.
// It must not be called if another protocol, such as TLS, lies between net/http and
// this connection.
func (c *Conn) Follow(s http.ConnState) {
	now := c.mode.Load()
	switch s {
	case http.StateNew:
		if now == modeUnknown {
			c.mode.Store(modeBoundary)
		}
	case http.StateActive:
		if now == modeBoundary { // it has read bytes that Read did not return
			c.mode.Store(modeDetached)
		}
	case http.StateIdle:
		switch {
		case now == modeDelegated && c.left == 0:
			c.times.idle()
			c.mode.Store(modeBoundary)
		case now != modeUnknown:
			c.mode.Store(modeDetached)
		}
	case http.StateHijacked:
		c.mode.Store(modeDetached)
	case http.StateClosed:
		c.server.held.remove(c)
		c.socket.at = -1
		_ = c.Conn.Close()       // a panic may have interrupted the answer after which to close
		if now == modeBoundary { // otherwise net/http may still be reading in the background
			c.release()
		}
	}
}

// served reports whether a request has been answered here, or net/http has had one.
func (c *Conn) served() bool { return c.requested || c.times.first }

// Read returns the bytes that net/http may read.
func (c *Conn) Read(p []byte) (int, error) {
	switch c.mode.Load() {
	case modeBoundary:
		return c.readBoundary(p)
	case modeDelegated:
		return c.readDelegated(p)
	case modeRefused:
		return 0, io.EOF
	}
	return c.readDetached(p)
}

// readBoundary answers requests until there is one for net/http.
func (c *Conn) readBoundary(p []byte) (int, error) {
	if c.alpn == alpnHTTP2 {
		if err := c.awaitPreface(); err != nil {
			return 0, err
		}
		return c.Read(p)
	}
	c.request.Now = time.Now() // for what is buffered
	for {
		what, err := c.answerBuffered()
		if what == stepMore && err == nil {
			what, err = c.fill()
		}
		switch {
		case err == nil:
		case what == stepMore && c.start < c.end && !errors.Is(err, os.ErrDeadlineExceeded):
			// net/http answers an incomplete request
			c.mode.Store(modeDetached)
			return c.readDetached(p)
		default:
			return 0, err
		}
		switch what {
		case stepDelegate:
			if err := c.hand(modeDelegated); err != nil {
				return 0, err
			}
			return c.readDelegated(p)
		case stepDetach:
			if c.beginsHTTP2() {
				return c.readHTTP2(p)
			}
			if err := c.hand(modeDetached); err != nil {
				return 0, err
			}
			return c.readDetached(p)
		}
	}
}

// answerBuffered answers what is buffered. It returns more when all answers are written and the
// next request is not whole, and broken with the error of writing.
func (c *Conn) answerBuffered() (takeStep, error) {
	for {
		switch what := c.take(); what {
		case stepAnswered:
		case stepMore:
			if err := c.flush(); err != nil {
				return stepBroken, err
			}
			return stepMore, nil
		default:
			return what, nil
		}
	}
}

// readDelegated returns the rest of the delegated request, and not a byte more.
func (c *Conn) readDelegated(p []byte) (int, error) {
	if c.left > 0 {
		p = p[:min(int64(len(p)), c.left)]
		n, err := c.readDetached(p)
		c.left -= int64(n)
		return n, err
	}
	// The request was returned completely: net/http reads on to see whether the client
	// leaves. A byte that comes instead begins the next request, and does not end the
	// wait.
	if c.start < c.end || len(p) == 0 {
		return 0, nil
	}
	n, err := c.Conn.Read(p[:1])
	if n == 1 {
		c.room()
		c.buf[c.end] = p[0]
		c.end++
		return 0, nil
	}
	return 0, err
}

// readDetached returns the buffered bytes, then reads from the connection.
func (c *Conn) readDetached(p []byte) (int, error) {
	if c.start < c.end {
		n := copy(p, c.buf[c.start:c.end])
		if c.start += n; c.start == c.end {
			c.release()
		}
		return n, nil
	}
	if http2 := c.http2.Load(); http2 != nil {
		return (*http2).Read(p)
	}
	return c.Conn.Read(p)
}

// hand passes the connection to net/http, after writing pending answers.
func (c *Conn) hand(to mode) error {
	if err := c.flush(); err != nil {
		return err
	}
	if to == modeDelegated {
		h := &c.request.head
		c.left = int64(h.end) + h.length
	}
	c.request.forget()
	c.posted, c.answered, c.waited = false, false, false
	c.server.held.remove(c)
	c.times.hand(c)
	c.mode.Store(to)
	return nil
}

// Close closes the connection, after the answer that is being written.
func (c *Conn) Close() error {
	if c.answering.CompareAndSwap(busy, shut) {
		return nil
	}
	c.answering.CompareAndSwap(free, shut)
	if http2 := c.http2.Load(); http2 != nil {
		(*http2).Close()
	}
	return c.Conn.Close()
}

// CloseWrite closes the writing side, where the connection has two.
func (c *Conn) CloseWrite() error {
	if two, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return two.CloseWrite()
	}
	return nil
}

// ReadFrom lets net/http send files without copying them.
func (c *Conn) ReadFrom(r io.Reader) (int64, error) {
	if from, ok := c.Conn.(io.ReaderFrom); ok {
		return from.ReadFrom(r)
	}
	return io.Copy(struct{ io.Writer }{c.Conn}, r)
}

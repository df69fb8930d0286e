package fastpath

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// mode says whose the next byte of a connection is.
type mode = int32

const (
	// strange: net/http has not said that it reads from this connection itself.
	strange mode = iota
	// boundary: the next byte begins a request, and net/http has none of it.
	boundary
	// lent: net/http has a request, or is getting it, and answers.
	lent
	// away: all is net/http's, or that of who has hijacked the connection.
	away
)

// Conn is a connection that is shared with net/http. Its Read is net/http's way to
// ask for a request.
//
// Reads, and the calls of Follow between them, come one after the other, as those of
// net/http do. Close and the setting of deadlines may come at any time.
type Conn struct {
	net.Conn
	server *Server

	mode atomic.Int32
	// answering is free, busy or shut: a connection that is to be closed while an
	// answer is being written is closed behind that.
	answering atomic.Int32

	buf        []byte // pooled; nil: nothing is buffered
	start, end int    // what of it has not been used
	out        []byte // answers that have not been written; pooled
	failed     error  // why an answer was not written; nil: all were
	left       int64  // bytes of the lent request that net/http has not read

	request  Request
	posted   bool // the last answer was to a POST
	answered bool // there was one since net/http has seen the connection idle
	waited   bool // the body of this request has been waited for

	times  times
	socket socket
}

// Server has what the connections of one http.Server have in common.
type Server struct {
	Judge Judge
	Timeouts
	// MaxHead is how long a head may be, in bytes, at most 16 KiB. Default: 16 KiB.
	MaxHead int

	held    held
	stopped atomic.Bool
}

const (
	free int32 = iota
	busy
	shut
)

// Wrap makes a Conn. It does nothing by itself until Follow has told it that it is new.
func (s *Server) Wrap(c net.Conn) *Conn {
	conn := &Conn{Conn: c, server: s}
	conn.request.conn = conn
	conn.request.head.reset()
	conn.socket.open(conn)
	return conn
}

// Follow is told each state of the connection by net/http, as http.Server.ConnState
// is. It must not be told of a connection on which another protocol lies between
// net/http and this one, such as TLS.
func (c *Conn) Follow(s http.ConnState) {
	now := c.mode.Load()
	switch s {
	case http.StateNew:
		if now == strange {
			c.mode.Store(boundary)
		}
	case http.StateActive:
		if now == boundary { // it has read what was not given
			c.mode.Store(away)
		}
	case http.StateIdle:
		switch {
		case now == lent && c.left == 0:
			c.times.idle()
			c.mode.Store(boundary)
		case now != strange:
			c.mode.Store(away)
		}
	case http.StateHijacked:
		c.mode.Store(away)
	case http.StateClosed:
		c.server.held.remove(c)
		c.socket.at = -1
		_ = c.Conn.Close()   // a panic may have left an answer behind which that was to happen
		if now == boundary { // else net/http may still be reading in the background
			c.release()
		}
	}
}

// Read gives net/http what it may read.
func (c *Conn) Read(p []byte) (int, error) {
	switch c.mode.Load() {
	case boundary:
		return c.readBoundary(p)
	case lent:
		return c.readLent(p)
	}
	return c.readAway(p)
}

// readBoundary answers requests until there is one for net/http.
func (c *Conn) readBoundary(p []byte) (int, error) {
	c.request.Now = time.Now() // for what is buffered
	for {
		what, err := c.turn()
		if what == more && err == nil {
			what, err = c.fill()
		}
		switch {
		case err == nil:
		case what == more && c.start < c.end && !errors.Is(err, os.ErrDeadlineExceeded):
			// net/http says what it thinks of half a request
			c.mode.Store(away)
			return c.readAway(p)
		default:
			return 0, err
		}
		switch what {
		case lend:
			if err := c.hand(lent); err != nil {
				return 0, err
			}
			return c.readLent(p)
		case leave:
			if err := c.hand(away); err != nil {
				return 0, err
			}
			return c.readAway(p)
		}
	}
}

// turn answers what is buffered. It returns more when all answers are written and the
// next request is not whole, and broken with the error of writing.
func (c *Conn) turn() (found, error) {
	for {
		switch what := c.take(); what {
		case taken:
		case more:
			if err := c.flush(); err != nil {
				return broken, err
			}
			return more, nil
		default:
			return what, nil
		}
	}
}

// readLent gives net/http the rest of the request that it has been lent, and not a
// byte more.
func (c *Conn) readLent(p []byte) (int, error) {
	if c.left > 0 {
		p = p[:min(int64(len(p)), c.left)]
		n, err := c.readAway(p)
		c.left -= int64(n)
		return n, err
	}
	// All was given: it reads on to see whether the client leaves. A byte that comes
	// instead begins the next request, and nothing ends the waiting.
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

// readAway gives what is buffered, then what comes.
func (c *Conn) readAway(p []byte) (int, error) {
	if c.start < c.end {
		n := copy(p, c.buf[c.start:c.end])
		if c.start += n; c.start == c.end {
			c.release()
		}
		return n, nil
	}
	return c.Conn.Read(p)
}

// hand ends the wrapper's turn: answers go out before net/http can write.
func (c *Conn) hand(to mode) error {
	if err := c.flush(); err != nil {
		return err
	}
	if to == lent {
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

// Close closes the connection, behind the answer that is being written.
func (c *Conn) Close() error {
	if c.answering.CompareAndSwap(busy, shut) {
		return nil
	}
	c.answering.CompareAndSwap(free, shut)
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

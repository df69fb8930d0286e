package h2

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stockgate/stockgate/internal/fastpath"
)

// Server has what the HTTP/2 connections of one http.Server have in common.
type Server struct {
	Fast *fastpath.Server
	// largest is the length of the longest body of an answer so far.
	largest atomic.Int64
}

// Conn is a connection that speaks HTTP/2. The server reads what it is to see by calling Read,
// and answers by calling Write.
//
// Calls of Read must not overlap, nor must those of Write. All else may be called at any time.
type Conn struct {
	conn   net.Conn
	server *Server
	state  *tls.ConnectionState
	closed atomic.Bool
	ready  chan struct{} // closed when the server's SETTINGS are out, or the connection is closed
	once   sync.Once

	input    input
	blocks   blocks
	pass     []byte // frames for the server
	passed   int    // bytes of pass that it has read
	raw      int64  // bytes after pass that go to the server as they come
	skip     int64  // bytes of the frame skipped that are to come
	skipped  frameHeader
	out      []byte // frames for the client that are not yet written
	refund   uint32 // bytes of bodies whose credit the client gets back
	unread   bool   // a header block is open that is not read
	settings bool   // the client's first SETTINGS have come
	begun    bool   // the server's SETTINGS are out

	held      []*held // requests that wait for their bodies or for their Judge, by rising ids
	heldBytes int
	highest   uint32 // the highest stream that the client has opened
	seen      uint32 // the highest that the server has got
	lastPass  time.Time
	request   fastpath.Request
	fields    []fastpath.HeaderField
	answer    []byte // as HTTP/1.1

	shared
}

// shared is what Read and Write both use.
type shared struct {
	// writing is held while something is written to the client, which may take long; mu is
	// not. It comes before mu.
	writing sync.Mutex
	mu      sync.Mutex
	theirs  time.Time // the server's deadline for reading
	applied time.Time // the one that is set
	blocked bool      // Read waits for the client
	woken   bool      // it is to look what has happened
	again   bool      // the Judge is to be asked again about the requests that it has postponed
	failed  error     // writing failed

	output output
	flow   flow
	open   map[uint32]struct{} // streams that the server has got and that are not yet closed
	peer   peer
	// answered is the highest stream that was, or is about to be, answered here.
	answered uint32
	gone     bool   // a GOAWAY of the server is out
	erred    bool   // one that is an error: nothing follows it
	left     bool   // one that is none: the server takes no more requests
	lastID   uint32 // the stream in it
}

// Share shares a connection. state is nil without TLS; rest is what has arrived after the
// preface.
func (s *Server) Share(c net.Conn, state *tls.ConnectionState, rest []byte) fastpath.HTTP2 {
	conn := &Conn{conn: c, server: s, state: state, ready: make(chan struct{}), lastPass: time.Now()}
	conn.input.rest = rest
	conn.open = make(map[uint32]struct{})
	conn.peer = peer{window: defaultWindow, table: defaultTable}
	conn.flow.server = defaultWindow
	conn.output.limits = limits{frame: maxFrameSize, streams: 100, table: defaultTable, list: 16 << 10}
	conn.request = fastpath.NewRequest(c, state, conn.judgeAgain)
	return conn
}

// Close is called before the connection is closed.
func (c *Conn) Close() {
	c.closed.Store(true)
	c.once.Do(func() { close(c.ready) })
}

// begin waits for the server's SETTINGS: nothing may go out before them.
func (c *Conn) begin() {
	<-c.ready
	c.begun = true
	c.mu.Lock()
	l := c.output.limits
	c.mu.Unlock()
	c.blocks.init(c, l)
}

// Read returns frames for the server.
func (c *Conn) Read(p []byte) (int, error) {
	if !c.begun {
		c.begin()
	}
	for {
		switch {
		case c.passed < len(c.pass):
			if err := c.flush(); err != nil {
				return 0, err
			}
			n := copy(p, c.pass[c.passed:])
			if c.passed += n; c.passed == len(c.pass) {
				if c.pass, c.passed = c.pass[:0], 0; cap(c.pass) > maxKept {
					c.pass = nil
				}
			}
			return n, nil
		case c.raw > 0:
			return c.readRaw(p)
		}
		if err := c.process(); err != nil {
			return 0, err
		}
	}
}

// readRaw returns bytes of the frame that goes to the server as it comes.
func (c *Conn) readRaw(p []byte) (int, error) {
	if err := c.flush(); err != nil { // the frame may make the server end the connection
		return 0, err
	}
	p = p[:min(int64(len(p)), c.raw)]
	n := c.input.take(p)
	if n == 0 {
		var err error
		if n, err = c.receive(p, true); err != nil {
			return 0, err
		}
	}
	c.raw -= int64(n)
	return n, nil
}

// process treats the client's frames until there is something for the server.
func (c *Conn) process() error {
	c.request.Now = time.Now() // for what is buffered
	for c.raw == 0 && len(c.pass) < maxPass {
		done, err := c.frame()
		switch {
		case err != nil:
			return err
		case done:
			continue
		case len(c.pass) > 0:
			return nil
		}
		if err := c.fill(); err != nil {
			return err
		}
		if len(c.pass) > 0 {
			return nil
		}
	}
	return nil
}

// fill waits for more input. It may instead put something into pass.
func (c *Conn) fill() error {
	if err := c.flush(); err != nil {
		return err
	}
	n, err := c.receive(c.input.room(), false)
	c.input.end += n
	return err
}

// past is a deadline that is over.
var past = time.Unix(1, 0)

// receive reads from the client. Unless it is quiet it returns 0 when there is something else
// for the server.
func (c *Conn) receive(b []byte, quiet bool) (int, error) {
	for {
		c.mu.Lock()
		if c.woken && !quiet {
			c.woken = false
			c.mu.Unlock()
			c.look()
			if len(c.pass) > 0 || len(c.out) > 0 {
				return 0, nil
			}
			continue
		}
		deadline, ours := c.theirs, false
		if until := c.bodyUntil(); !quiet && !until.IsZero() && (deadline.IsZero() || until.Before(deadline)) {
			deadline, ours = until, true
		}
		if !deadline.Equal(c.applied) {
			c.applied = deadline
			_ = c.conn.SetReadDeadline(deadline)
		}
		c.blocked = true
		c.mu.Unlock()
		c.shed()
		n, err := c.conn.Read(b)
		c.mu.Lock()
		c.blocked = false
		woken := c.woken
		c.mu.Unlock()
		c.request.Now = time.Now()
		switch {
		case n > 0:
			return n, nil
		case err == nil:
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return 0, err
		case woken && quiet: // look later
			c.mu.Lock()
			c.applied = past
			c.mu.Unlock()
		case woken:
		case ours:
			c.expire()
			if len(c.pass) > 0 {
				return 0, nil
			}
		default:
			return 0, err
		}
	}
}

// wake lets Read look at what has changed. The lock is held.
func (c *Conn) wake() {
	c.woken = true
	if c.blocked {
		c.applied = past
		_ = c.conn.SetReadDeadline(past)
	}
}

// judgeAgain makes Read ask the Judge again. It is called on any goroutine.
func (c *Conn) judgeAgain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.again = true
	c.wake()
}

// look does what has been asked for by wake.
func (c *Conn) look() {
	c.mu.Lock()
	back := c.flow.back
	c.flow.back = 0
	c.flow.server += back
	left, again := c.left, c.again
	c.again = false
	c.mu.Unlock()
	if back > 0 {
		c.pass = appendWindowUpdate(c.pass, 0, uint32(back))
	}
	switch {
	case left:
		c.refuseHeld()
	case again:
		c.judgePostponed()
	}
}

// SetReadDeadline sets the server's deadline for reading.
func (c *Conn) SetReadDeadline(at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.theirs = at
	if c.blocked {
		c.wake()
	}
	return nil
}

// Interface guard
var _ fastpath.HTTP2 = (*Conn)(nil)

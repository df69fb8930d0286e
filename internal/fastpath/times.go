package fastpath

import (
	"errors"
	"os"
	"sync/atomic"
	"time"
)

// Timeouts are those of the http.Server. As there, 0 means none, except that Header and
// Idle default to Request.
type Timeouts struct {
	// Header is ReadHeaderTimeout, from the first byte of a request.
	Header time.Duration
	// Request is ReadTimeout.
	Request time.Duration
	// Idle is IdleTimeout, from the end of an answer.
	Idle time.Duration
	// Write bounds the writing of answers. 0: a minute.
	Write time.Duration
	// Response is WriteTimeout, which also bounds a TLS handshake.
	Response time.Duration
	// Body is how long the rest of a body is awaited here before the request is passed
	// to net/http. 0: a second.
	Body time.Duration
}

const (
	defaultBody = time.Second
	// defaultWrite bounds how long a client that reads nothing can hold the connection.
	defaultWrite = time.Minute
)

func (t *Timeouts) header() time.Duration {
	if t.Header != 0 {
		return t.Header
	}
	return t.Request
}

// IdleTime is how long a connection may be idle; 0: for ever.
func (t *Timeouts) IdleTime() time.Duration { return t.idle() }

// BodyWait is how long the rest of a body is awaited.
func (t *Timeouts) BodyWait() time.Duration { return t.body() }

// WriteTime bounds the writing of answers.
func (t *Timeouts) WriteTime() time.Duration { return t.write() }

func (t *Timeouts) idle() time.Duration {
	if t.Idle != 0 {
		return t.Idle
	}
	return t.Request
}

func (t *Timeouts) body() time.Duration {
	if t.Body > 0 {
		return t.Body
	}
	return defaultBody
}

func (t *Timeouts) write() time.Duration {
	if t.Write > 0 {
		return t.Write
	}
	return defaultWrite
}

// times are the deadlines of a connection. net/http sets them for the requests that it
// sees; for the others they are set here.
type times struct {
	// own: net/http's deadline for the next request is no longer valid, because it has
	// not seen the last one.
	own       bool
	began     bool // this request's first byte has come
	body      bool // its body is being waited for
	first     bool // net/http has had a request
	delegated time.Time
	// when a deadline ends, in ns since base; 0: there is none
	reading, writing atomic.Int64
	// rebase: the next deadline that net/http sets may be computed from an earlier time.
	rebase bool
}

var base = time.Now()

// idle: net/http has answered, and waits for the next request.
func (t *times) idle() { t.own, t.began, t.body = true, false, false }

// answered: a request that net/http does not see has been answered.
func (t *times) answered() { t.own, t.began, t.body = true, false, false }

// SetDeadline sets both deadlines.
func (c *Conn) SetDeadline(at time.Time) error {
	return errors.Join(c.SetReadDeadline(at), c.SetWriteDeadline(at))
}

// SetReadDeadline sets the reading deadline.
//
// ReadTimeout counts from when net/http began to wait for a connection's first request.
// It has waited while other requests were answered here, so the deadline is counted
// from when it was delegated this one.
func (c *Conn) SetReadDeadline(at time.Time) error {
	if t := &c.times; t.rebase {
		t.rebase = false
		if least := t.delegated.Add(c.server.Request); !at.IsZero() && c.server.Request > 0 && at.Before(least) {
			at = least
		}
	}
	c.times.reading.Store(since(at))
	if http2 := c.http2.Load(); http2 != nil {
		return (*http2).SetReadDeadline(at)
	}
	return c.Conn.SetReadDeadline(at)
}

// SetWriteDeadline sets the writing deadline.
func (c *Conn) SetWriteDeadline(at time.Time) error {
	c.times.writing.Store(since(at))
	return c.Conn.SetWriteDeadline(at)
}

func since(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return int64(at.Sub(base))
}

// fill waits for more input, and may answer it.
func (c *Conn) fill() (takeStep, error) {
	c.await()
	what, err := c.receive()
	c.request.Now = time.Now()
	if err != nil && what == stepMore && c.times.body && errors.Is(err, os.ErrDeadlineExceeded) {
		c.waited = true
		return stepMore, nil
	}
	return what, err
}

// await sets the deadline for the current wait.
func (c *Conn) await() {
	t, s := &c.times, c.server
	switch {
	case c.start == c.end:
		if t.own {
			c.lazily(c.request.Now, &t.reading, s.idle(), c.Conn.SetReadDeadline)
		}
	case c.request.head.end > 0:
		if !t.body { // the time is for all of it, not for each byte
			t.body, t.own = true, true
			_ = c.SetReadDeadline(time.Now().Add(s.body()))
		}
	case !t.began:
		t.began = true
		if t.own {
			_ = c.SetReadDeadline(after(s.header()))
		}
	}
}

// lazily keeps a deadline that is at least this far away, and not much farther: setting
// one per request would cost more than the request.
func (c *Conn) lazily(now time.Time, deadline *atomic.Int64, timeout time.Duration, set func(time.Time) error) {
	if timeout <= 0 {
		if deadline.Swap(0) != 0 {
			_ = set(time.Time{})
		}
		return
	}
	slack := timeout / 16
	left := deadline.Load() - int64(now.Sub(base))
	if left >= int64(timeout) && left <= int64(timeout+slack) {
		return
	}
	at := now.Add(timeout + slack)
	deadline.Store(since(at))
	_ = set(at)
}

// write bounds the writing of answers.
func (t *times) write(c *Conn) {
	c.lazily(c.request.Now, &t.writing, c.server.Timeouts.write(), c.Conn.SetWriteDeadline)
}

// hand restores the deadlines that net/http would have: a deadline set here must not end its work.
func (t *times) hand(c *Conn) {
	if t.writing.Load() != 0 {
		_ = c.SetWriteDeadline(time.Time{})
	}
	if t.own {
		_ = c.SetReadDeadline(after(c.server.header()))
	}
	if !t.first {
		t.first, t.rebase, t.delegated = true, true, time.Now()
	}
	t.own, t.began, t.body = false, false, false
}

// after is the time this much later; zero if there is no timeout.
func after(d time.Duration) time.Time {
	if d <= 0 {
		return time.Time{}
	}
	return time.Now().Add(d)
}

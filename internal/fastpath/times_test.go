package fastpath_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stockgate/stockgate/internal/fastpath"
)

const (
	brief = 50 * time.Millisecond
	long  = time.Hour
)

// pipes is a listener whose connections are in this process alone: in a bubble of
// synctest all wait for them, and time passes only then.
type pipes struct {
	opened chan net.Conn
	closed chan struct{}
	close  func()
}

// serveTimed is serve with connections for a bubble of synctest.
func serveTimed(t *testing.T, change func(*served)) *served {
	t.Helper()
	ln := &pipes{opened: make(chan net.Conn), closed: make(chan struct{})}
	ln.close = sync.OnceFunc(func() { close(ln.closed) })
	return serveOn(t, ln, func() (net.Conn, error) {
		client, server := net.Pipe()
		ln.opened <- server
		return client, nil
	}, change)
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.opened:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error   { l.close(); return nil }
func (l *pipes) Addr() net.Addr { return &net.UnixAddr{} }

// timed gives server and wrapper the same timeouts.
func timed(t fastpath.Timeouts) func(*served) {
	return func(s *served) {
		s.fast.Timeouts = t
		s.http.ReadHeaderTimeout, s.http.ReadTimeout, s.http.IdleTimeout, s.http.WriteTimeout = t.Header, t.Request, t.Idle, t.Write
	}
}

// keepBusy asks again and again until the time is over. It passes in a bubble only.
func (c *client) keepBusy(d time.Duration) {
	c.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(brief) {
		c.send(get("/fast"))
		c.want(mix[0].want)
	}
}

// TestConnectionsEnd waits for the end of connections whose clients say too little: by
// the one timeout that is short.
func TestConnectionsEnd(t *testing.T) {
	for _, before := range []string{"", get("/fast"), get("/slow"), get("/slow") + get("/fast"), get("/fast") + get("/slow")} {
		for name, c := range map[string]struct {
			times fastpath.Timeouts
			send  string
		}{
			"idle":                     {fastpath.Timeouts{Header: long, Idle: brief}, ""},
			"idle, by ReadTimeout":     {fastpath.Timeouts{Header: long, Request: brief}, ""},
			"half a head":              {fastpath.Timeouts{Header: brief, Idle: long}, "GET /fast HT"},
			"half a head, ReadTimeout": {fastpath.Timeouts{Request: brief, Idle: long}, "GET /fast HTTP/1.1\r\nHost: sh"},
		} {
			if before == "" && c.send == "" {
				continue // net/http's own
			}
			t.Run(name+" after "+before, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					client := serveTimed(t, timed(c.times)).dial()
					if before != "" {
						client.send(before)
						for range strings.Count(before, "GET") {
							client.answer()
						}
					}
					client.send(c.send)
					began := time.Now()
					if got := client.closed(); got != "" {
						t.Errorf("got %q", got)
					}
					if after := time.Since(began); after > 2*brief {
						t.Errorf("it ends after %v, not %v", after, brief)
					}
				})
			})
		}
	}
}

// TestTimeoutsRestart keeps a connection for longer than any timeout, by requests that
// net/http does not see.
func TestTimeoutsRestart(t *testing.T) {
	for name, times := range map[string]fastpath.Timeouts{
		"header": {Header: 4 * brief, Idle: long},
		"idle":   {Header: long, Idle: 4 * brief},
		"read":   {Request: 4 * brief, Idle: long},
		"write":  {Header: long, Idle: long, Write: 4 * brief},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := serveTimed(t, timed(times)).dial()
				c.keepBusy(10 * brief)
				body := strings.Repeat("a", 20_000) // more than net/http reads at once
				c.send(post("/slow", body))
				c.want(fmt.Sprintf("http POST /slow shop %q", body))
				c.keepBusy(10 * brief)
				c.send(get("/slow"))
				c.want(mix[1].want)
			})
		})
	}
}

// TestBodyThatIsLate comes after net/http has the request.
func TestBodyThatIsLate(t *testing.T) {
	reading := make(chan struct{})
	s := serve(t, func(s *served) {
		s.fast.Timeouts = fastpath.Timeouts{Header: long, Body: brief}
		tell := s.http.Handler
		s.http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			close(reading)
			tell.ServeHTTP(w, r)
		})
	})
	c := s.dial()
	message := post("/fast", "abc")
	c.send(message[:len(message)-2])
	<-reading
	c.send(message[len(message)-2:] + get("/fast"))
	c.want(`http POST /fast shop "abc"`, mix[0].want)
}

// deadlines notes the last ones that were set.
type deadlines struct {
	pieces
	read, write time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error  { d.read = t; return nil }
func (d *deadlines) SetWriteDeadline(t time.Time) error { d.write = t; return nil }

// TestDelegatedWithoutOurDeadlines leaves net/http's own: a slow answer is not cut off by
// what was set for a fast one.
func TestDelegatedWithoutOurDeadlines(t *testing.T) {
	d := &deadlines{pieces: pieces{rest: []byte(get("/fast") + get("/slow")), size: len(get("/fast"))}}
	c := (&fastpath.Server{Judge: answering{}, Timeouts: fastpath.Timeouts{Header: long, Idle: brief, Write: brief}}).Wrap(d)
	c.Follow(http.StateNew)
	if _, err := c.Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if !d.write.IsZero() || time.Until(d.read) < long/2 {
		t.Errorf("net/http has until %v to write, and until %v to read", d.write, d.read)
	}
}

// TestShutdown closes idle connections, those too that net/http takes for new, and
// answers no more.
func TestShutdown(t *testing.T) { synctest.Test(t, shutdown) }

func shutdown(t *testing.T) {
	s := serveTimed(t, func(s *served) { s.http.RegisterOnShutdown(s.fast.Stop) })
	asked, mixed, half := s.dial(), s.dial(), s.dial()
	asked.send(get("/fast"))
	asked.want(mix[0].want)
	mixed.send(get("/slow") + get("/fast"))
	mixed.want(mix[1].want, mix[0].want)
	half.send(get("/fast") + "GET /fa")
	half.want(mix[0].want)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second) // net/http waits 5 s for new connections
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	for _, c := range []*client{asked, mixed, half} {
		if got := c.closed(); got != "" {
			t.Errorf("after the shutdown came %q", got)
		}
	}
}

// TestStopped leaves all to net/http.
func TestStopped(t *testing.T) {
	s := serve(t, nil)
	s.fast.Stop()
	c := s.dial()
	c.send(get("/fast") + get("/fast"))
	c.want(`http GET /fast shop ""`, `http GET /fast shop ""`)
}

// blocked is a connection whose client reads nothing until it is told to.
type blocked struct {
	pieces
	writing, read chan struct{}
	closed        bool
}

func (b *blocked) Write(p []byte) (int, error) {
	close(b.writing)
	<-b.read
	if b.closed {
		return 0, net.ErrClosed
	}
	return len(p), nil
}

func (b *blocked) Close() error { b.closed = true; return nil }

// TestCloseBehindAnAnswer closes a connection while an answer is being written: the
// client gets all of it.
func TestCloseBehindAnAnswer(t *testing.T) {
	b := &blocked{pieces: pieces{rest: []byte(get("/fast") + get("/fast")), size: len(get("/fast"))}, writing: make(chan struct{}), read: make(chan struct{})}
	c := (&fastpath.Server{Judge: answering{}}).Wrap(b)
	c.Follow(http.StateNew)
	done := make(chan error)
	go func() {
		_, err := c.Read(make([]byte, 100))
		done <- err
	}()
	<-b.writing
	if err := c.Close(); err != nil || b.closed {
		t.Errorf("closed at once: %v", err)
	}
	close(b.read)
	if err := <-done; !errors.Is(err, net.ErrClosed) || !b.closed {
		t.Errorf("read: %v, closed %t", err, b.closed)
	}
	if len(b.rest) == 0 {
		t.Error("it has read on")
	}
}

// TestFilesAndHalfClose reaches what the connection below can do.
func TestFilesAndHalfClose(t *testing.T) {
	s := serve(t, func(s *served) {
		s.http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100000")
			_, _ = io.Copy(w, io.LimitReader(strings.NewReader(strings.Repeat("x", 200_000)), 100_000))
		})
	})
	c := s.dial()
	c.send(get("/slow") + get("/fast"))
	if got := c.answer(); len(got) != 100_000 {
		t.Errorf("%d bytes", len(got))
	}
	c.want(mix[0].want)
	_ = c.Conn.(*net.TCPConn).CloseWrite()
	if got := c.closed(); got != "" {
		t.Errorf("got %q", got)
	}
}

// verbose answers so long that each answer is written by itself.
type verbose struct {
	late chan time.Duration // how old a request's Now is
}

func (verbose) Concerns(*fastpath.Request) bool { return true }

func (v verbose) Judge(out []byte, r *fastpath.Request) ([]byte, bool) {
	if r.Target == "/panic" {
		panic("nil map")
	}
	if v.late != nil {
		v.late <- time.Since(r.Now)
	}
	said := strings.Repeat("x", 40<<10)
	return fmt.Appendf(out, "HTTP/1.1 409 Conflict\r\nContent-Length: %d\r\n\r\n%s", len(said), said), true
}

// TestNowBehindASlowReader judges what was buffered while an answer could not be written by
// the time at which it is judged, and lets the client be idle from then on.
func TestNowBehindASlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := make(chan time.Duration, 100)
		s := serveTimed(t, func(s *served) {
			timed(fastpath.Timeouts{Header: time.Minute, Request: time.Minute, Idle: time.Minute, Write: 10 * long})(s)
			s.fast.Judge = verbose{late}
		})
		c := s.dial()
		_ = c.SetDeadline(time.Time{})
		c.send(get("/fast") + get("/fast"))
		for i := range 2 {
			time.Sleep(long)
			if got := <-late; got != 0 {
				t.Errorf("request %d is judged as it would have been %v ago", i+1, got)
			}
			c.answer()
		}
		time.Sleep(brief) // idle, but not for long
		c.send(get("/fast"))
		if got := <-late; got != 0 {
			t.Errorf("a request that comes later is judged as it would have been %v ago", got)
		}
		c.answer()
	})
}

// failing is a connection that takes a part of the first answer and then no more.
type failing struct {
	pieces
	writes int
	closed bool
}

func (f *failing) Write(p []byte) (int, error) {
	f.writes++
	return len(p) / 2, os.ErrDeadlineExceeded
}

func (f *failing) Close() error { f.closed = true; return nil }

// TestNothingBehindHalfAnAnswer writes nothing more when an answer could not be written:
// the client would take it for the rest of that one.
func TestNothingBehindHalfAnAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		judge fastpath.Judge
		last  string
	}{
		"nothing":        {verbose{}, ""},
		"a request":      {verbose{}, get("/fast")},
		"one to lend":    {answering{}, get("/slow")},
		"one to leave":   {answering{}, "GET /slow HTTP/1.0\r\n\r\n"},
		"half a request": {answering{}, "GET /fast HT"},
	} {
		requests := get("/fast") + c.last
		f := &failing{pieces: pieces{rest: []byte(requests + requests), size: len(requests)}}
		conn := (&fastpath.Server{Judge: c.judge}).Wrap(f)
		conn.Follow(http.StateNew)
		for range 2 {
			if n, err := conn.Read(make([]byte, 100)); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: reading gives %d bytes, %v", name, n, err)
			}
		}
		if f.writes != 1 {
			t.Errorf("%s: it has written %d times", name, f.writes)
		}
	}
}

// TestPanicClosesTheConnection closes what a panic has left, when net/http is done with it.
func TestPanicClosesTheConnection(t *testing.T) {
	requests := get("/panic")
	f := &failing{pieces: pieces{rest: []byte(requests), size: len(requests)}}
	c := (&fastpath.Server{Judge: verbose{}}).Wrap(f)
	c.Follow(http.StateNew)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is gone")
			}
		}()
		_, _ = c.Read(make([]byte, 100))
	}()
	_ = c.Close() // as net/http does
	c.Follow(http.StateClosed)
	if !f.closed {
		t.Error("the connection is open")
	}
}

package fastpath_test

import (
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/fastpath"
)

// These tests are about sockets of the system, which are read and written without
// net.Conn where that is possible. What they share with other connections is tested there.

// onSockets runs a test on TCP, on a Unix socket, and on what hides its socket.
func onSockets(t *testing.T, change func(*served), test func(t *testing.T, s *served)) {
	t.Run("tcp", func(t *testing.T) { test(t, serve(t, change)) })
	t.Run("unix", func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "s")
		ln, err := net.Listen("unix", name)
		if err != nil {
			t.Fatal(err)
		}
		test(t, serveOn(t, ln, func() (net.Conn, error) { return net.Dial("unix", name) }, change))
	})
	t.Run("hidden", func(t *testing.T) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		test(t, serveOn(t, hiding{ln}, func() (net.Conn, error) { return net.Dial("tcp", ln.Addr().String()) }, change))
	})
}

// hiding gives connections that only net.Conn's methods reach.
type hiding struct{ net.Listener }

func (h hiding) Accept() (net.Conn, error) {
	c, err := h.Listener.Accept()
	return struct{ net.Conn }{c}, err
}

var halfABody = strings.TrimSuffix(post("/fast", "body"), "dy")

// halfClose ends what the client sends.
func (c *client) halfClose() {
	c.t.Helper()
	if err := c.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		c.t.Fatal(err)
	}
}

// TestSlowReader reads nothing until all is asked: answers that the socket does not take
// wait, and come in their order.
func TestSlowReader(t *testing.T) {
	onSockets(t, nil, func(t *testing.T, s *served) {
		const times = 20_000
		long := strings.Repeat("x", 500)
		c := s.dial()
		asked := make(chan error, 1)
		go func() { // until no more is accepted, because the peer does not read
			_, err := io.WriteString(c, strings.Repeat(get("/fast/"+long), times)+get("/fast/last"))
			asked <- err
		}()
		c.want(`fast GET /fast/` + long + ` shop ""`)
		for range times - 1 {
			c.answer()
		}
		c.want(`fast GET /fast/last shop ""`)
		if err := <-asked; err != nil {
			t.Error(err)
		}
	})
}

// TestEnds ends connections from the client's side: in between, behind a request, and in
// the middle of one.
func TestEnds(t *testing.T) {
	onSockets(t, nil, func(t *testing.T, s *served) {
		for name, last := range map[string]string{"between": "", "half a head": "GET /fast HT", "half a body": halfABody} {
			c := s.dial()
			c.send(get("/fast"))
			c.want(mix[0].want)
			c.send(get("/fast") + last)
			c.halfClose()
			c.want(mix[0].want)
			if got := c.closed(); strings.Contains(got, "409") {
				t.Errorf("%s: got %q", name, got)
			}
		}
	})
}

// TestHalfARequestIsNetHTTPs ends connections in the middle of a request: net/http says
// what it says to others.
func TestHalfARequestIsNetHTTPs(t *testing.T) {
	onSockets(t, nil, func(t *testing.T, s *served) {
		alone := serve(t, func(s *served) { s.http.ConnState = nil })
		for _, half := range []string{"G", "GET /fast HT", "GET /fast HTTP/1.1\r\nHost: shop\r\n", halfABody} {
			c, other := s.dial(), alone.dial()
			for _, c := range []*client{c, other} {
				c.send(half)
				c.halfClose()
			}
			if got, want := date.ReplaceAllString(c.closed(), "Date"), date.ReplaceAllString(other.closed(), "Date"); got != want || want == "" {
				t.Errorf("%q: the answer is %q, net/http gives %q", half, got, want)
			}
		}
	})
}

// TestManyOneByOne sends more than a buffer holds, one request after the other.
func TestManyOneByOne(t *testing.T) {
	onSockets(t, nil, func(t *testing.T, s *served) {
		c := s.dial()
		request := get("/fast/") // a buffer ends with one
		for range 20_000 / len(request) {
			c.send(request)
			c.want(`fast GET /fast/ shop ""`)
		}
	})
}

// TestCloseWrite ends what the server sends, and not what it reads.
func TestCloseWrite(t *testing.T) {
	s := serve(t, nil)
	c := s.dial()
	c.send(get("/fast"))
	c.want(mix[0].want)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.conns[0].CloseWrite(); err != nil {
		t.Error(err)
	}
	if got := c.closed(); got != "" {
		t.Errorf("got %q", got)
	}
	c.send(get("/fast"))
}

// TestReset ends a connection that its client resets while it waits.
func TestReset(t *testing.T) {
	closed := make(chan struct{}, 1)
	onSockets(t, func(s *served) {
		follow := s.http.ConnState
		s.http.ConnState = func(c net.Conn, state http.ConnState) {
			follow(c, state)
			if state == http.StateClosed {
				closed <- struct{}{}
			}
		}
	}, func(t *testing.T, s *served) {
		c := s.dial()
		c.send(get("/fast"))
		c.want(mix[0].want)
		if tcp, ok := c.Conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = c.Close()
		<-closed
	})
}

// TestSocketDeadlines ends connections that say nothing, or too little, after requests that
// were answered here.
func TestSocketDeadlines(t *testing.T) {
	for name, c := range map[string]struct {
		timeouts fastpath.Timeouts
		last     string
	}{
		"idle":   {fastpath.Timeouts{Header: long, Request: long, Idle: brief}, ""},
		"head":   {fastpath.Timeouts{Header: 2 * time.Second, Request: long, Idle: long}, "GET /fast HT"},
		"a body": {fastpath.Timeouts{Header: long, Request: brief, Idle: long, Body: brief}, halfABody},
	} {
		t.Run(name, func(t *testing.T) {
			onSockets(t, timed(c.timeouts), func(t *testing.T, s *served) {
				conn := s.dial()
				conn.send(get("/fast") + get("/fast"))
				conn.want(mix[0].want, mix[0].want)
				conn.send(c.last)
				if got := conn.closed(); strings.Contains(got, "409") {
					t.Errorf("got %q", got)
				}
			})
		})
	}
}

// TestBodyGoesOnSlowly lends a request whose body is late, and answers the next one.
func TestBodyGoesOnSlowly(t *testing.T) {
	change := func(s *served) {
		timed(fastpath.Timeouts{Header: long, Request: long, Idle: long, Body: time.Millisecond})(s)
		s.delegated = make(chan struct{}, 1)
	}
	onSockets(t, change, func(t *testing.T, s *served) {
		c := s.dial()
		request := post("/fast", "late")
		c.send(get("/fast") + request[:len(request)-2])
		c.want(mix[0].want)
		<-s.delegated // the handler has it, and reads the body
		c.send(request[len(request)-2:] + get("/fast"))
		c.want(`http POST /fast shop "late"`, mix[0].want)
	})
}

// closing closes the connection while it is answered.
type closing struct {
	answering
	s *served
}

func (j *closing) Judge(out []byte, r *fastpath.Request) ([]byte, bool) {
	if strings.HasSuffix(r.Target, "/close") {
		j.s.mu.Lock()
		defer j.s.mu.Unlock()
		for _, c := range j.s.conns {
			_ = c.Close()
		}
	}
	return j.answering.Judge(out, r)
}

// TestCloseDuringAnAnswer closes a connection that is being answered: the client gets the
// answer, and then the end.
func TestCloseDuringAnAnswer(t *testing.T) {
	onSockets(t, func(s *served) { s.fast.Judge = &closing{s: s} }, func(t *testing.T, s *served) {
		c := s.dial()
		c.send(get("/fast"))
		c.want(mix[0].want)
		c.send(get("/fast/close"))
		c.want(`fast GET /fast/close shop ""`)
		if got := c.closed(); got != "" {
			t.Errorf("got %q", got)
		}
	})
}

// TestStopWhileWaiting closes connections that wait for their next request.
func TestStopWhileWaiting(t *testing.T) {
	onSockets(t, nil, func(t *testing.T, s *served) {
		c := s.dial()
		c.send(get("/fast"))
		c.want(mix[0].want)
		s.fast.Stop()
		if got := c.closed(); got != "" {
			t.Errorf("got %q", got)
		}
	})
}

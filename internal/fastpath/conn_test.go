package fastpath_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/fastpath"
)

// answering is a judge for tests: it answers what is asked below /fast, and says what
// it has read.
type answering struct{}

func (answering) Concerns(r *fastpath.Request) bool { return strings.HasPrefix(r.Target, "/fast") }

func (answering) Judge(out []byte, r *fastpath.Request) ([]byte, bool) {
	if strings.HasSuffix(r.Target, "/unsure") {
		return out, false
	}
	said := describe("fast", r.Method, r.Target, r.Host, string(r.Body))
	return fmt.Appendf(out, "HTTP/1.1 409 Conflict\r\nContent-Length: %d\r\n\r\n%s", len(said), said), true
}

func describe(who, method, target, host, body string) string {
	return fmt.Sprintf("%s %s %s %s %q\n", who, method, target, host, body)
}

// served is a net/http server behind the wrapper.
type served struct {
	t         *testing.T
	open      func() (net.Conn, error) // a connection to it
	http      *http.Server
	fast      *fastpath.Server
	delegated chan struct{} // signalled when the handler has a request; may be nil

	mu    sync.Mutex
	conns []*fastpath.Conn
}

type wrapped struct {
	net.Listener
	s *served
}

func (l wrapped) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	conn := l.s.fast.Wrap(c)
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.s.conns = append(l.s.conns, conn)
	return conn, nil
}

// serve starts it. Its handler tells what net/http has read.
func serve(t *testing.T, change func(*served)) *served {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	open := func() (net.Conn, error) { return net.Dial("tcp", ln.Addr().String()) }
	return serveOn(t, ln, open, change)
}

func serveOn(t *testing.T, ln net.Listener, open func() (net.Conn, error), change func(*served)) *served {
	t.Helper()
	s := &served{open: open, t: t, fast: &fastpath.Server{Judge: answering{}}}
	s.http = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if s.delegated != nil {
				s.delegated <- struct{}{}
			}
			body, _ := io.ReadAll(r.Body)
			_, _ = io.WriteString(w, describe("http", r.Method, r.RequestURI, r.Host, string(body)))
		}),
		ConnState: func(c net.Conn, state http.ConnState) { c.(*fastpath.Conn).Follow(state) },
	}
	if change != nil {
		change(s)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.http.Serve(wrapped{ln, s})
	}()
	t.Cleanup(func() {
		_ = s.http.Close()
		<-done
	})
	return s
}

// client is one connection.
type client struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func (s *served) dial() *client {
	s.t.Helper()
	c, err := s.open()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(10 * time.Minute)) // a test that hangs says where
	return &client{s.t, c, bufio.NewReader(c)}
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

// answer reads one answer's body.
func (c *client) answer() string {
	c.t.Helper()
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(body)
}

// closed waits for the end of the connection and returns what came before.
func (c *client) closed() string {
	c.t.Helper()
	rest, err := io.ReadAll(c.r)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(rest)
}

func (c *client) want(answers ...string) {
	c.t.Helper()
	for i, want := range answers {
		if got := c.answer(); got != want+"\n" {
			c.t.Errorf("answer %d is %q, want %q", i+1, got, want)
		}
	}
}

func get(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: shop\r\n\r\n" }

func post(path, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: shop\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
}

// mix has requests of each sort, and what comes of each.
var mix = []struct{ send, want string }{
	{get("/fast"), `fast GET /fast shop ""`},
	{get("/slow"), `http GET /slow shop ""`},
	{post("/fast", `{"sku":"a"}`), `fast POST /fast shop "{\"sku\":\"a\"}"`},
	{post("/fast/unsure", get("/fast")), `http POST /fast/unsure shop "GET /fast HTTP/1.1\r\nHost: shop\r\n\r\n"`},
	{post("/slow", get("/fast")), `http POST /slow shop "GET /fast HTTP/1.1\r\nHost: shop\r\n\r\n"`},
	{post("/fast", ""), `fast POST /fast shop ""`},
	{post("/slow", ""), `http POST /slow shop ""`},
	{"HEAD /slow HTTP/1.1\r\nHost: shop\r\n\r\n" + get("/fast"), ``},
}

// TestMix sends requests of each sort over one connection: one by one, all at once,
// and byte by byte.
func TestMix(t *testing.T) {
	var all strings.Builder
	var want []string
	for range 5 {
		for _, m := range mix[:len(mix)-1] {
			all.WriteString(m.send)
			want = append(want, m.want)
		}
	}
	t.Run("one by one", func(t *testing.T) {
		c := serve(t, nil).dial()
		for range 5 {
			for _, m := range mix[:len(mix)-1] {
				c.send(m.send)
				c.want(m.want)
			}
		}
	})
	t.Run("pipelined", func(t *testing.T) {
		c := serve(t, nil).dial()
		c.send(all.String())
		c.want(want...)
	})
	t.Run("byte by byte", func(t *testing.T) {
		c := serve(t, func(s *served) { s.fast.Body = long }).dial()
		_ = c.Conn.(*net.TCPConn).SetNoDelay(true)
		for _, b := range []byte(all.String()) {
			c.send(string(b))
		}
		c.want(want...)
	})
	t.Run("half closed", func(t *testing.T) {
		c := serve(t, nil).dial()
		c.send(all.String() + get("/fast"))
		_ = c.Conn.(*net.TCPConn).CloseWrite()
		c.want(append(want, `fast GET /fast shop ""`)...)
		if rest := c.closed(); rest != "" {
			t.Errorf("after all answers came %q", rest)
		}
	})
}

// TestEveryCut sends two requests, the second in the body's place of a first that is
// not answered here, cut into two segments anywhere: what net/http reads ahead must
// never be taken for a request.
func TestEveryCut(t *testing.T) {
	s := serve(t, nil)
	text := get("/slow") + post("/slow", get("/fast")) + get("/fast")
	for cut := range len(text) {
		c := s.dial()
		_ = c.Conn.(*net.TCPConn).SetNoDelay(true)
		c.send(text[:cut])
		c.send(text[cut:])
		c.want(mix[1].want, mix[4].want, mix[0].want)
		_ = c.Close()
	}
}

// TestFollowsAfterBody lends a body that is larger than any buffer and arrives after
// its head.
func TestFollowsAfterBody(t *testing.T) {
	c := serve(t, nil).dial()
	body := strings.Repeat("x", 1<<20)
	message := post("/fast", body)
	c.send(message[:60])
	c.send(message[60:] + get("/fast"))
	if got := c.answer(); !strings.HasPrefix(got, `http POST /fast shop "xxxx`) || len(got) < 1<<20 {
		t.Errorf("the large request was answered with %.80q", got)
	}
	c.want(mix[0].want)
}

// TestOddIsLeft sends what cannot be framed beyond doubt, with requests behind it that
// would be answered here: net/http has all of it, and says what it says to others. They
// are more bytes than any misread length asks for ("+3" as digits is 2513).
func TestOddIsLeft(t *testing.T) {
	behind := strings.Repeat(get("/fast"), 85)
	alone := func(s *served) { s.http.ConnState = nil } // the wrapper leaves such a connection alone
	for name, odd := range map[string]string{
		"TE and CL":            "POST /fast HTTP/1.1\r\nHost: shop\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"TE":                   "POST /fast HTTP/1.1\r\nHost: shop\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		"TE, spelt oddly":      "POST /fast HTTP/1.1\r\nHost: shop\r\ntransfer-ENCODING: Chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		"TE identity":          "POST /fast HTTP/1.1\r\nHost: shop\r\nTransfer-Encoding: identity\r\n\r\n",
		"two lengths":          "POST /fast HTTP/1.1\r\nHost: shop\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
		"two lengths differ":   "POST /fast HTTP/1.1\r\nHost: shop\r\nContent-Length: 0\r\nContent-Length: 3\r\n\r\nabc",
		"a list of lengths":    "POST /fast HTTP/1.1\r\nHost: shop\r\nContent-Length: 3, 3\r\n\r\nabc",
		"a signed length":      "POST /fast HTTP/1.1\r\nHost: shop\r\nContent-Length: +3\r\n\r\nabc",
		"a hexadecimal length": "POST /fast HTTP/1.1\r\nHost: shop\r\nContent-Length: 0x3\r\n\r\nabc",
		"below the digits":     "POST /fast HTTP/1.1\r\nHost: shop\r\nContent-Length: 3/\r\n\r\nabc",
		"above the digits":     "POST /fast HTTP/1.1\r\nHost: shop\r\nContent-Length: 3:\r\n\r\nabc",
		"an empty length":      "POST /fast HTTP/1.1\r\nHost: shop\r\nContent-Length:\r\n\r\n",
		"a huge length":        "POST /fast HTTP/1.1\r\nHost: shop\r\nContent-Length: 18446744073709551616\r\n\r\n",
		"a folded line":        "GET /fast HTTP/1.1\r\nHost: shop\r\nX: a\r\n b\r\n\r\n",
		"folded at once":       "GET /fast HTTP/1.1\r\n Host: shop\r\n\r\n",
		"bare LF":              "GET /fast HTTP/1.1\nHost: shop\n\n",
		"one bare LF":          "GET /fast HTTP/1.1\r\nHost: shop\r\nX: a\n\r\n",
		"bare CR":              "GET /fast HTTP/1.1\r\nHost: shop\r\nX: a\rb\r\n\r\n",
		"CR twice":             "GET /fast HTTP/1.1\r\nHost: shop\r\nX: a\r\r\n\r\n",
		"NUL in a value":       "GET /fast HTTP/1.1\r\nHost: shop\r\nX: a\x00b\r\n\r\n",
		"NUL in a name":        "GET /fast HTTP/1.1\r\nHost: shop\r\nX\x00: ab\r\n\r\n",
		"space before colon":   "GET /fast HTTP/1.1\r\nHost: shop\r\nContent-Length : 3\r\n\r\nabc",
		"no name":              "GET /fast HTTP/1.1\r\nHost: shop\r\n: a\r\n\r\n",
		"no colon":             "GET /fast HTTP/1.1\r\nHost: shop\r\nabc\r\n\r\n",
		"Host twice":           "GET /fast HTTP/1.1\r\nHost: shop\r\nHost: shop\r\n\r\n",
		"no Host":              "GET /fast HTTP/1.1\r\nX: a\r\n\r\n",
		"empty Host":           "GET /fast HTTP/1.1\r\nHost: \r\n\r\n",
		"odd Host":             "GET /fast HTTP/1.1\r\nHost: a@b\r\n\r\n",
		"HTTP/1.0":             "GET /fast HTTP/1.0\r\nHost: shop\r\nConnection: keep-alive\r\n\r\n",
		"HTTP/1.2":             "GET /fast HTTP/1.2\r\nHost: shop\r\n\r\n",
		"HTTP/0.9":             "GET /fast\r\n",
		"two spaces":           "GET  /fast HTTP/1.1\r\nHost: shop\r\n\r\n",
		"a tab":                "GET\t/fast HTTP/1.1\r\nHost: shop\r\n\r\n",
		"a space in front":     " GET /fast HTTP/1.1\r\nHost: shop\r\n\r\n",
		"a line in front":      "\r\nGET /fast HTTP/1.1\r\nHost: shop\r\n\r\n",
		"no target":            "GET HTTP/1.1\r\nHost: shop\r\n\r\n",
		"Expect":               "POST /fast HTTP/1.1\r\nHost: shop\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabc",
		"Upgrade":              "GET /fast HTTP/1.1\r\nHost: shop\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
		"h2c":                  "GET /fast HTTP/1.1\r\nHost: shop\r\nHTTP2-Settings: a\r\n\r\n",
		"CONNECT":              "CONNECT shop:80 HTTP/1.1\r\nHost: shop\r\n\r\n",
		"Trailer":              "GET /fast HTTP/1.1\r\nHost: shop\r\nTrailer: X\r\n\r\n",
		"Connection names":     "GET /fast HTTP/1.1\r\nHost: shop\r\nConnection: close, X\r\n\r\n",
		"TLS":                  "\x16\x03\x01\x02\x00\x01",
		"HTTP/2":               "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"a long head":          "GET /fast HTTP/1.1\r\nHost: shop\r\nX: " + strings.Repeat("x", 20_000) + "\r\n\r\n",
		"many fields":          "GET /fast HTTP/1.1\r\nHost: shop\r\n" + strings.Repeat("X: a\r\n", 100) + "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			got, want := serve(t, nil).said(odd+behind), serve(t, alone).said(odd+behind)
			if got != want || want == "" {
				t.Errorf("the answer is %.300q, net/http gives %.300q", got, want)
			}
		})
	}
}

var date = regexp.MustCompile(`Date: [^\r]+`)

// said sends all that a connection will have, and returns all that comes, without the time.
func (s *served) said(text string) string {
	s.t.Helper()
	c := s.dial()
	c.send(text)
	_ = c.Conn.(*net.TCPConn).CloseWrite()
	return date.ReplaceAllString(c.closed(), "Date")
}

// TestLentIsFramed sends what is no business of a judge and yet has a clear end: the
// connection comes back.
func TestLentIsFramed(t *testing.T) {
	for name, other := range map[string]string{
		"absolute form":    "GET http://shop/fast HTTP/1.1\r\nHost: shop\r\n\r\n",
		"lower case":       "get /fast HTTP/1.1\r\nHost: shop\r\n\r\n",
		"number sign":      "GET /fast#x HTTP/1.1\r\nHost: shop\r\n\r\n",
		"Pragma":           "GET /fast HTTP/1.1\r\nHost: shop\r\nPragma: no-cache\r\n\r\n",
		"underscore":       "GET /fast HTTP/1.1\r\nHost: shop\r\nX_User: a\r\n\r\n",
		"the whole server": "OPTIONS * HTTP/1.1\r\nHost: shop\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, nil).dial()
			c.send(other + get("/fast"))
			if got := c.answer(); strings.HasPrefix(got, "fast") {
				t.Errorf("it was answered here: %q", got)
			}
			c.want(mix[0].want)
		})
	}
	t.Run("Connection: close", func(t *testing.T) {
		c := serve(t, nil).dial()
		c.send("GET /fast HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n" + get("/fast"))
		if got := c.closed(); !strings.Contains(got, "http GET /fast") || strings.Contains(got, "fast GET") {
			t.Errorf("got %q", got)
		}
	})
	t.Run("empty lines after a POST", func(t *testing.T) {
		c := serve(t, nil).dial()
		c.send(post("/fast", "a") + "\r\n" + get("/fast") + "\r\n" + get("/fast"))
		c.want(`fast POST /fast shop "a"`, mix[0].want)
		if got := c.answer(); got != "400 Bad Request" {
			t.Errorf("an empty line after a GET was answered with %q", got)
		}
	})
}

// TestHijack gives a connection to a handler, with what has arrived behind the
// request.
func TestHijack(t *testing.T) {
	s := serve(t, func(s *served) {
		s.http.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			got := make([]byte, len(get("/fast")))
			_, err = io.ReadFull(rw, got)
			fmt.Fprintf(conn, "%q %v", got, err)
		})
	})
	c := s.dial()
	c.send(get("/slow") + get("/fast"))
	if got, want := c.closed(), fmt.Sprintf("%q <nil>", get("/fast")); got != want {
		t.Errorf("the hijacker got %q", got)
	}
}

// TestStranger wraps a connection that net/http reads through something else: it is
// left alone.
func TestStranger(t *testing.T) {
	s := serve(t, func(s *served) { s.http.ConnState = nil })
	c := s.dial()
	c.send(get("/fast"))
	c.want(`http GET /fast shop ""`)
}

// TestClientGone tells the handler of a delegated request that its client has left.
func TestClientGone(t *testing.T) {
	gone := make(chan struct{})
	begun := make(chan struct{})
	s := serve(t, func(s *served) {
		s.http.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(begun)
			<-r.Context().Done()
			close(gone)
		})
	})
	c := s.dial()
	c.send(get("/fast") + get("/slow"))
	c.want(mix[0].want)
	<-begun
	_ = c.Close()
	<-gone
}

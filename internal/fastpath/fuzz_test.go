package fastpath_test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/fastpath"
)

// reader answers everything that it is asked about, and keeps what it has read.
type reader struct{ seen []heard }

type heard struct {
	method, target, host, body string
	header                     http.Header
}

func (*reader) Concerns(r *fastpath.Request) bool { return !strings.Contains(r.Target, "lend") }

func (j *reader) Judge(out []byte, r *fastpath.Request) ([]byte, bool) {
	h := heard{strings.Clone(r.Method), strings.Clone(r.Target), strings.Clone(r.Host), string(r.Body), http.Header{}}
	for name, value := range r.Fields {
		h.header.Add(strings.Clone(name), strings.Clone(value))
	}
	j.seen = append(j.seen, h)
	return append(out, '.'), true
}

// pieces is a connection on which bytes arrive in pieces, and then nothing more.
type pieces struct {
	net.Conn
	rest    []byte
	size    int
	written int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.rest[:min(len(p.rest), p.size)])
	p.rest = p.rest[n:]
	return n, nil
}

func (p *pieces) Write(b []byte) (int, error) {
	p.written += len(b)
	return len(b), nil
}

func (*pieces) SetReadDeadline(time.Time) error  { return nil }
func (*pieces) SetWriteDeadline(time.Time) error { return nil }
func (*pieces) Close() error                     { return nil }

// FuzzAgainstNetHTTP sends any bytes in pieces of any size. Whatever is answered here
// net/http must read as the same request with the same end; what is delegated must be one
// request that ends where net/http says; and all else must come to net/http as it is.
func FuzzAgainstNetHTTP(f *testing.F) {
	for _, m := range mix {
		f.Add([]byte(m.send+m.send), uint16(7))
	}
	for _, odd := range []string{
		"POST /lend HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nx-a:\tb \r\nX-A: c\r\nConnection: keep-alive\r\n\r\n",
		"GET /a%20b?c=d HTTP/1.1\r\nhOsT: [::1]:80\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"GET / HTTP/1.1\nHost: a\n\n", "GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", "GET http://a/ HTTP/1.1\r\nHost: b\r\nPragma: no-cache\r\n\r\n",
		"GET /% HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a%2?b=%2 HTTP/1.1\r\nHost: a\r\n\r\n", "GET /%2a?b=% HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		for _, size := range []uint16{4096, 0, 1, 2} {
			f.Add([]byte(odd), size)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, size uint16) {
		judge := new(reader)
		arriving := &pieces{rest: data, size: int(size) + 1}
		c := (&fastpath.Server{Judge: judge}).Wrap(arriving)
		c.Follow(http.StateNew)
		var given []byte // to net/http
		delegated, room := false, make([]byte, 14)
		for {
			n, err := c.Read(room)
			given = append(given, room[:n]...)
			if err != nil {
				break
			}
			if n == 0 { // it has a whole request, and waits
				delegated = true
				break
			}
		}
		if arriving.written != len(judge.seen) {
			t.Fatalf("%d bytes were written for %d answers", arriving.written, len(judge.seen))
		}
		b := bufio.NewReader(bytes.NewReader(data))
		posted := false
		for i, got := range judge.seen {
			r, err := next(b, posted)
			if err != nil {
				t.Fatalf("answer %d was given to what net/http does not read: %v", i, err)
			}
			posted = r.Method == http.MethodPost
			body, err := io.ReadAll(r.Body)
			if err != nil || r.Method != got.method || r.RequestURI != got.target || r.Host != got.host || string(body) != got.body || r.Close || len(r.TransferEncoding) > 0 {
				t.Fatalf("answer %d: read %+v, net/http reads %+v with %q, %v", i, got, r, body, err)
			}
			for name, values := range got.header {
				if !slices.Equal(values, r.Header[name]) {
					t.Fatalf("answer %d: %s is %q, to net/http %q", i, name, values, r.Header[name])
				}
			}
			if len(got.header) != len(r.Header) {
				t.Fatalf("answer %d: read %v, net/http reads %v", i, got.header, r.Header)
			}
		}
		left, _ := io.ReadAll(b)
		if !delegated {
			// what came of half a request is not a byte too many
			if !bytes.HasSuffix(left, given) {
				t.Fatalf("net/http gets %q of %q", given, left)
			}
			return
		}
		left = bytes.TrimLeft(left, "\r\n")
		if !bytes.HasPrefix(left, given) {
			t.Fatalf("net/http gets %q of %q", given, left)
		}
		one := bufio.NewReader(bytes.NewReader(left))
		if r, err := http.ReadRequest(one); err == nil {
			_, _ = io.Copy(io.Discard, r.Body)
			rest, _ := io.ReadAll(one)
			if end := len(left) - len(rest); end != len(given) {
				t.Fatalf("net/http gets %q, and reads %q", given, left[:end])
			}
		}
	})
}

// next reads the next request as net/http's server does.
func next(b *bufio.Reader, posted bool) (*http.Request, error) {
	if posted {
		peek, _ := b.Peek(4)
		n := 0
		for n < len(peek) && (peek[n] == '\r' || peek[n] == '\n') {
			n++
		}
		_, _ = b.Discard(n)
	}
	r, err := http.ReadRequest(b)
	if err == nil {
		delete(r.Header, "Host")
	}
	return r, err
}

package fastpath

import (
	"crypto/tls"
	"net"
	"time"
)

// Request is one request that a [Judge] decides on. It lies in the connection's buffer:
// its strings and its body are valid until the Judge returns, and must not be kept.
type Request struct {
	Method, Target, Host string
	// ContentLength is the length of the body; Measured: the request has a Content-Length.
	ContentLength int64
	Measured      bool
	// Body is complete when Judge is called.
	Body []byte
	// Now is when the last of it arrived, or later.
	Now time.Time
	// Since and Why are those of Postpone, if it was called for this request.
	Since time.Time
	Why   any
	// TLS is nil if the request came without TLS.
	TLS *tls.ConnectionState
	// Memo belongs to the Judge; it is kept from one request of a connection to the next.
	Memo any

	addrs net.Conn
	conn  *Conn // nil: the fields are in list
	b     []byte
	head  head

	list      []HeaderField
	wake      func()
	postponed bool
	wait      func()
}

// HeaderField is a header field of a request.
type HeaderField struct{ Name, Value string }

// MaxFields bounds the header fields of a request.
const MaxFields = maxFields

// NewRequest makes a request of another protocol than HTTP/1.1, which came on a connection. Its
// requests wait beside each other: wake is what Wake returns.
func NewRequest(c net.Conn, state *tls.ConnectionState, wake func()) Request {
	return Request{TLS: state, addrs: c, wake: wake}
}

// Wake returns what a Judge calls when requests that it has postponed are to be judged again;
// nil: the Judge itself waits. It may be called on any goroutine, and does not block.
func (r *Request) Wake() func() { return r.wake }

// Postpone says that the Judge is to be asked again after Wake, unless it returns true. It is
// for requests with a Wake. The Judge finds since and why in the request then.
func (r *Request) Postpone(since time.Time, why any) { r.postponed, r.Since, r.Why = true, since, why }

// Postponed reports whether Postpone was called, once.
func (r *Request) Postponed() bool {
	was := r.postponed
	r.postponed = false
	return was
}

// SetFields sets the header fields of a request from NewRequest.
func (r *Request) SetFields(fields []HeaderField) { r.list = fields }

// SetLength sets ContentLength from the only such field: digits and nothing else.
func (r *Request) SetLength(value string) bool {
	if r.Measured || len(value) == 0 || len(value) > 15 {
		return false
	}
	r.Measured = true
	for _, c := range []byte(value) {
		if c < '0' || c > '9' {
			return false
		}
		r.ContentLength = r.ContentLength*10 + int64(c-'0')
	}
	return true
}

// Proto is the version of HTTP that it came by, as net/http writes it.
func (r *Request) Proto() string {
	if r.conn == nil {
		return "HTTP/2.0"
	}
	return "HTTP/1.1"
}

// RemoteAddr is who sent it.
func (r *Request) RemoteAddr() net.Addr { return r.addrs.RemoteAddr() }

// LocalAddr is where it arrived.
func (r *Request) LocalAddr() net.Addr { return r.addrs.LocalAddr() }

// Fields yields the header fields in their order, names as they were written.
func (r *Request) Fields(yield func(name, value string) bool) {
	for i := range r.list {
		if !yield(r.list[i].Name, r.list[i].Value) {
			return
		}
	}
	for i := range r.head.count {
		f := &r.head.fields[i]
		if i != r.head.host && !yield(text(r.b, f.name), text(r.b, f.value)) {
			return
		}
	}
}

// Room returns out with room for an answer. A Judge calls it when it is about to append one.
func (r *Request) Room(out []byte) []byte {
	if out == nil && r.conn != nil {
		return r.conn.outRoom()
	}
	return out
}

// Flush sends the answers to earlier requests, which out ends with, and returns out
// without them. A Judge that waits must call it first, and then set Now.
func (r *Request) Flush(out []byte) []byte {
	c := r.conn
	if len(out) == 0 || c == nil {
		return out
	}
	c.out = out
	_ = c.flush() // reported again when this request is answered
	c.begin()
	return c.out
}

// Await says that the Judge is to be asked again after wait, unless it returns true. Meanwhile the
// connection holds no more than what was read. It is for requests without a Wake.
func (r *Request) Await(wait func()) { r.wait = wait }

// lay sets the strings once the head is complete.
func (r *Request) lay(b []byte) {
	h := &r.head
	r.b = b
	r.Method, r.Target, r.Host = text(b, h.method), text(b, h.target), text(b, h.fields[h.host].value)
	r.ContentLength, r.Measured = h.length, h.measured
}

// forget clears everything that points into the buffer.
func (r *Request) forget() {
	r.Method, r.Target, r.Host, r.Body, r.b = "", "", "", nil, nil
	r.head.reset()
}

// Judge decides which requests are answered at the connection. Many connections use it
// concurrently.
type Judge interface {
	// Concerns says, by the head alone, whether the request may be answered here, so
	// that it is worth waiting for its body.
	Concerns(*Request) bool
	// Judge appends the whole answer (RFC 9112, section 6) to out, which may be nil, and returns true, or
	// returns false to pass the request to net/http. An answer must leave the
	// connection open. Judge may wait only briefly, and only after Flush; Await takes longer.
	Judge(out []byte, r *Request) ([]byte, bool)
}

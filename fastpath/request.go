package fastpath

import (
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
	// Now is when the last of it arrived.
	Now time.Time
	// Memo belongs to the Judge; it is kept from one request of a connection to the next.
	Memo any

	conn *Conn
	b    []byte
	head head
}

// RemoteAddr is who sent it.
func (r *Request) RemoteAddr() net.Addr { return r.conn.RemoteAddr() }

// LocalAddr is where it arrived.
func (r *Request) LocalAddr() net.Addr { return r.conn.LocalAddr() }

// Fields yields the header fields in their order, names as they were written.
func (r *Request) Fields(yield func(name, value string) bool) {
	for i := range r.head.count {
		f := &r.head.fields[i]
		if i != r.head.host && !yield(text(r.b, f.name), text(r.b, f.value)) {
			return
		}
	}
}

// Flush sends the answers to earlier requests, which out ends with, and returns out
// without them. A Judge that waits must call it first, and then set Now.
func (r *Request) Flush(out []byte) []byte {
	c := r.conn
	if len(out) == 0 {
		return out
	}
	c.out = out
	_ = c.flush() // reported again when this request is answered
	c.begin()
	return c.out
}

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
	// Judge appends the whole answer (RFC 9112, section 6) to out and returns true, or
	// returns false to pass the request to net/http. An answer must leave the
	// connection open. Judge may wait only briefly, and only after Flush.
	Judge(out []byte, r *Request) ([]byte, bool)
}

package fastpath

import (
	"net"
	"time"
)

// Request is one request that a [Judge] is asked about. All of it lies in the
// connection's buffer: its strings and its body are good until the Judge returns, and
// nobody may keep them.
type Request struct {
	Method, Target, Host string
	// ContentLength is that of the body; Measured: the request says so itself.
	ContentLength int64
	Measured      bool
	// Body is whole when the request is judged.
	Body []byte
	// Now is when the last of it arrived.
	Now time.Time
	// Memo is the Judge's own, from one request of a connection to the next.
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

// Flush sends the answers to earlier requests, which out ends with, and returns what is left
// of it: nothing. A Judge that waits calls it first, and sets Now after it.
func (r *Request) Flush(out []byte) []byte {
	c := r.conn
	if len(out) == 0 {
		return out
	}
	c.out = out
	_ = c.flush() // said again when this request is answered
	c.begin()
	return c.out
}

// lay makes the strings, when the head is whole.
func (r *Request) lay(b []byte) {
	h := &r.head
	r.b = b
	r.Method, r.Target, r.Host = text(b, h.method), text(b, h.target), text(b, h.fields[h.host].value)
	r.ContentLength, r.Measured = h.length, h.measured
}

// forget leaves nothing that points into the buffer.
func (r *Request) forget() {
	r.Method, r.Target, r.Host, r.Body, r.b = "", "", "", nil, nil
	r.head.reset()
}

// Judge decides which requests are answered at the connection. It is used by many
// connections at once.
type Judge interface {
	// Concerns says, by the head alone, whether the request may be answered here: only
	// then is it worth waiting for its body.
	Concerns(*Request) bool
	// Judge appends the whole answer (RFC 9112, section 6) to out and returns true, or
	// returns false: net/http shall have the request. An answer leaves the connection
	// open. It may wait only for what ends soon, behind Flush.
	Judge(out []byte, r *Request) ([]byte, bool)
}

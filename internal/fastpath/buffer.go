package fastpath

import "sync"

const (
	smallBuffer = 4 << 10
	// mostBuffer bounds a request that is answered here, head and body.
	mostBuffer = 16 << 10
	// mostAtRest is what is moved out of its buffer while it waits: most requests are shorter.
	mostAtRest = 2 << 10
)

var (
	smallBuffers = sync.Pool{New: func() any { return new([smallBuffer]byte) }}
	largeBuffers = sync.Pool{New: func() any { return new([mostBuffer]byte) }}
	// answers are about 400 bytes each.
	outBuffers = sync.Pool{New: func() any { return new([smallBuffer]byte) }}
)

// mostHead is how long a head may be.
func (s *Server) mostHead() int {
	if s.MaxHead <= 0 || s.MaxHead > mostBuffer {
		return mostBuffer
	}
	return s.MaxHead
}

// room makes room in the buffer for at least one more byte. There is always enough for
// a request that may be answered here: take has handed over all larger ones.
func (c *Conn) room() {
	switch {
	case c.buf == nil:
		c.buf = smallBuffers.Get().(*[smallBuffer]byte)[:]
		c.start, c.end = 0, 0
	case c.start == c.end:
		c.start, c.end = 0, 0
		if len(c.buf) != smallBuffer {
			c.release()
			c.room()
		}
	case c.end < len(c.buf):
	case c.start > 0:
		c.end = copy(c.buf, c.buf[c.start:c.end])
		c.start = 0
	case len(c.buf) < smallBuffer:
		c.moveTo(smallBuffers.Get().(*[smallBuffer]byte)[:])
	default:
		c.moveTo(largeBuffers.Get().(*[mostBuffer]byte)[:])
	}
}

// moveTo moves what is buffered to another buffer.
func (c *Conn) moveTo(b []byte) {
	n := copy(b, c.buf[c.start:c.end])
	c.releaseBuffer()
	c.buf, c.start, c.end = b, 0, n
}

// rest leaves the connection with no more memory than what is buffered takes, or with that one buffer
// where it is more than mostAtRest: a crowd waits so.
func (c *Conn) rest() {
	if n := c.end - c.start; n <= mostAtRest {
		c.moveTo(make([]byte, n))
	}
	c.releaseOut()
}

// release returns the buffers.
func (c *Conn) release() {
	c.releaseBuffer()
	c.buf, c.start, c.end = nil, 0, 0
	c.releaseOut()
}

func (c *Conn) releaseBuffer() {
	switch len(c.buf) {
	case smallBuffer:
		smallBuffers.Put((*[smallBuffer]byte)(c.buf))
	case mostBuffer:
		largeBuffers.Put((*[mostBuffer]byte)(c.buf))
	}
}

// releaseOut returns the buffer for answers.
func (c *Conn) releaseOut() {
	if cap(c.out) == smallBuffer {
		outBuffers.Put((*[smallBuffer]byte)(c.out[:smallBuffer]))
	}
	c.out = nil
}

// outRoom is the buffer for answers.
func (c *Conn) outRoom() []byte {
	if c.out == nil {
		c.out = outBuffers.Get().(*[smallBuffer]byte)[:0]
	}
	return c.out
}

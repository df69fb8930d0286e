package fastpath

import "sync"

const (
	smallBuffer = 4 << 10
	// mostBuffer bounds a request that is answered here, head and body.
	mostBuffer = 16 << 10
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
		if len(c.buf) > smallBuffer {
			c.release()
			c.room()
		}
	case c.end < len(c.buf):
	case c.start > 0:
		c.end = copy(c.buf, c.buf[c.start:c.end])
		c.start = 0
	default:
		larger := largeBuffers.Get().(*[mostBuffer]byte)[:]
		c.end = copy(larger, c.buf[:c.end])
		smallBuffers.Put((*[smallBuffer]byte)(c.buf))
		c.buf = larger
	}
}

// release returns the buffers.
func (c *Conn) release() {
	switch len(c.buf) {
	case smallBuffer:
		smallBuffers.Put((*[smallBuffer]byte)(c.buf))
	case mostBuffer:
		largeBuffers.Put((*[mostBuffer]byte)(c.buf))
	}
	c.buf, c.start, c.end = nil, 0, 0
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

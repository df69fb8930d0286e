package fastpath

// HoldsBuffers reports whether the connection has a buffer. Only its reader may ask.
func (c *Conn) HoldsBuffers() bool { return c.buf != nil || c.out != nil }

// Buffered is how large the buffers of the connection are. Only its reader may ask.
func (c *Conn) Buffered() (in, out int) { return len(c.buf), cap(c.out) }

package fastpath

// HoldsBuffers reports whether the connection has a buffer. Only its reader may ask.
func (c *Conn) HoldsBuffers() bool { return c.buf != nil || c.out != nil }

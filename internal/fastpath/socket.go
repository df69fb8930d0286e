package fastpath

import (
	"net"
	"time"
)

// write writes an answer.
func (c *Conn) write(b []byte) error {
	if c.socket.at >= 0 {
		b = c.socket.send(b)
	}
	if len(b) == 0 {
		return nil
	}
	_, err := c.Conn.Write(b)
	c.request.Now = time.Now() // the write may have taken long
	return err
}

// shut closes the connection after an answer.
func (c *Conn) shut() error {
	if c.socket.at >= 0 {
		c.socket.shut = true // closed when the turn ends
	} else {
		_ = c.Conn.Close()
	}
	return net.ErrClosed
}

// receive waits for more input. On a plain socket it keeps answering until there is
// something for net/http, or an error.
func (c *Conn) receive() (takeStep, error) {
	if c.socket.raw != nil {
		return c.receiveDirectly()
	}
	if c.request.TLS != nil && c.start == c.end {
		if err := c.receiveFirst(); err != nil {
			return stepMore, err
		}
	}
	c.room()
	n, err := c.Conn.Read(c.buf[c.end:])
	if c.end += n; n > 0 {
		return stepMore, nil
	}
	return stepMore, err
}

// receiveFirst waits for the first byte of a request without a buffer: most connections of a crowd
// are idle. With TLS the rest of what has come costs no system call. net/http, too, waits for the
// first bytes of a request for as long as a connection may be idle.
func (c *Conn) receiveFirst() error {
	c.release()
	n, err := c.Conn.Read(c.first[:])
	if n == 0 {
		return err
	}
	c.room()
	c.buf[0], c.end = c.first[0], 1
	return nil
}

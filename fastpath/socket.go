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
	n, err := c.Conn.Read(c.buf[c.end:])
	if c.end += n; n > 0 {
		return stepMore, nil
	}
	return stepMore, err
}

package crowd

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
)

// Closed is an HTTP/2 connection (RFC 9113, prior knowledge) whose buyer allows the server to
// send headers but not one byte of a body: its initial window is 0.
type Closed struct {
	conn net.Conn
	next uint32
}

const (
	frameData, frameHeaders, frameSettings = 0x0, 0x1, 0x4
	endStream, endHeaders                  = 0x1, 0x4
	settingInitialWindow                   = 0x4
)

// DialClosed opens such a connection. What the server sends is read and thrown away; heard is
// called for each answer whose headers have come.
func DialClosed(addr string, heard func()) (*Closed, error) {
	conn, err := net.DialTimeout("tcp", addr, time.Minute)
	if err != nil {
		return nil, err
	}
	c := &Closed{conn: conn, next: 1}
	hello := []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	hello = append(hello, frame(frameSettings, 0, 0, []byte{0, settingInitialWindow, 0, 0, 0, 0})...)
	hello = append(hello, frame(frameSettings, 1, 0, nil)...) // the acknowledgement of the server's
	if _, err := conn.Write(hello); err != nil {
		conn.Close()
		return nil, err
	}
	go c.read(heard)
	return c, nil
}

// Close ends the connection.
func (c *Closed) Close() { c.conn.Close() }

// Ask sends an order on a stream of its own.
func (c *Closed) Ask(h *auditor.History, w Wish, id string) error {
	body := []byte(w.body())
	block := literal(nil, ":method", "POST")
	block = literal(block, ":scheme", "http")
	block = literal(block, ":path", "/api/order")
	block = literal(block, ":authority", "shop")
	block = literal(block, "content-type", "application/json")
	block = literal(block, "content-length", fmt.Sprint(len(body)))
	block = literal(block, "x-user-id", w.Buyer)
	block = literal(block, "x-attempt", id)
	if w.Key != "" {
		block = literal(block, "idempotency-key", w.Key)
	}
	text := frame(frameHeaders, endHeaders, c.next, block)
	text = append(text, frame(frameData, endStream, c.next, body)...)
	c.next += 2
	h.Heard(&auditor.Attempt{ID: id, Edge: "HTTP/2", Sent: h.Tick(), Buyer: w.Buyer, Key: w.Key, Lines: w.Lines, Err: "the buyer reads no body"})
	_, err := c.conn.Write(text)
	return err
}

// literal appends a header that is not indexed, in plain text (RFC 7541, 6.2.2).
func literal(block []byte, name, value string) []byte {
	block = append(block, 0)
	for _, s := range []string{name, value} {
		block = length(block, len(s))
		block = append(block, s...)
	}
	return block
}

// length is an integer with a prefix of seven bits (RFC 7541, 5.1).
func length(block []byte, n int) []byte {
	if n < 127 {
		return append(block, byte(n))
	}
	block = append(block, 127)
	for n -= 127; n >= 128; n >>= 7 {
		block = append(block, byte(n&127|128))
	}
	return append(block, byte(n))
}

func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	n := len(payload)
	head := []byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags, 0, 0, 0, 0}
	binary.BigEndian.PutUint32(head[5:], stream)
	return append(head, payload...)
}

func (c *Closed) read(heard func()) {
	head := make([]byte, 9)
	for {
		if _, err := io.ReadFull(c.conn, head); err != nil {
			return
		}
		n := int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
		if _, err := io.CopyN(io.Discard, c.conn, n); err != nil {
			return
		}
		if head[3] == frameHeaders {
			heard()
		}
	}
}

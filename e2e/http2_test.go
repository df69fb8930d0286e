package e2e_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// framed is a client that speaks HTTP/2 frame by frame, and gives the server a window of
// its choice for each answer.
type framed struct {
	t      *testing.T
	e      *edge
	conn   net.Conn
	frames *http2.Framer

	mu     sync.Mutex // guards writing, and what follows
	next   uint32
	head   bytes.Buffer
	coder  *hpack.Encoder
	heads  map[uint32]result
	resets map[uint32]bool
}

// dialFramed connects to an edge with TLS.
func dialFramed(t *testing.T, e *edge, window uint32) *framed {
	t.Helper()
	raw, err := net.Dial("tcp", e.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { raw.Close() })
	conn := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err := conn.Handshake(); err != nil {
		t.Fatal(err)
	}
	c := &framed{t: t, e: e, conn: conn, frames: http2.NewFramer(conn, conn), next: 1, heads: map[uint32]result{}, resets: map[uint32]bool{}}
	c.coder = hpack.NewEncoder(&c.head)
	c.frames.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := c.frames.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}); err != nil {
		t.Fatal(err)
	}
	if window > 0 {
		c.frames.WriteWindowUpdate(0, 1<<30)
	}
	return c
}

// read takes what comes, until the connection ends.
func (c *framed) read() {
	for {
		frame, err := c.frames.ReadFrame()
		if err != nil {
			return
		}
		c.mu.Lock()
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				c.frames.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !f.IsAck() {
				c.frames.WritePing(true, f.Data)
			}
		case *http2.MetaHeadersFrame:
			var r result
			for _, h := range f.Fields {
				switch h.Name {
				case ":status":
					r.status, _ = strconv.Atoi(h.Value)
				case "stockgate-refusal":
					r.reason = h.Value
				}
			}
			if _, seen := c.heads[f.StreamID]; !seen { // else it is the trailer
				c.heads[f.StreamID] = r
			}
		case *http2.RSTStreamFrame:
			c.resets[f.StreamID] = true
		}
		c.mu.Unlock()
	}
}

// order sends an order on a stream of its own.
func (c *framed) order(buyer string) (stream uint32) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	stream, body := c.next, `{"sku":"7"}`
	c.next += 2
	c.head.Reset()
	for _, h := range [][2]string{
		{":method", "POST"}, {":scheme", "https"}, {":authority", c.e.addr}, {":path", "/api/order"},
		{"content-type", "application/json"}, {"content-length", fmt.Sprint(len(body))}, {"x-user-id", buyer},
	} {
		c.coder.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]})
	}
	if err := c.frames.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: c.head.Bytes(), EndHeaders: true}); err != nil {
		c.t.Fatal(err)
	}
	if err := c.frames.WriteData(stream, true, []byte(body)); err != nil {
		c.t.Fatal(err)
	}
	return stream
}

// answered are the heads that have come, by their status and reason.
func (c *framed) answered() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]int{}
	for _, r := range c.heads {
		out[fmt.Sprint(r.status, r.reason)]++
	}
	return out
}

// headOf is what has come on a stream.
func (c *framed) headOf(stream uint32) (r result, come bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, come = c.heads[stream]
	return r, come
}

// reset says that the server has cut a stream off.
func (c *framed) reset(stream uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resets[stream]
}

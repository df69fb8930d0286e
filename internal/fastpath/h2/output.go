package h2

import (
	"encoding/binary"
	"time"

	"golang.org/x/net/http2"
)

// output is how far the server's frames have been written.
type output struct {
	header  [headerSize]byte
	filled  int // bytes of header
	frame   frameHeader
	left    uint32 // bytes of the frame that are to come
	block   bool   // a header block is open
	payload []byte // of SETTINGS and GOAWAY, as far as it was written
	waiting []byte // frames of the fast path for when the frame ends
	limits  limits
	sent    bool      // the SETTINGS
	until   time.Time // the deadline for writing answers; zero: there is none
}

// limits are what the server advertises.
type limits struct{ frame, streams, table, list uint32 }

// atBoundary reports whether other frames may be written now.
func (o *output) atBoundary() bool { return o.filled == 0 && o.left == 0 && !o.block }

// Write writes the server's frames, and between them what waits.
func (c *Conn) Write(p []byte) (int, error) {
	c.writing.Lock()
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.writeWaiting()
	if c.failed != nil {
		return 0, c.failed
	}
	c.unlimitWriting()
	o, from := &c.output, 0
	for i := 0; i < len(p); {
		if o.left == 0 {
			n := copy(o.header[o.filled:], p[i:])
			i += n
			if o.filled += n; o.filled == headerSize {
				o.filled = 0
				c.beginFrame(parseHeader(o.header[:]))
			}
			continue
		}
		n := min(len(p)-i, int(o.left))
		switch o.frame.kind {
		case http2.FrameGoAway:
			if len(o.payload) < 4 { // the stream in it may be changed
				if c.put(p[from:i]) != nil {
					return 0, c.failed
				}
				n = min(n, 4-len(o.payload))
				from = i + n
				if o.payload = append(o.payload, p[i:i+n]...); len(o.payload) == 4 && c.put(c.goAway()) != nil {
					return 0, c.failed
				}
			} else if len(o.payload) < 8 {
				n = min(n, 8-len(o.payload))
				o.payload = append(o.payload, p[i:i+n]...)
			}
		case http2.FrameSettings:
			if len(o.payload) < 256 {
				o.payload = append(o.payload, p[i:i+n]...)
			}
		}
		i += n
		if o.left -= uint32(n); o.left == 0 {
			c.endFrame()
		}
	}
	if c.put(p[from:]) != nil {
		return 0, c.failed
	}
	if o.sent {
		c.once.Do(func() { close(c.ready) })
	}
	if c.flow.starves() {
		c.wake()
	}
	return len(p), nil
}

// put writes to the client. Both locks are held; mu is not while it writes.
func (c *Conn) put(b []byte) error {
	if len(b) > 0 {
		c.mu.Unlock()
		_, err := c.conn.Write(b)
		c.mu.Lock()
		c.failed = err
	}
	return c.failed
}

// writeWaiting writes what has come to wait, and lets others write. Both locks are held, mu
// still when it returns.
func (c *Conn) writeWaiting() {
	o := &c.output
	for len(o.waiting) > 0 && o.atBoundary() && c.failed == nil && !c.erred {
		b := o.waiting
		o.waiting = nil
		_ = c.put(b) // reported by the next write
	}
	c.writing.Unlock()
}

// beginFrame notes a frame of the server.
func (c *Conn) beginFrame(h frameHeader) {
	o := &c.output
	o.frame, o.left, o.payload = h, h.length, o.payload[:0]
	switch h.kind {
	case http2.FrameData:
		c.flow.server -= int64(h.length)
		if h.flags&http2.FlagDataEndStream != 0 {
			delete(c.open, h.stream)
		}
	case http2.FrameHeaders:
		o.block = true
		if h.flags&http2.FlagHeadersEndStream != 0 {
			delete(c.open, h.stream)
		}
	case http2.FramePushPromise:
		o.block = true
	case http2.FrameRSTStream:
		delete(c.open, h.stream)
	}
	if o.left == 0 {
		c.endFrame()
	}
}

// endFrame notes the end of a frame of the server.
func (c *Conn) endFrame() {
	o := &c.output
	switch h := o.frame; {
	case h.kind == http2.FrameSettings && h.flags&http2.FlagSettingsAck != 0:
		c.peer.acknowledge()
	case h.kind == http2.FrameSettings:
		o.limits.read(o.payload)
		o.sent = true
	case o.block && h.flags&http2.FlagHeadersEndHeaders != 0:
		o.block = false
		c.peer.wroteHeaders()
	case h.kind == http2.FrameGoAway:
		c.wentAway()
	}
}

// read reads SETTINGS of the server.
func (l *limits) read(b []byte) {
	for ; len(b) >= 6; b = b[6:] {
		v := binary.BigEndian.Uint32(b[2:])
		switch http2.SettingID(binary.BigEndian.Uint16(b)) {
		case http2.SettingMaxFrameSize:
			l.frame = v
		case http2.SettingMaxConcurrentStreams:
			l.streams = v
		case http2.SettingHeaderTableSize:
			l.table = v
		case http2.SettingMaxHeaderListSize:
			l.list = v
		}
	}
}

// goAway returns the stream that stands in the server's GOAWAY: no lower than those that were
// answered here.
func (c *Conn) goAway() []byte {
	c.gone, c.lastID = true, max(binary.BigEndian.Uint32(c.output.payload)&maxWindow, c.answered)
	return binary.BigEndian.AppendUint32(nil, c.lastID)
}

// wentAway is called behind a GOAWAY. If it was no error, requests up to its stream that the
// server does not process are refused: the client may send them again.
func (c *Conn) wentAway() {
	p := c.output.payload
	if len(p) < 8 {
		return
	}
	if http2.ErrCode(binary.BigEndian.Uint32(p[4:])) != http2.ErrCodeNo {
		c.erred = true
		return
	}
	last := binary.BigEndian.Uint32(p) & maxWindow
	for stream := range c.open {
		if stream > last && stream <= c.lastID {
			c.output.waiting = appendReset(c.output.waiting, stream, http2.ErrCodeRefusedStream)
			delete(c.open, stream)
		}
	}
	c.left = true
	c.wake()
}

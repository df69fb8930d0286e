package h2

import (
	"encoding/binary"
	"slices"

	"golang.org/x/net/http2"
)

// frame treats the next frame of the client. It returns false when more input is needed, or
// when what is in pass must go first.
func (c *Conn) frame() (bool, error) {
	b := c.input.bytes()
	if c.skip > 0 {
		n := min(c.skip, int64(len(b)))
		c.input.start += int(n)
		if c.skip -= n; c.skip > 0 {
			return c.input.load(), nil
		}
		c.out = appendReset(c.out, c.skipped.stream, http2.ErrCodeStreamClosed)
		c.refund += c.skipped.length
		return true, c.flushFull()
	}
	if len(b) < headerSize {
		return c.input.load(), nil
	}
	h := parseHeader(b)
	switch {
	case !c.settings && h.kind != http2.FrameSettings, h.length > c.blocks.frame, c.unread:
		c.through(h) // an error, which the server answers
		c.unread = c.unread && (h.kind != http2.FrameContinuation || h.flags&http2.FlagContinuationEndHeaders == 0)
		return true, nil
	case h.kind == http2.FrameHeaders:
		return c.headers(h)
	case h.kind == http2.FrameData:
		return c.data(h)
	}
	whole := b[headerSize:min(len(b), headerSize+int(h.length))]
	if len(whole) < int(h.length) && c.reads(h) {
		return c.input.load(), nil
	}
	switch h.kind {
	case http2.FrameSettings:
		c.settings = true
		if c.reads(h) && h.flags&http2.FlagSettingsAck == 0 {
			if slices.ContainsFunc(c.held, func(h *held) bool { return h.window > 0 }) {
				c.release(maxWindow) // it may make a window too large
			}
			c.mu.Lock()
			c.peer.announce(whole)
			c.mu.Unlock()
		}
	case http2.FrameWindowUpdate:
		if c.reads(h) && c.windowUpdate(h, binary.BigEndian.Uint32(whole)&maxWindow) {
			return true, nil
		}
	case http2.FrameRSTStream:
		if c.reads(h) && c.reset(h.stream) {
			c.input.start += headerSize + int(h.length)
			return true, nil
		}
	case http2.FramePriority: // of itself it resets a stream
		if c.find(h.stream) != nil {
			c.release(h.stream)
		}
	case http2.FramePriorityUpdate, // one that cannot be read resets a stream
		http2.FrameGoAway: // the server takes no new streams afterwards
		c.release(maxWindow)
	}
	c.through(h)
	return true, nil
}

// reads reports whether a frame other than HEADERS and DATA must be whole, because it is read
// here. Those that are malformed are left to the server.
func (c *Conn) reads(h frameHeader) bool {
	switch h.kind {
	case http2.FrameSettings:
		return h.stream == 0 && h.length%6 == 0 && h.length <= 600
	case http2.FrameWindowUpdate, http2.FrameRSTStream:
		return h.length == 4
	}
	return false
}

// through passes the next frame to the server as it comes.
func (c *Conn) through(h frameHeader) {
	c.raw = headerSize + int64(h.length)
}

// isClosedHere reports whether a stream without a request that waits is closed, and the server
// takes it for one that has not begun.
func (c *Conn) isClosedHere(stream uint32) bool {
	return stream%2 == 1 && stream > c.seen && stream <= c.highest
}

// windowUpdate treats a WINDOW_UPDATE. It returns false if the frame goes to the server as it is.
func (c *Conn) windowUpdate(h frameHeader, n uint32) bool {
	const size = headerSize + 4
	switch held := c.find(h.stream); {
	case h.stream == 0:
		if n == 0 {
			return false
		}
		c.mu.Lock()
		n, fits := c.flow.grant(int64(n))
		back := c.flow.back
		if !fits {
			c.flow.back = 0
			c.flow.server += back
		}
		c.mu.Unlock()
		if !fits { // the server finds the overflow when it has all credit
			if back > 0 {
				c.pass = appendWindowUpdate(c.pass, 0, uint32(back))
			}
			return false
		}
		if n > 0 {
			c.pass = appendWindowUpdate(c.pass, 0, uint32(n))
		}
	case held != nil:
		c.mu.Lock()
		initial := c.peer.mostWindow()
		c.mu.Unlock()
		if n == 0 || initial+held.window+int64(n) > maxWindow {
			c.release(h.stream)
			return false
		}
		held.window += int64(n)
	case c.isClosedHere(h.stream):
		if n == 0 {
			c.out = appendReset(c.out, h.stream, http2.ErrCodeProtocol)
		}
	default:
		return false
	}
	c.input.start += size
	return true
}

// reset treats a RST_STREAM. It returns false if the frame goes to the server.
func (c *Conn) reset(stream uint32) bool {
	if h := c.find(stream); h != nil {
		c.forget(h)
		return true
	}
	if c.isClosedHere(stream) {
		return true
	}
	c.mu.Lock()
	delete(c.open, stream)
	c.mu.Unlock()
	return false
}

// data treats a DATA frame.
func (c *Conn) data(h frameHeader) (bool, error) {
	held := c.find(h.stream)
	if held == nil {
		b, padded := c.input.bytes(), h.flags&http2.FlagDataPadded != 0
		if padded && h.length > 0 && len(b) <= headerSize {
			return c.input.load(), nil
		}
		if !c.isClosedHere(h.stream) || padded && (h.length == 0 || uint32(b[headerSize]) > h.length-1) {
			c.through(h)
			return true, nil
		}
		// the stream is closed, and the server has not seen it
		c.skip, c.skipped = headerSize+int64(h.length), h
		return true, nil
	}
	if held.postponed || h.length > maxBody || c.heldBytes+int(h.length) > maxHeld || held.frames >= maxFrames {
		c.release(h.stream)
		c.through(h)
		return true, nil
	}
	b := c.input.bytes()
	if len(b) < headerSize+int(h.length) {
		return c.input.load(), nil
	}
	whole := b[:headerSize+int(h.length)]
	payload, ok := unpad(whole[headerSize:], h.flags&http2.FlagDataPadded != 0)
	if !ok || held.measured && int64(held.body+len(payload)) > held.length || held.body+len(payload) > maxBody {
		c.release(h.stream)
		c.through(h)
		return true, nil
	}
	c.input.start += len(whole)
	if h.flags&http2.FlagDataEndStream == 0 {
		held.add(whole, payload)
		c.heldBytes += len(whole)
		return true, nil
	}
	c.complete(held, whole, payload)
	return true, c.flushFull()
}

// unpad returns the payload of a frame without its padding; false: the padding is longer.
func unpad(b []byte, padded bool) ([]byte, bool) {
	if !padded {
		return b, true
	}
	if len(b) == 0 || int(b[0]) > len(b)-1 {
		return nil, false
	}
	return b[1 : len(b)-int(b[0])], true
}

// flushFull writes the answers if there are many.
func (c *Conn) flushFull() error {
	if len(c.out) < maxOut {
		return nil
	}
	return c.flush()
}

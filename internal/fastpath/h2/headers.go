package h2

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// blockReader is where the Framer reads header blocks from.
type blockReader struct {
	c      *Conn
	frames int // of the current block
}

// errFlood ends a header block of too many frames.
var errFlood = errors.New("too many CONTINUATION frames")

// Read waits for input if there is none: the Framer reads whole blocks only.
func (r *blockReader) Read(p []byte) (int, error) {
	if len(p) == headerSize { // the Framer reads the header of a frame at once
		if r.frames++; r.frames > maxContinuations {
			return 0, errFlood
		}
	}
	for {
		if n := r.c.input.take(p); n > 0 {
			return n, nil
		}
		if err := r.c.fill(); err != nil {
			return 0, err
		}
	}
}

// headers treats a header block, which begins with the next frame. It returns false when more
// input is needed, or when what is in pass must go first.
func (c *Conn) headers(h frameHeader) (bool, error) {
	b := c.input.bytes()
	whole := len(b) >= headerSize+int(h.length)
	if !whole && (headerSize+h.length <= largeInput || len(b) < headerSize+6) {
		return c.input.load(), nil
	}
	if (!whole || h.flags&http2.FlagHeadersEndHeaders == 0) && len(c.pass) > 0 {
		return false, nil // reading the block may take long
	}
	fragment, priority, ok := c.unwrap(b, h)
	if !ok {
		if c.find(h.stream) != nil {
			c.release(h.stream)
		}
		c.unread = h.flags&http2.FlagHeadersEndHeaders == 0
		c.through(h)
		return true, nil
	}
	d := head{priority: priority, hasPrio: h.flags&http2.FlagHeadersPriority != 0, ended: h.flags&http2.FlagHeadersEndStream != 0}
	if whole && h.flags&http2.FlagHeadersEndHeaders != 0 {
		wrong := c.blocks.decode(fragment)
		c.input.start += headerSize + int(h.length)
		if wrong != blockRight {
			c.fail(h, wrong)
			return true, nil
		}
		d.fields, d.truncated = c.blocks.fields, c.blocks.truncated
	} else {
		c.blocks.source.frames = 0
		f, err := c.blocks.framer().ReadFrame()
		block, ok := f.(*http2.MetaHeadersFrame)
		if err != nil || !ok {
			wrong := errorOf(block, err)
			if wrong == blockRight {
				return false, err
			}
			c.fail(h, wrong)
			return true, nil
		}
		d.fields, d.truncated = block.Fields, block.Truncated
	}
	switch waits := c.find(h.stream); {
	case waits != nil: // trailers
		c.release(h.stream)
		c.encode(h.stream, &d)
	case c.ignores(h.stream):
		c.encode(h.stream, &d)
	case h.stream%2 == 0, h.stream <= c.seen: // an error, or trailers
		c.encode(h.stream, &d)
	case h.stream <= c.highest: // the stream is closed, which the server does not know
		c.pass = append(appendHeader(c.pass, 4, http2.FramePushPromise, http2.FlagPushPromiseEndHeaders, h.stream), 0, 0, 0, 2)
		c.raw = math.MaxInt64
	default:
		c.highest = h.stream
		c.openStream(h.stream, &d)
	}
	return true, c.flushFull()
}

// unwrap returns the header block in a HEADERS frame, as far as it is there, and its priority. It
// returns false for a frame of which the server does not decode the block.
func (c *Conn) unwrap(b []byte, h frameHeader) (fragment []byte, p http2.PriorityParam, ok bool) {
	b = b[headerSize:min(len(b), headerSize+int(h.length))]
	length, fixed, padding := int(h.length), 0, 0
	if h.flags&http2.FlagHeadersPadded != 0 {
		if length < 1 {
			return nil, p, false
		}
		fixed, padding, b = 1, int(b[0]), b[1:]
	}
	if h.flags&http2.FlagHeadersPriority != 0 {
		if fixed += 5; length < fixed {
			return nil, p, false
		}
		depends := binary.BigEndian.Uint32(b)
		p = http2.PriorityParam{StreamDep: depends & maxWindow, Exclusive: depends > maxWindow, Weight: b[4]}
		b = b[5:]
	}
	if h.stream == 0 || fixed+padding > length {
		return nil, p, false
	}
	return b[:min(len(b), length-fixed-padding)], p, true
}

// openStream treats the beginning of a request.
func (c *Conn) openStream(id uint32, d *head) {
	dependsOnItself := d.hasPrio && d.priority.StreamDep == id // which resets it
	if !d.truncated && !dependsOnItself && !c.isFull(d) && c.concerns(d) {
		if d.ended {
			switch c.judge(id, nil, 0, time.Time{}, nil) {
			case judgedAnswered:
				return
			case judgedPostponed:
				c.hold(id, d).postpone(&c.request)
				return
			}
		} else if !c.request.Measured || c.request.ContentLength <= maxBody {
			c.hold(id, d)
			return
		}
	}
	c.release(id)
	if c.opens(id) {
		c.encode(id, d)
	}
}

// isFull reports whether the client has opened as many streams as it may, of which the server counts
// only its own, or a head is too large to wait beside the others. Then the server gets those that wait.
func (c *Conn) isFull(d *head) bool {
	if c.heldBytes+d.size() > maxHeld {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)+len(c.held) >= int(c.output.limits.streams)
}

// errorOf says how x/net's Framer has found a block to be wrong; blockRight: it could not be read.
func errorOf(block *http2.MetaHeadersFrame, err error) blockError {
	var stream http2.StreamError
	var conn http2.ConnectionError
	switch {
	case errors.As(err, &stream):
		return blockStream
	case errors.As(err, &conn) && http2.ErrCode(conn) == http2.ErrCodeCompression:
		return blockCompression
	case errors.As(err, &conn) && block != nil:
		return blockProtocol
	case errors.As(err, &conn), errors.Is(err, errFlood):
		return blockOrder
	case errors.Is(err, http2.ErrFrameTooLarge):
		return blockFrameSize
	}
	return blockRight
}

// fail causes the error of a header block again at the server.
func (c *Conn) fail(h frameHeader, wrong blockError) {
	if c.find(h.stream) != nil {
		c.release(h.stream) // it is about that stream, which the server has to know
	}
	if wrong != blockStream {
		c.raw = math.MaxInt64 // the server reads no more
	}
	switch wrong {
	case blockStream:
		c.pass = appendInvalid(c.pass, h.stream, http2.FlagHeadersEndHeaders|h.flags&http2.FlagHeadersEndStream)
	case blockCompression:
		c.pass = append(appendHeader(c.pass, 1, http2.FrameHeaders, http2.FlagHeadersEndHeaders, h.stream), 0x80) // index 0
	case blockProtocol:
		c.pass = appendInvalid(c.pass, h.stream, 0)
		c.pass = appendHeader(c.pass, 0, http2.FrameContinuation, http2.FlagContinuationEndHeaders, h.stream)
	case blockOrder:
		c.pass = appendHeader(c.pass, 0, http2.FrameData, 0, 0)
	case blockFrameSize:
		c.pass = appendHeader(c.pass, 1<<24-1, http2.FrameContinuation, 0, h.stream)
	}
}

// appendInvalid appends a header block that is encoded correctly, with a field that is not valid.
func appendInvalid(b []byte, stream uint32, flags http2.Flags) []byte {
	return append(appendHeader(b, 5, http2.FrameHeaders, flags, stream), 0, 1, 'x', 1, 0)
}

// encode passes on a header block, without the dynamic table.
func (c *Conn) encode(stream uint32, d *head) {
	b := &c.blocks
	b.encoded.Reset()
	left := int64(b.list)
	for _, f := range d.fields {
		_ = b.encoder.WriteField(f) // a buffer takes everything
		if f.Name != "trailer" {    // which x/net counts separately
			left -= int64(f.Size())
		}
	}
	if d.truncated { // a byte too many
		_ = b.encoder.WriteField(hpack.HeaderField{Name: "x", Value: strings.Repeat("x", int(max(0, left-32)))})
	}
	block := b.encoded.Bytes()
	frames := max(1, (len(block)+5+maxFrameSize-1)/maxFrameSize)
	size := (len(block) + frames - 1) / frames
	flags, priority := http2.Flags(0), 0
	if d.ended {
		flags |= http2.FlagHeadersEndStream
	}
	if d.hasPrio {
		flags |= http2.FlagHeadersPriority
		priority = 5
	}
	for i := range frames {
		n := min(size, len(block))
		if i == frames-1 {
			flags |= http2.FlagHeadersEndHeaders
		}
		if i == 0 {
			c.pass = appendHeader(c.pass, n+priority, http2.FrameHeaders, flags, stream)
			if d.hasPrio {
				c.pass = appendPriority(c.pass, d.priority)
			}
		} else {
			c.pass = appendHeader(c.pass, n, http2.FrameContinuation, flags&http2.FlagContinuationEndHeaders, stream)
		}
		c.pass = append(c.pass, block[:n]...)
		block = block[n:]
	}
	if b.encoded.Cap() > maxKept {
		b.encoded = bytes.Buffer{}
		b.encoder = newEncoder(&b.encoded) // which keeps its longest field
	}
}

func appendPriority(b []byte, p http2.PriorityParam) []byte {
	depends := p.StreamDep
	if p.Exclusive {
		depends |= 1 << 31
	}
	return append(binary.BigEndian.AppendUint32(b, depends), p.Weight)
}

// Interface guard
var _ io.Reader = (*blockReader)(nil)

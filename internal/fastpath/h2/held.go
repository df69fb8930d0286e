package h2

import (
	"slices"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/stockgate/stockgate/internal/fastpath"
)

// held is a request that waits for its body, or is complete and waits for the Judge. The server has
// not seen it.
type held struct {
	id       uint32
	head     head
	measured bool
	length   int64 // its Content-Length

	data   []byte // its DATA frames as they came
	parts  [][2]int
	body   int // bytes of its body in them
	frames int
	flow   uint32    // what its frames took of the client's credit
	window int64     // what the client has added to its window
	until  time.Time // how long its body is awaited

	postponed bool      // by the Judge
	since     time.Time // as in fastpath.Request
	why       any
}

var helds = sync.Pool{New: func() any { return new(held) }}

// hold keeps a request until its body has come.
func (c *Conn) hold(id uint32, d *head) *held {
	h := helds.Get().(*held)
	fields := h.head.fields
	*h = held{
		id: id, head: *d, measured: c.request.Measured, length: c.request.ContentLength, until: c.request.Now.Add(c.server.Fast.BodyWait()),
		data: h.data[:0], parts: h.parts[:0],
	}
	c.heldBytes += h.size()
	if len(d.fields) > 0 && len(c.blocks.fields) > 0 && &d.fields[0] == &c.blocks.fields[0] { // exchange them
		c.blocks.fields = fields[:0]
	}
	c.held = append(c.held, h)
	return h
}

// postpone keeps a request that is complete.
func (h *held) postpone(r *fastpath.Request) { h.postponed, h.since, h.why = true, r.Since, r.Why }

// drop returns a request to the pool.
func (h *held) drop() {
	h.head.fields = emptied(h.head.fields)
	if cap(h.data) > maxKept {
		h.data = nil
	}
	helds.Put(h)
}

// remove takes a request out of those that wait.
func (c *Conn) remove(h *held) {
	c.held = slices.DeleteFunc(c.held, func(other *held) bool { return other == h })
	c.heldBytes -= h.size()
}

// size is how many bytes it keeps.
func (h *held) size() int { return h.head.size() + len(h.data) }

// head is a header block that has been decoded.
type head struct {
	fields    []hpack.HeaderField
	priority  http2.PriorityParam
	ended     bool // the request has no body
	truncated bool // it was longer than MAX_HEADER_LIST_SIZE
	hasPrio   bool
}

// size is that of its fields, as MAX_HEADER_LIST_SIZE counts them.
func (d *head) size() int {
	n := 0
	for _, f := range d.fields {
		n += int(f.Size())
	}
	return n
}

// shed drops what the last request has left: a connection that waits keeps little.
func (c *Conn) shed() {
	r := &c.request
	r.Method, r.Target, r.Host, r.Body, r.Why = "", "", "", nil, nil
	r.SetFields(nil)
	c.fields, c.blocks.fields = emptied(c.fields), emptied(c.blocks.fields)
}

// emptied returns the memory of fields for others, unless it is much.
func emptied[F any](fields []F) []F {
	if cap(fields) > fastpath.MaxFields {
		return nil
	}
	clear(fields[:cap(fields)])
	return fields[:0]
}

// add keeps a DATA frame.
func (h *held) add(frame, payload []byte) {
	from := len(h.data) + headerSize
	if len(payload) < len(frame)-headerSize {
		from++ // behind the length of the padding
	}
	h.data = append(h.data, frame...)
	h.parts = append(h.parts, [2]int{from, from + len(payload)})
	h.body += len(payload)
	h.frames++
	h.flow += uint32(len(frame) - headerSize)
}

// whole is the body, of what was kept and what has just come.
func (h *held) whole(last []byte) []byte {
	switch {
	case h.body == 0:
		return last
	case len(h.parts) == 1 && len(last) == 0:
		return h.data[h.parts[0][0]:h.parts[0][1]]
	}
	all := make([]byte, 0, h.body+len(last))
	for _, p := range h.parts {
		all = append(all, h.data[p[0]:p[1]]...)
	}
	return append(all, last...)
}

// find returns the request that waits on a stream, nil if there is none.
func (c *Conn) find(stream uint32) *held {
	for _, h := range c.held {
		if h.id == stream {
			return h
		}
	}
	return nil
}

// forget drops a request that waits. The client gets the credit for its body back.
func (c *Conn) forget(h *held) {
	c.remove(h)
	c.refund += h.flow
	h.drop()
}

// complete decides on a request whose last frame has come.
func (c *Conn) complete(h *held, frame, payload []byte) {
	whole := !h.measured || int64(h.body+len(payload)) == h.length
	if whole && c.concerns(&h.head) {
		switch c.judge(h.id, h.whole(payload), h.window, time.Time{}, nil) {
		case judgedAnswered:
			c.refund += uint32(len(frame) - headerSize)
			c.forget(h)
			return
		case judgedPostponed:
			h.add(frame, payload)
			c.heldBytes += len(frame)
			h.postpone(&c.request)
			return
		}
	}
	c.remove(h)
	defer h.drop()
	c.release(h.id)
	if c.send(h) {
		c.pass = append(c.pass, frame...)
	} else {
		c.refund += uint32(len(frame) - headerSize)
	}
}

// judgePostponed asks the Judge again about the requests that it has postponed.
func (c *Conn) judgePostponed() {
	for i := 0; i < len(c.held); {
		h := c.held[i]
		if !h.postponed {
			i++
			continue
		}
		verdict := judgedPassed
		if c.concerns(&h.head) {
			verdict = c.judge(h.id, h.whole(nil), h.window, h.since, h.why)
		}
		switch verdict {
		case judgedAnswered:
			c.forget(h)
			_ = c.flushFull() // reported by what is written next
		case judgedPostponed:
			i++
		case judgedPassed:
			c.release(h.id)
			i = 0
		}
	}
}

// release passes on the requests that wait, up to a stream.
func (c *Conn) release(stream uint32) {
	for len(c.held) > 0 && c.held[0].id <= stream {
		h := c.held[0]
		c.remove(h)
		c.send(h)
		h.drop()
	}
}

// send passes on a request, with what has come of its body. It returns false if the server takes
// no more requests.
func (c *Conn) send(h *held) bool {
	if !c.opens(h.id) {
		c.refund += h.flow
		return false
	}
	c.encode(h.id, &h.head)
	if h.window > 0 {
		c.pass = appendWindowUpdate(c.pass, h.id, uint32(h.window))
	}
	c.pass = append(c.pass, h.data...)
	return true
}

// opens notes that the server gets a stream. It returns false if the client has been told
// that the server takes no more, but counts on this one: then it is told that this one was not
// processed.
func (c *Conn) opens(stream uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left && stream <= c.lastID {
		c.out = appendReset(c.out, stream, http2.ErrCodeRefusedStream)
		return false
	}
	c.open[stream] = struct{}{}
	c.seen, c.lastPass = stream, c.request.Now
	return true
}

// ignores reports whether a stream is above that in the server's GOAWAY, which was no error: the
// server reads what comes on it, and forgets it.
func (c *Conn) ignores(stream uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left && stream > c.lastID
}

// bodyUntil is how long the first body is awaited; the zero time: none is.
func (c *Conn) bodyUntil() time.Time {
	for _, h := range c.held {
		if !h.postponed {
			return h.until
		}
	}
	return time.Time{}
}

// expire passes on the requests that have waited too long.
func (c *Conn) expire() {
	late := uint32(0)
	for _, h := range c.held {
		if !h.postponed && !h.until.After(c.request.Now) {
			late = h.id
		}
	}
	c.release(late)
}

// refuseHeld tells the client that the requests that wait were not processed.
func (c *Conn) refuseHeld() {
	for _, h := range c.held {
		c.out = appendReset(c.out, h.id, http2.ErrCodeRefusedStream)
		h.drop()
	}
	c.held, c.heldBytes = nil, 0
}

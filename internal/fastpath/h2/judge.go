package h2

import (
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/stockgate/stockgate/internal/fastpath"
)

// concerns lays out a request and reports whether it may be answered here.
func (c *Conn) concerns(d *head) bool {
	if c.closed.Load() || c.server.Fast.Stopped() || c.server.Fast.Judge == nil || !c.lay(d) {
		return false
	}
	// the server closes connections that seem idle to it
	if idle := c.server.Fast.IdleTime(); idle > 0 && c.request.Now.Sub(c.lastPass) > idle/2 {
		return false
	}
	return c.server.Fast.Judge.Concerns(&c.request)
}

// lay fills in the request. It returns false for one that only the server may read, or that
// asks for more than a plain answer.
func (c *Conn) lay(d *head) bool {
	r := &c.request
	r.Method, r.Target, r.Host, r.Body = "", "", "", nil
	r.ContentLength, r.Measured = 0, false
	scheme, host, cookie, crumbs := "", "", 0, 0
	c.fields = c.fields[:0]
	for _, f := range d.fields {
		switch f.Name {
		case ":method":
			r.Method = f.Value
			continue
		case ":path":
			r.Target = f.Value
			continue
		case ":authority":
			r.Host = f.Value
			continue
		case ":scheme":
			scheme = f.Value
			continue
		case "host": // balancers send it besides :authority
			if f.Value == "" || host != "" {
				return false
			}
			host = f.Value
			continue
		case "content-length":
			if !r.SetLength(f.Value) {
				return false
			}
		case "cookie":
			if crumbs++; crumbs > 1 {
				continue
			}
			cookie = len(c.fields)
		case "connection", "expect", "http2-settings", "keep-alive", "pragma", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade":
			return false
		default:
			if f.Name[0] == ':' || strings.ContainsAny(f.Name, "_.") || !fastpath.IsText(f.Value) {
				return false
			}
		}
		if len(c.fields) == fastpath.MaxFields {
			return false
		}
		c.fields = append(c.fields, fastpath.HeaderField{Name: f.Name, Value: f.Value})
	}
	if crumbs > 1 {
		c.fields[cookie].Value = joined(d.fields, crumbs)
	}
	if host != "" && r.Host == "" {
		r.Host = host
	}
	if crumbs > 0 && !fastpath.IsText(c.fields[cookie].Value) {
		return false
	}
	switch {
	case host != "" && host != r.Host, (scheme == "https") != (c.state != nil), scheme != "https" && scheme != "http",
		!fastpath.IsPlainRequest(r.Method, r.Target, r.Host), d.ended && r.ContentLength != 0:
		return false
	}
	if !d.ended && !r.Measured {
		r.ContentLength = -1
	}
	r.SetFields(c.fields)
	return true
}

// joined is the cookie that has come in so many crumbs, as x/net joins them. It is made in one piece: a
// client sends each crumb with a byte or two.
func joined(fields []hpack.HeaderField, crumbs int) string {
	all := make([]string, 0, crumbs)
	for _, f := range fields {
		if f.Name == "cookie" {
			all = append(all, f.Value)
		}
	}
	return strings.Join(all, "; ")
}

// fate is what becomes of a request.
type fate uint8

const (
	judgedPassed    fate = iota // it goes on
	judgedAnswered              // it is answered
	judgedPostponed             // the Judge is to be asked again
)

// judge answers a request if the Judge does, and if its answer can be sent now. window is what
// the client has added to the stream's; since and why are those of a request that was postponed.
func (c *Conn) judge(id uint32, body []byte, window int64, since time.Time, why any) fate {
	if !c.canAnswer(id, window, max(minAnswer, c.server.largest.Load())) {
		return judgedPassed
	}
	r := &c.request
	r.Body, r.Since, r.Why = body, since, why
	var ok bool
	c.answer, ok = c.server.Fast.Judge.Judge(c.answer[:0], r)
	switch postponed := r.Postponed(); {
	case ok:
	case postponed:
		return judgedPostponed
	default:
		return judgedPassed
	}
	from := len(c.out)
	if c.out == nil {
		c.out = outs.Get().(*[outSize]byte)[:0]
	}
	out, length, ok := appendAnswer(c.out, id, c.answer)
	if ok && c.spend(id, window, int64(length)) {
		c.out = out
		return judgedAnswered
	}
	for largest := c.server.largest.Load(); int64(length) > largest; largest = c.server.largest.Load() {
		c.server.largest.CompareAndSwap(largest, int64(length))
	}
	c.out = c.out[:from]
	return judgedPassed
}

// canAnswer reports whether an answer with a body of this length may be sent, and notes that
// one is about to be.
func (c *Conn) canAnswer(id uint32, window, length int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone || c.peer.lowered || len(c.output.waiting) > maxWaiting || c.failed != nil || !c.fits(window, length) {
		return false
	}
	c.answered = max(c.answered, id)
	return true
}

// fits reports whether the client's windows have room. The lock is held.
func (c *Conn) fits(window, length int64) bool {
	if length > c.flow.own {
		c.flow.wanted = true
		return false
	}
	return length <= min(c.peer.leastWindow()+window, maxFrameSize)
}

// spend takes the credit for an answer.
func (c *Conn) spend(id uint32, window, length int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.fits(window, length) {
		return false
	}
	c.flow.own -= length
	return true
}

// flush writes the answers.
func (c *Conn) flush() error {
	if c.refund >= minRefund {
		c.out = appendWindowUpdate(c.out, 0, c.refund)
		c.refund = 0
	}
	if len(c.out) == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == nil && !c.erred {
		switch writes := c.writing.TryLock(); {
		case !writes: // the server does, and then this
			c.output.waiting = append(c.output.waiting, c.out...)
		case !c.output.atBoundary():
			c.output.waiting = append(c.output.waiting, c.out...)
			c.writing.Unlock()
		default:
			c.limitWriting()
			_ = c.put(c.out)
			c.writeWaiting()
		}
	}
	if cap(c.out) == outSize {
		outs.Put((*[outSize]byte)(c.out[:outSize]))
	}
	c.out = nil
	return c.failed
}

const outSize = maxOut + 1<<10

var outs = sync.Pool{New: func() any { return new([outSize]byte) }}

// limitWriting bounds the writing of answers. The lock is held.
func (c *Conn) limitWriting() {
	now, timeout := c.request.Now, c.server.Fast.WriteTime()
	if left := c.output.until.Sub(now); left >= timeout && left <= timeout+timeout/16 {
		return
	}
	c.output.until = now.Add(timeout + timeout/16)
	_ = c.conn.SetWriteDeadline(c.output.until)
}

// unlimitWriting removes the bound for what the server writes. The lock is held.
func (c *Conn) unlimitWriting() {
	if !c.output.until.IsZero() {
		c.output.until = time.Time{}
		_ = c.conn.SetWriteDeadline(time.Time{})
	}
}

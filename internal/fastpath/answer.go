package fastpath

import "time"

// found is what take finds at the beginning of the buffer.
type takeStep uint8

const (
	stepMore     takeStep = iota // not yet a complete request
	stepAnswered                 // a request, and it is answered
	stepDelegate                 // a request for net/http
	stepDetach                   // input that cannot be framed
	stepBroken                   // an answer could not be written
)

// mostOut is how many bytes of answers wait to be written together.
const mostOut = 32 << 10

// take answers the request at the beginning of the buffer if the Judge does.
func (c *Conn) take() takeStep {
	if c.posted && !c.skipLines() {
		return stepMore
	}
	b, r := c.buf[c.start:c.end], &c.request
	if r.head.end == 0 {
		switch r.head.read(b) {
		case headOdd:
			return stepDetach
		case headPartial:
			if len(b) >= c.server.mostHead() {
				return stepDetach
			}
			return stepMore
		}
		if r.head.end > c.server.mostHead() {
			return stepDetach
		}
	}
	total := int64(r.head.end) + r.head.length
	if !r.head.plain || total > mostBuffer || c.server.stopped.Load() {
		return stepDelegate
	}
	// The buffer may have moved and time has passed, so the Judge is asked each time.
	r.lay(b)
	if !c.server.Judge.Concerns(r) {
		return stepDelegate
	}
	if int64(len(b)) < total {
		if c.waited {
			return stepDelegate
		}
		return stepMore
	}
	if len(c.out) == 0 && !c.begin() {
		return stepDelegate // it is closed
	}
	r.Body = b[r.head.end:total]
	out, ok := c.judge()
	for r.wait != nil {
		c.awaitJudge(int(total))
		out, ok = c.judge()
	}
	if !ok {
		return stepDelegate
	}
	c.out = out
	c.posted, c.waited = r.Method == "POST", false
	if !c.answered && !c.times.first {
		c.server.held.add(c)
	}
	c.answered, c.requested = true, true
	r.forget()
	c.start += int(total)
	c.times.answered()
	if len(c.out) >= mostOut {
		if c.flush() != nil {
			return stepMore // and flush says so again
		}
	}
	return stepAnswered
}

// judge asks the Judge about the request that lies at the beginning of the buffer.
func (c *Conn) judge() (out []byte, ok bool) {
	if c.served() {
		return c.server.Judge.Judge(c.out, &c.request)
	}
	return c.judgeApart()
}

// judgeApart asks on another goroutine. Judging takes a deeper stack than waiting for a request. The
// stack of a goroutine that grows is new memory, and that of one that begins is reused: a crowd's
// connections ask once. It is apart from judge because what goroutines share is allocated.
func (c *Conn) judgeApart() (out []byte, ok bool) {
	done := make(chan any)
	go func() {
		defer func() { done <- recover() }()
		out, ok = c.server.Judge.Judge(c.out, &c.request)
	}()
	if p := <-done; p != nil {
		panic(p)
	}
	return out, ok
}

// awaitJudge waits for what the Judge wants to wait for. The request is total bytes long.
func (c *Conn) awaitJudge(total int) {
	r := &c.request
	if len(c.out) > 0 {
		_ = c.flush() // reported again when this request is answered
		c.begin()
	}
	c.rest()
	wait := r.wait
	r.wait = nil
	wait()
	r.Now = time.Now()
	b := c.buf[c.start:c.end]
	r.lay(b)
	r.Body = b[r.head.end:total]
}

// skipLines skips empty lines after a POST, at most 4 bytes, as net/http does for old
// clients. It returns false when more input is needed.
func (c *Conn) skipLines() bool {
	b := c.buf[c.start:c.end]
	if len(b) == 0 || b[0] != '\r' && b[0] != '\n' {
		return true
	}
	if len(b) < 4 {
		return false
	}
	for i := 0; i < 4 && (b[i] == '\r' || b[i] == '\n'); i++ {
		c.start++
	}
	c.posted = false
	return true
}

// begin marks that answers are about to be written.
func (c *Conn) begin() bool {
	return c.answering.Load() == busy || c.answering.CompareAndSwap(free, busy)
}

// flush writes the answers. After a failure nothing is written again: the client would
// read it as the rest of an answer.
func (c *Conn) flush() error {
	if len(c.out) > 0 && c.failed == nil {
		c.times.write(c)
		c.failed = c.write(c.out)
	}
	c.out = c.out[:0]
	if c.answering.Load() == free || c.answering.CompareAndSwap(busy, free) {
		return c.failed
	}
	// Close may have been called during the write
	c.failed = c.shut()
	return c.failed
}

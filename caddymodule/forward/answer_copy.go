package forward

import (
	"net/http"
	"strconv"

	"github.com/stockgate/stockgate/internal/store/reservation"
)

// Copy is the part of the shop's answer that is stored. All methods do nothing on nil.
type Copy struct {
	answer  reservation.StoredAnswer
	length  string // as announced; empty: not announced
	useless bool   // it cannot be stored
	// Max is how many bytes of the body are kept. Default: reservation.MaxAnswer.
	Max      int
	header   http.Header // all of it, where Max is given
	complete bool
}

// begin takes the head. An encoded body is not stored: another client may not understand
// it.
func (c *Copy) begin(status int, h http.Header) {
	if c == nil {
		return
	}
	c.answer.Status = status
	c.answer.ContentType, c.answer.Location = h.Get("Content-Type"), h.Get("Location")
	c.length = h.Get("Content-Length")
	if c.Max > 0 {
		c.header = h.Clone()
	}
	encoding := h.Get("Content-Encoding")
	c.useless = encoding != "" && encoding != "identity"
}

// add takes a piece of the body.
func (c *Copy) add(p []byte) {
	if !c.wanted() {
		return
	}
	if len(c.answer.Body)+len(p) > max(c.Max, reservation.MaxAnswer) {
		c.useless, c.answer.Body = true, nil
		return
	}
	c.answer.Body = append(c.answer.Body, p...)
}

// wanted reports whether there is anything to store.
func (c *Copy) wanted() bool { return c != nil && !c.useless }

// end says that the handlers behind the gate have returned, and the answer has ended.
func (c *Copy) end() {
	if c != nil {
		c.complete = true
	}
}

// whole returns the answer; nil: it is incomplete or cannot be stored.
func (c *Copy) whole() *reservation.StoredAnswer {
	if !c.wanted() || !c.complete || len(c.answer.Body) > reservation.MaxAnswer || c.length != "" && c.length != strconv.Itoa(len(c.answer.Body)) {
		return nil
	}
	return &c.answer
}

// kept returns the answer with its whole header, where Max was given and it is complete.
func (c *Copy) kept() (status int, header http.Header, body []byte, ok bool) {
	if !c.wanted() || !c.complete || c.header == nil {
		return 0, nil, nil, false
	}
	return c.answer.Status, c.header, c.answer.Body, true
}

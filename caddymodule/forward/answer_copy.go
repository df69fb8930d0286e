package forward

import (
	"net/http"
	"strconv"

	"github.com/stockgate/stockgate/reservation"
)

// Copy is what is kept of the shop's answer. All methods do nothing on nil.
type Copy struct {
	answer   reservation.StoredAnswer
	length   string // as announced; empty: not announced
	useless  bool   // it cannot be kept
	complete bool
}

// begin takes the head. An encoded body is of use only to who understands it.
func (c *Copy) begin(status int, h http.Header) {
	if c == nil {
		return
	}
	c.answer.Status = status
	c.answer.ContentType, c.answer.Location = h.Get("Content-Type"), h.Get("Location")
	c.length = h.Get("Content-Length")
	encoding := h.Get("Content-Encoding")
	c.useless = encoding != "" && encoding != "identity"
}

// add takes a piece of the body.
func (c *Copy) add(p []byte) {
	if !c.wanted() {
		return
	}
	if len(c.answer.Body)+len(p) > reservation.MaxAnswer {
		c.useless, c.answer.Body = true, nil
		return
	}
	c.answer.Body = append(c.answer.Body, p...)
}

// wanted says that there is something to keep.
func (c *Copy) wanted() bool { return c != nil && !c.useless }

// end says that the handlers behind the gate are done, and that was all.
func (c *Copy) end() {
	if c != nil {
		c.complete = true
	}
}

// whole is the answer; nil: it has not come whole, or cannot be kept.
func (c *Copy) whole() *reservation.StoredAnswer {
	if !c.wanted() || !c.complete || c.length != "" && c.length != strconv.Itoa(len(c.answer.Body)) {
		return nil
	}
	return &c.answer
}

package forward

import (
	"io"
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/filters/outcome"
)

// Excerpt says what of an answer the gate's rules read beside its status.
type Excerpt struct {
	Header bool
	Body   int // bytes; 0: none
}

// Tee passes the shop's answer on as it is, and keeps a copy.
type Tee struct {
	*caddyhttp.ResponseWriterWrapper
	keep   Excerpt
	status int
	header http.Header
	body   []byte
	longer bool // than Keep.Body
}

// WriteHeader passes the status on.
func (a *Tee) WriteHeader(status int) {
	a.note(status)
	a.ResponseWriter.WriteHeader(status)
}

// Write passes bytes on.
func (a *Tee) Write(p []byte) (int, error) {
	a.note(http.StatusOK)
	if a.keep.Body > 0 {
		n := min(len(p), a.keep.Body-len(a.body))
		a.body = append(a.body, p[:n]...)
		a.longer = a.longer || n < len(p)
	}
	return a.ResponseWriter.Write(p)
}

// ReadFrom copies in the way of the server, unless the body is kept.
func (a *Tee) ReadFrom(r io.Reader) (int64, error) {
	if a.keep.Body > 0 {
		return io.Copy(struct{ io.Writer }{a}, r)
	}
	a.note(http.StatusOK)
	return a.ResponseWriterWrapper.ReadFrom(r)
}

// note keeps the first final status.
func (a *Tee) note(status int) {
	if status < 200 || a.status != 0 {
		return
	}
	a.status = status
	if a.keep.Header {
		a.header = a.Header().Clone()
	}
}

// Status returns the status that was written; 0: none.
func (a *Tee) Status() int { return a.status }

// Reply returns the answer for the rules. status is the shop's own.
func (a *Tee) Reply(status int) *outcome.ShopAnswer {
	return &outcome.ShopAnswer{Status: status, Header: a.header, Body: a.body, Whole: !a.longer, MaxBody: a.keep.Body}
}

// Interface guards
var (
	_ http.ResponseWriter = (*Tee)(nil)
	_ io.ReaderFrom       = (*Tee)(nil)
)

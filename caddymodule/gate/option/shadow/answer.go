package shadow

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/filters/outcome"
)

// Keep says what of an answer the gate's rules read beside its status.
type Keep struct {
	Header bool
	Body   int // bytes; 0: none
}

// Answer passes the shop's answer on as it is, and keeps a copy.
type Answer struct {
	*caddyhttp.ResponseWriterWrapper
	keep   Keep
	status int
	header http.Header
	body   []byte
	longer bool // than Keep.Body
}

// WriteHeader passes the status on.
func (a *Answer) WriteHeader(status int) {
	a.note(status)
	a.ResponseWriter.WriteHeader(status)
}

// Write passes bytes on.
func (a *Answer) Write(p []byte) (int, error) {
	a.note(http.StatusOK)
	if a.keep.Body > 0 {
		n := min(len(p), a.keep.Body-len(a.body))
		a.body = append(a.body, p[:n]...)
		a.longer = a.longer || n < len(p)
	}
	return a.ResponseWriter.Write(p)
}

// ReadFrom copies in the way of the server, unless the body is kept.
func (a *Answer) ReadFrom(r io.Reader) (int64, error) {
	if a.keep.Body > 0 {
		return io.Copy(struct{ io.Writer }{a}, r)
	}
	a.note(http.StatusOK)
	return a.ResponseWriterWrapper.ReadFrom(r)
}

// note keeps the first final status.
func (a *Answer) note(status int) {
	if status < 200 || a.status != 0 {
		return
	}
	a.status = status
	if a.keep.Header {
		a.header = a.Header().Clone()
	}
}

// Status returns the status that was written; 0: none.
func (a *Answer) Status() int { return a.status }

// Reply returns the answer for the rules. status is the shop's own. A gate that is not in shadow
// asks the shop for an answer without compression; here gzip is read.
func (a *Answer) Reply(status int) *outcome.Reply {
	reply := &outcome.Reply{Status: status, Header: a.header, Body: a.body, Whole: !a.longer}
	if a.header.Get("Content-Encoding") != "gzip" || a.longer {
		return reply
	}
	z, err := gzip.NewReader(bytes.NewReader(a.body))
	if err != nil {
		return reply
	}
	text, err := io.ReadAll(io.LimitReader(z, int64(a.keep.Body)+1))
	if err == nil {
		reply.Header.Del("Content-Encoding")
		reply.Body, reply.Whole = text[:min(len(text), a.keep.Body)], len(text) <= a.keep.Body
	}
	return reply
}

// Interface guards
var (
	_ http.ResponseWriter = (*Answer)(nil)
	_ io.ReaderFrom       = (*Answer)(nil)
)

package outcome

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strings"
)

// DefaultMaxBody is how many bytes of an answer's body are read, unless the answer says otherwise.
const DefaultMaxBody = 64 << 10

// ShopAnswer is what is known of the shop's answer. Its body is read as a client of the shop reads it.
type ShopAnswer struct {
	Status int
	Header http.Header
	Body   []byte // as it was sent
	Whole  bool   // Body is all of it
	// MaxBody bounds the body in bytes after an encoding is undone. Default: DefaultMaxBody.
	MaxBody int
	// Ref is the order that the shop was asked about; empty: it was not asked about one.
	Ref string

	decoded bool
	tree    any
	problem BodyFault
}

// BodyFault is why nothing can be read in an answer's body, as the cause of an outcome.
type BodyFault string

// The problems of bodies.
const (
	CauseNotJSON BodyFault = "not_json"
	// CauseEncoded: the body has a Content-Encoding that is not undone here, or is broken.
	CauseEncoded BodyFault = "encoded"
	CauseTooLong BodyFault = "too_long"
)

// CauseMissing begins the cause of an answer that lacks a path; the path follows.
const CauseMissing = "missing_"

// mostPath bounds the path: a cause has up to 64 bytes, also with a word before it.
const mostPath = 48

// Missing is the cause of an answer that lacks a path.
func Missing(path string) BodyFault { return BodyFault(CauseMissing + path[:min(len(path), mostPath)]) }

// document returns the body as decoded JSON.
func (r *ShopAnswer) document() (any, BodyFault) {
	if !r.decoded {
		r.decoded = true
		var body []byte
		if body, r.problem = r.Plain(); r.problem == "" {
			var err error
			if r.tree, err = decodeJSON(body); err != nil {
				r.problem = CauseNotJSON
			}
		}
	}
	return r.tree, r.problem
}

// Plain returns the body without its encoding and without a byte order mark: gzip and deflate are undone,
// though the shop is asked for neither.
func (r *ShopAnswer) Plain() ([]byte, BodyFault) {
	open := decoders[strings.ToLower(strings.Join(r.Header.Values("Content-Encoding"), ","))]
	switch {
	case open == nil:
		return nil, CauseEncoded
	case !r.Whole:
		return nil, CauseTooLong
	}
	body := bytes.NewReader(r.Body)
	reader, err := open(body)
	if err != nil {
		return nil, CauseEncoded
	}
	if reader == body {
		return withoutMark(r.Body), ""
	}
	most := r.MaxBody
	if most <= 0 {
		most = DefaultMaxBody
	}
	plain, err := io.ReadAll(io.LimitReader(reader, int64(most)+1))
	switch {
	case err != nil:
		return nil, CauseEncoded
	case len(plain) > most:
		return nil, CauseTooLong
	}
	return withoutMark(plain), ""
}

// decoders undo encodings, by their names (RFC 9110, section 8.4.1).
var decoders = map[string]func(*bytes.Reader) (io.Reader, error){
	"": sent, "identity": sent, "gzip": gunzip, "x-gzip": gunzip, "deflate": inflate,
}

func sent(body *bytes.Reader) (io.Reader, error) { return body, nil }

func gunzip(body *bytes.Reader) (io.Reader, error) { return gzip.NewReader(body) }

// inflate reads deflate as browsers do: with the head of zlib (RFC 9110, section 8.4.1.2), or without.
func inflate(body *bytes.Reader) (io.Reader, error) {
	b := bufio.NewReader(body)
	if head, err := b.Peek(2); err == nil && head[0]&0x0f == 8 && (uint(head[0])<<8|uint(head[1]))%31 == 0 {
		return zlib.NewReader(b)
	}
	return flate.NewReader(b), nil
}

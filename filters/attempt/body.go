package attempt

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"

	"github.com/stockgate/stockgate/internal/sale"
)

// firstRead is the size of a body's first buffer. The buffer grows with what arrives,
// not with the announced length: ten thousand clients that announce large bodies and
// send nothing must not cost much memory.
const firstRead = 4 << 10

// ReadBody reads the whole body, at most max bytes, and puts it back, so that
// the backend gets the same bytes with their length. A longer body is refused as
// body_too_large, before it is read if its Content-Length says so; trailers are
// malformed. An empty body is returned as nil.
//
// The error is the read error, unchanged: the client left or was too slow, or an earlier
// handler set a limit. In the last case (the error wraps *http.MaxBytesError) the refusal
// is body_too_large as well, and the caller may answer with either. After an error or a
// refusal the body is partly consumed, and the request must not be forwarded.
func ReadBody(r *http.Request, max int64) ([]byte, *sale.Refusal, error) {
	if r.ContentLength > max {
		return nil, tooLarge(max), nil
	}
	if r.Body == nil || r.Body == http.NoBody {
		return nil, trailers(r), nil
	}
	body, err := readAll(r.Body, r.ContentLength, max)
	switch {
	case err != nil:
		if limit, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, tooLarge(limit.Limit), err
		}
		return nil, nil, err
	case int64(len(body)) > max:
		return nil, tooLarge(max), nil
	case r.ContentLength >= 0 && int64(len(body)) != r.ContentLength:
		return nil, nil, io.ErrUnexpectedEOF
	}
	// Trailers that were not announced are known only now.
	if refusal := trailers(r); refusal != nil {
		return nil, refusal, nil
	}
	putBack(r, body)
	return body, nil, nil
}

func tooLarge(max int64) *sale.Refusal {
	return &sale.Refusal{Reason: sale.BodyTooLarge, Detail: "the body may have at most " + strconv.FormatInt(max, 10) + " bytes"}
}

// readAll reads to the end, or one byte past max.
func readAll(src io.Reader, announced, max int64) ([]byte, error) {
	limit := max
	if limit < math.MaxInt64 {
		limit++
	}
	size := int64(firstRead)
	if announced >= 0 {
		size = min(size, announced+1) // one more byte, to see the end without growing
	}
	buf := make([]byte, 0, min(size, limit))
	for {
		n, err := src.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return nil, err
		case int64(len(buf)) > max:
			return buf, nil
		case len(buf) == cap(buf):
			grown := make([]byte, len(buf), min(2*int64(cap(buf)), limit))
			copy(grown, buf)
			buf = grown
		}
	}
}

// putBack restores the request's body. The buffer never returns to a pool: a transport
// may still read the body after the round trip, and a reused buffer would send one
// buyer's order as another's.
//
// GetBody stays nil on purpose. With it, net/http resends a POST that has an
// Idempotency-Key when a connection dies after the first was written, and then reports
// the failure of the second: the gate could not tell whether the shop has the order.
// Without it, a dead connection is an error at once, and the bytes written so far
// decide.
func putBack(r *http.Request, body []byte) {
	r.GetBody = nil
	r.ContentLength = int64(len(body))
	r.TransferEncoding = nil
	if len(body) == 0 {
		r.Body = http.NoBody
		return
	}
	b := new(readBody)
	b.Reset(body)
	r.Body = b
}

// readBody is a body that was read and can be read again.
type readBody struct{ bytes.Reader }

func (*readBody) Close() error { return nil }

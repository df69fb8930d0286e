package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"
)

// request is one generated request, byte for byte.
type request struct {
	route   *route
	method  string
	target  string
	headers [][2]string
	body    []byte
	frame   frame
}

// frame is how the body's length is told.
type frame uint8

const (
	byLength frame = iota
	chunked
	chunkedExt      // chunks with extensions, of odd sizes
	chunkedTrailer  // and a trailer that names a value
	chunkedSpelled  // Transfer-Encoding: Chunked
	both            // Content-Length beside Transfer-Encoding
	twoLengths      // two equal lengths
	differentLength // two different lengths
	encodings       // Transfer-Encoding: identity, chunked
	frames
)

// bytes are what goes over the wire.
func (q *request) bytes(rng *rand.Rand) []byte {
	b := fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: shop.example.com\r\n", q.method, q.target)
	for _, h := range q.headers {
		b = append(append(append(append(b, h[0]...), ':', ' '), h[1]...), "\r\n"...)
	}
	length := "Content-Length: " + strconv.Itoa(len(q.body)) + "\r\n"
	const coded = "Transfer-Encoding: chunked\r\n"
	switch q.frame {
	case byLength:
		if len(q.body) > 0 || q.method != http.MethodGet {
			b = append(b, length...)
		}
		return append(append(b, "\r\n"...), q.body...)
	case twoLengths:
		return append(append(b, length+length+"\r\n"...), q.body...)
	case differentLength:
		return append(append(b, length+"Content-Length: 3\r\n\r\n"...), q.body...)
	case chunkedSpelled:
		b = append(b, "Transfer-Encoding: Chunked\r\n"...)
	case both:
		b = append(b, length+coded...)
	case encodings:
		b = append(b, "Transfer-Encoding: identity, chunked\r\n"...)
	default:
		b = append(b, coded...)
	}
	b = append(b, "\r\n"...)
	return q.chunks(b, rng)
}

func (q *request) chunks(b []byte, rng *rand.Rand) []byte {
	ext := ""
	if q.frame == chunkedExt {
		ext = `;sku="tea"`
	}
	for rest := q.body; len(rest) > 0; {
		n := 1 + rng.IntN(len(rest))
		b = fmt.Appendf(b, "%x%s\r\n%s\r\n", n, ext, rest[:n])
		rest = rest[n:]
	}
	b = append(b, "0\r\n"...)
	if q.frame == chunkedTrailer {
		b = append(b, "X-Sku: tea\r\nStockgate-Token: forged\r\n"...)
	}
	return append(b, "\r\n"...)
}

// lane is a connection to one shop's site. It stays open as long as the server lets it.
type lane struct {
	port int
	conn net.Conn
	in   *bufio.Reader
}

// response is what came back.
type response struct {
	status  int
	reached bool
	reason  string // of the gate's refusal
	answer  *answer
	raw     []byte
}

const patience = 10 * time.Minute

// unreadable is an answer of a shop that does not say what it has read: a fault of the
// shop's program, which would hide a mismatch.
type unreadable struct{ error }

// exchange sends a request and reads its answer. A server that closes instead of
// answering has refused; ok is false then.
func (l *lane) exchange(q *request, raw []byte) (response, bool, error) {
	fresh := l.conn == nil
	got, err := l.try(q, raw)
	if err != nil && !fresh { // the server has closed an idle connection
		got, err = l.try(q, raw)
	}
	if timeout, is := errors.AsType[net.Error](err); is && timeout.Timeout() {
		return got, false, fmt.Errorf("no answer within %v: %w", patience, err)
	}
	if _, is := errors.AsType[*unreadable](err); is {
		return got, false, fmt.Errorf("the shop's answer: %w: %.200q", err, got.raw)
	}
	return got, err == nil, nil
}

func (l *lane) try(q *request, raw []byte) (got response, err error) {
	if l.conn == nil {
		if l.conn, err = net.Dial("tcp", loopback(l.port)); err != nil {
			return got, err
		}
		l.in = bufio.NewReader(l.conn)
	}
	keep := false
	defer func() {
		if !keep {
			l.close()
		}
	}()
	_ = l.conn.SetDeadline(time.Now().Add(patience))
	if _, err = l.conn.Write(raw); err != nil {
		return got, err
	}
	var r *http.Response
	for r == nil || r.StatusCode == http.StatusContinue {
		if r, err = http.ReadResponse(l.in, &http.Request{Method: q.method}); err != nil {
			return got, err
		}
	}
	got.raw, err = io.ReadAll(r.Body)
	if err != nil {
		return got, err
	}
	got.status, got.reached = r.StatusCode, r.Header.Get(reached) != ""
	if got.reached && r.StatusCode == http.StatusOK {
		got.answer = new(answer)
		if err := json.Unmarshal(got.raw, got.answer); err != nil {
			return got, &unreadable{err}
		}
	} else if !got.reached {
		var problem struct{ Reason, Detail string }
		_ = json.Unmarshal(got.raw, &problem)
		got.reason = problem.Reason
	}
	// what follows a body of doubtful length must not be taken for the next request
	keep = !r.Close && q.frame < differentLength && l.in.Buffered() == 0
	return got, nil
}

func (l *lane) close() {
	if l.conn != nil {
		l.conn.Close()
		l.conn = nil
	}
}

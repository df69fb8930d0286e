package stampede

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/stockgate/stockgate/sale"
)

// mostAnswer is how much of an answer is read.
const mostAnswer = 64 << 10

// Answer is what a buyer was told.
type Answer struct {
	Buyer string      `json:"buyer"`
	Lines []sale.Line `json:"lines"`
	// Status is 0 if there was no answer.
	Status int `json:"status"`
	// Reservation is the id that the answer names; empty: none.
	Reservation string `json:"reservation,omitempty"`
	// Accepted: the buyer was told that they have it: 2xx, and no JSON body whose code says
	// otherwise.
	Accepted bool `json:"accepted"`
	// Failure is why there was no answer: timeout, refused, reset or other.
	Failure string `json:"failure,omitempty"`

	refusal    string // why the gate refused; "": it did not
	retryAfter time.Duration
}

// attempt sends one order and notes what came of it.
func (r *run) attempt(ctx context.Context, buyer, basket int, begun time.Time) Answer {
	answer := Answer{Buyer: r.name(buyer), Lines: r.Baskets[basket].Lines}
	r.book.begin()
	r.send(ctx, &answer, r.bodies[basket])
	r.book.note(buyer, basket, &answer, time.Since(begun))
	return answer
}

func (r *run) send(ctx context.Context, answer *Answer, body []byte) {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	header := make(http.Header, len(r.Header)+3)
	for name, values := range r.Header {
		header[name] = values
	}
	header["Content-Type"] = []string{"application/json"}
	header["X-User-Id"] = []string{answer.Buyer}
	if r.Misbehave != "" {
		header["X-Misbehave"] = []string{r.Misbehave}
	}
	request := (&http.Request{
		Method: http.MethodPost, URL: r.target, Host: r.target.Host, Header: header,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
		// For net/http to use another connection where the server had closed the
		// one it took; without an Idempotency-Key it sends no order twice.
		GetBody: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil },
	}).WithContext(ctx)
	response, err := r.transport.RoundTrip(request)
	if err != nil {
		answer.Failure = failure(err)
		return
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer))
	if err != nil {
		answer.Failure = failure(err)
		return
	}
	answer.read(response, text)
}

func (a *Answer) read(response *http.Response, body []byte) {
	a.Status = response.StatusCode
	a.Reservation = response.Header.Get("Stockgate-Reservation")
	a.refusal = response.Header.Get("Stockgate-Refusal")
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		a.retryAfter = time.Duration(seconds) * time.Second
	}
	a.Accepted = a.refusal == "" && a.Status/100 == 2 && saysYes(body)
}

// saysYes: many shops answer 200 to everything and say in the body what they
// mean: a code that is neither 0 nor 200 is a no. A body without a code says
// what its status says.
func saysYes(body []byte) bool {
	var said struct {
		Code json.RawMessage `json:"code"`
	}
	if json.Unmarshal(body, &said) != nil {
		return true // not an object
	}
	switch string(said.Code) {
	case "", "null", "0", "200", `"0"`, `"200"`:
		return true
	}
	return false
}

func failure(err error) string {
	var timeout net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return "cut off"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "reset"
	}
	return "other"
}

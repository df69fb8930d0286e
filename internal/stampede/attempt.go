package stampede

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
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
	// Failure is why there was no answer: timeout, refused, reset, other, or left: the buyer
	// closed the connection.
	Failure string `json:"failure,omitempty"`

	refusal    string // why the gate refused; "": it did not
	retryAfter time.Duration
	redirect   string // scheme and host to which it redirects; empty: it does not
}

// The ways of an attempt.
type way int

const (
	waiting   way = iota // the buyer waits for the answer
	scheduled            // as waiting, and the attempt was due at a time of the schedule
	leaving              // the buyer closes the connection when the order is sent
	insisting            // a bot's: no buyer waits for its answer
)

// attempt sends one order and notes what came of it. begun is when it was due.
func (r *run) attempt(ctx context.Context, buyer, basket int, begun time.Time, how way) Answer {
	answer := Answer{Buyer: r.name(buyer), Lines: r.Baskets[basket].Lines}
	if r.slots != nil {
		select {
		case r.slots <- struct{}{}:
			defer func() { <-r.slots }()
		case <-ctx.Done(): // it waits for its connection: nothing is sent
			return answer
		}
	}
	if r.open() && (how == scheduled || how == leaving) {
		r.book.late.add(time.Since(begun))
	}
	r.book.begin()
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	switch request, err := r.request(answer.Buyer, buyer, basket); {
	case err != nil:
		answer.Failure = "other"
	case how == leaving:
		answer.Failure = Left
		if err := r.sendAndLeave(request.WithContext(ctx)); err != nil {
			answer.Failure = failure(err)
		}
	default:
		r.send(request.WithContext(ctx), &answer)
	}
	r.book.note(buyer, basket, &answer, time.Since(begun), how)
	return answer
}

// The failures of a buyer who closed the connection, of one whom the end of the crowd cut off,
// and of one who waited in vain.
const (
	Left     = "left"
	cutOff   = "cut off"
	timedOut = "timeout"
)

// request makes the request of a buyer.
func (r *run) request(name string, buyer, basket int) (*http.Request, error) {
	if r.Template != nil {
		return r.Template.Request(buyer)
	}
	body := r.bodies[basket]
	header := make(http.Header, len(r.Header)+3)
	for name, values := range r.Header {
		header[name] = values
	}
	header["Content-Type"] = []string{"application/json"}
	header["X-User-Id"] = []string{name}
	if r.Misbehave != "" {
		header["X-Misbehave"] = []string{r.Misbehave}
	}
	return &http.Request{
		Method: http.MethodPost, URL: r.target, Host: r.target.Host, Header: header,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
		// For net/http to use another connection where the server had closed the
		// one it took; without an Idempotency-Key it sends no order twice.
		GetBody: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil },
	}, nil
}

// send sends a request. It follows no redirect.
func (r *run) send(request *http.Request, answer *Answer) {
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
	if request.Method == http.MethodGet || request.Method == http.MethodHead {
		answer.Accepted = false // a page, not an order
	}
	if to, err := url.Parse(response.Header.Get("Location")); err == nil && to.String() != "" && answer.Status/100 == 3 {
		to = request.URL.ResolveReference(to)
		answer.redirect = to.Scheme + "://" + to.Host
	}
}

// sendAndLeave sends a request over a connection of its own, and closes it.
func (r *run) sendAndLeave(request *http.Request) error {
	address := request.URL.Host
	if request.URL.Port() == "" {
		address = net.JoinHostPort(request.URL.Hostname(), request.URL.Scheme)
	}
	dial := r.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	conn, err := dial(request.Context(), "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := request.Context().Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	if request.URL.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: r.Insecure, ServerName: request.URL.Hostname()})
		defer conn.Close()
	}
	return request.Write(conn)
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
		return cutOff
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return timedOut
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "reset"
	}
	return "other"
}

package rehearse

import (
	"io"
	"net/http"
	"time"

	"github.com/stockgate/stockgate/internal/stampede"
	"github.com/stockgate/stockgate/internal/store/record"
)

// Sent is a request as it is sent.
type Sent struct {
	URL, Body string
	Header    http.Header
}

// RequestOf is the request of a buyer.
func (r *Rehearsal) RequestOf(buyer int) (*Sent, error) {
	request, err := r.templates.Request(buyer)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(request.Body)
	return &Sent{request.URL.String(), string(body), request.Header}, err
}

// Arrivals are when buyers arrive.
func (r *Rehearsal) Arrivals() []time.Duration { return r.arrivals }

var ListOrders = listOrders

// Measure reads a requirement and compares it.
func Measure(text string, t *stampede.Tally, units record.Cell) (Requirement, error) {
	r, err := readRequirement(text, true)
	if err == nil {
		r.measure(t, units)
	}
	return r, err
}

// Report writes how far a crowd has come.
func (r *Rehearsal) Report(p stampede.Progress) { r.progress(p) }

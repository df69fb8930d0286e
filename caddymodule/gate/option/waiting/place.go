package waiting

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/forward"
	"github.com/stockgate/stockgate/internal/store/queue"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// stateHeader marks an answer that tells where an order stands, so that clients can tell it from
// the shop's.
const stateHeader = "Stockgate-Queue"

// placeAnswer is what a buyer is told.
type placeAnswer struct {
	// State is waiting, at_shop, or how the reservation ended.
	State string `json:"state"`
	// Place says how many orders go before it, and itself.
	Place int64 `json:"place,omitempty"`
	// About is in seconds, by the pace of the last seconds; absent: it is not known.
	About int64 `json:"about,omitempty"`
	// Still: no order goes to the shop now.
	Still bool `json:"still,omitempty"`
	// Reason is why an order was not sent, in the words of refusals; absent: none of them says it.
	Reason string `json:"reason,omitempty"`
}

const (
	// leastRetry and mostRetry bound Retry-After, in seconds.
	leastRetry, mostRetry = 1, 30
	// mostPoll is how long a request for a place may wait for news.
	mostPoll  = 30 * time.Second
	pollEvery = time.Second
)

func placeOf(p queue.Place) (out placeAnswer, retry int64) {
	out, retry = placeAnswer{State: string(p.State), Place: p.Number, Still: p.Still}, 2
	switch p.State {
	case record.Held:
		out.State = "at_shop"
	case record.Released:
		reason, _ := p.Refused()
		out.Reason = string(reason)
	case record.Waiting:
		if p.About > 0 && !p.Still {
			out.About = int64((p.About + time.Second - 1) / time.Second)
			retry = min(max(out.About/2, leastRetry), mostRetry)
		} else {
			retry = 5
		}
	}
	return out, retry
}

// Accept answers 202: the order waits, and can be asked for at that path.
func Accept(w http.ResponseWriter, r *http.Request, p queue.Place, id, at string) error {
	h := w.Header()
	h.Set("Location", at)
	h.Set(forward.ReservationHeader, id)
	if prefersAsync(r) {
		h.Set("Preference-Applied", "respond-async")
	}
	return write(w, r, http.StatusAccepted, p)
}

func write(w http.ResponseWriter, r *http.Request, status int, p queue.Place) error {
	told, retry := placeOf(p)
	body, err := json.Marshal(told)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set(stateHeader, told.State)
	if told.State == string(record.Waiting) || told.State == "at_shop" {
		h.Set("Retry-After", strconv.FormatInt(retry, 10))
	}
	h.Set("Content-Length", strconv.Itoa(len(body)+1))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(append(body, '\n'))
	}
	return nil
}

// preference returns the value of a preference (RFC 7240); false: the client does not state it.
func preference(r *http.Request, name string) (value string, ok bool) {
	for _, line := range r.Header.Values("Prefer") {
		for p := range strings.SplitSeq(line, ",") {
			p, _, _ = strings.Cut(p, ";")
			key, value, _ := strings.Cut(strings.TrimSpace(p), "=")
			if strings.EqualFold(strings.TrimSpace(key), name) {
				return strings.Trim(strings.TrimSpace(value), `"`), true
			}
		}
	}
	return "", false
}

// Patience is how long a client wants to wait for news (`Prefer: wait=25`, RFC 7240), at most 30 s; 0: it wants to know now.
func Patience(r *http.Request) time.Duration {
	text, _ := preference(r, "wait")
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0
	}
	return min(time.Duration(n)*time.Second, mostPoll)
}

func prefersAsync(r *http.Request) bool {
	_, ok := preference(r, "respond-async")
	return ok
}

// WaitOf is how long a request stays open for its own answer.
func (o *Options) WaitOf(r *http.Request) time.Duration {
	if prefersAsync(r) {
		return 0
	}
	return time.Duration(*o.Wait)
}

// IsOrder returns the ticket in a path below /orders; false: it is another path. The shop may have
// pages there too.
func IsOrder(path string) (ticket string, ok bool) {
	ticket, ok = strings.CutPrefix(path, "/orders/")
	return ticket, ok && queue.IsTicket(ticket)
}

// ServeOrder answers where the order of a ticket stands, or what the shop has answered. DELETE
// takes it out of the line. A ticket that this edge has not made is 404, whatever it names. Of one that
// it has made, Redis not knowing the order is an error (503) while its sale is lost, and else 410.
func ServeOrder(w http.ResponseWriter, r *http.Request, d *edgeruntime.Runtime, ticket string) error {
	if !d.Begin() {
		return shard.ErrUnavailable
	}
	defer d.End()
	if _, err := d.Secret(); err != nil { // an edge that has just started does not know yet what is a ticket
		return err
	}
	q := d.Queue()
	sale, id, ok := q.ReadTicket(ticket)
	if !ok {
		return notFound(w, r)
	}
	w.Header().Set(forward.ReservationHeader, id)
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return serve(w, r, q, d, sale, id)
	case http.MethodDelete:
		return cancel(w, r, q, d, sale, id)
	}
	w.Header().Set("Allow", "GET, HEAD, DELETE")
	return problem(w, r, http.StatusMethodNotAllowed, "only GET, HEAD and DELETE")
}

func serve(w http.ResponseWriter, r *http.Request, q *queue.Queue, d *edgeruntime.Runtime, sale, id string) error {
	var until time.Time
	if wait := Patience(r); wait > 0 {
		if leave, ok := q.Poll(sale, id); ok { // else it is told at once what is known, and when to ask again
			defer leave()
			until = time.Now().Add(wait)
			w.Header().Set("Preference-Applied", "wait="+strconv.Itoa(int(wait/time.Second)))
		}
	}
	var first queue.Place
	for try := 0; ; try++ {
		ctx, done := context.WithTimeout(context.WithoutCancel(r.Context()), 2*d.Client().Timeout())
		var p queue.Place
		err := sure(ctx, d, sale, func() (err error) {
			p, err = q.Ask(ctx, sale, id)
			return err
		})
		var a *queue.Answer
		if err == nil && (p.Answered || p.State != record.Waiting && p.State != record.Held) { // a held one, too, where the shop decides later
			a, err = answerTo(ctx, q, d, sale, id)
		}
		done()
		switch {
		case errors.Is(err, reservation.ErrNotFound):
			return gone(w, r)
		case err != nil:
			return err
		case a != nil:
			return replay(w, r, a)
		}
		if try == 0 {
			first = p
		}
		moved := p.State != first.State || p.Number != first.Number
		if p.State != record.Waiting && p.State != record.Held || !time.Now().Add(pollEvery).Before(until) || moved && p.State == record.Waiting && p.Number < 10 {
			return write(w, r, http.StatusOK, p)
		}
		timer := time.NewTimer(pollEvery)
		select {
		case <-timer.C:
		case <-r.Context().Done():
			timer.Stop()
			return nil
		}
	}
}

// answerTo returns what the shop has answered, as the queue or an idempotency key keeps it.
func answerTo(ctx context.Context, q *queue.Queue, d *edgeruntime.Runtime, sale, id string) (*queue.Answer, error) {
	if a, err := q.Answer(ctx, sale, id); a != nil || err != nil {
		return a, err
	}
	s, err := d.Store.StoredAnswer(ctx, sale, id)
	if s == nil || err != nil {
		return nil, err
	}
	a := &queue.Answer{Status: s.Status, Header: make(http.Header), Body: s.Body}
	if s.ContentType != "" {
		a.Header.Set("Content-Type", s.ContentType)
	}
	if s.Location != "" {
		a.Header.Set("Location", s.Location)
	}
	return a, nil
}

// connectionHeaders belong to the connection on which the shop answered (RFC 9110, section
// 7.6.1), or are set again.
var connectionHeaders = []string{"Connection", "Keep-Alive", "Transfer-Encoding", "Trailer", "Upgrade", "Content-Length", "Date"}

func replay(w http.ResponseWriter, r *http.Request, a *queue.Answer) error {
	h := w.Header()
	maps.Copy(h, a.Header)
	for _, name := range connectionHeaders {
		h.Del(name)
	}
	h.Del(stateHeader)
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(a.Body)))
	w.WriteHeader(a.Status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(a.Body)
	}
	return nil
}

func cancel(w http.ResponseWriter, r *http.Request, q *queue.Queue, d *edgeruntime.Runtime, sale, id string) error {
	ctx := context.WithoutCancel(r.Context())
	err := sure(ctx, d, sale, func() error { return q.Cancel(ctx, sale, id, "cancelled by its buyer") })
	conflict, isConflict := errors.AsType[*reservation.ConflictError](err)
	switch {
	case err == nil:
		return write(w, r, http.StatusOK, queue.Place{State: record.Released})
	case errors.Is(err, queue.ErrAtShop):
		return write(w, r, http.StatusConflict, queue.Place{State: record.Held})
	case isConflict:
		return write(w, r, http.StatusConflict, queue.Place{State: conflict.State})
	case errors.Is(err, reservation.ErrNotFound):
		return gone(w, r)
	}
	return err
}

// sure asks Redis about an order. That Redis does not know it is the answer only if its sale is there,
// or was deleted: it asks once more then, because the sale may have come back between two questions.
func sure(ctx context.Context, d *edgeruntime.Runtime, sale string, ask func() error) error {
	err := ask()
	if !errors.Is(err, reservation.ErrNotFound) {
		return err
	}
	if err := d.Gone(ctx, sale); err != nil {
		return err
	}
	return ask()
}

// gone answers about an order that was there.
func gone(w http.ResponseWriter, r *http.Request) error {
	return problem(w, r, http.StatusGone, "this order is not known any more")
}

func notFound(w http.ResponseWriter, r *http.Request) error {
	return problem(w, r, http.StatusNotFound, "there is no such order")
}

func problem(w http.ResponseWriter, r *http.Request, status int, text string) error {
	body, err := json.Marshal(map[string]string{"error": text})
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(append(body, '\n'))
	}
	return nil
}

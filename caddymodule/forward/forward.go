// Package forward sends a reserved attempt to the shop and reports the outcome to Redis. It only watches attempts of
// gates in shadow.
// The rules that judge the shop's answer are those of package outcome.
package forward

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/caddymodule/internal/reply"
	"github.com/stockgate/stockgate/caddymodule/internal/span"
	"github.com/stockgate/stockgate/filters/outcome"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/token"
)

const (
	proxyStatusKey  = "http.reverse_proxy.status_code"
	proxyRetriesKey = "http.reverse_proxy.retries"
	// ReservationHeader has the reservation's id in answers to clients.
	ReservationHeader = "Stockgate-Reservation"
)

// Forwarding is one reserved attempt on its way to the shop and back. It ends exactly once:
// by a return, an error or a panic.
type Forwarding struct {
	Rules *outcome.Rules
	Log   *zap.Logger
	Slot  *InFlightSlot // released when the forwarding ends
	Hold  reservation.Hold
	Token string
	Began time.Time // when the attempt came to the gate
	Body  []byte
	Repl  *caddy.Replacer
	// MaxAnswer is how many bytes of the shop's answer the edge keeps from the client until the outcome is
	// decided. Default: outcome.DefaultMaxBody.
	MaxAnswer int
	out       http.Header // the answer's header
	ctx       context.Context
	// SentBefore: the request has been at the shop, for an order that it has put off.
	SentBefore bool
	// Again: the order is sold already, and this forwarding cannot change that.
	Again bool
	// Copy collects the answer for KeepCopy, so that a repeat of the attempt gets it; nil:
	// the attempt has no idempotency key.
	Copy     *Copy
	KeepCopy time.Duration
	// Asker asks the shop how the order ended; its answer to the client then decides nothing.
	// nil: the Rules judge that answer.
	Asker Asker
	// Queued: the order could have waited, and this edge alone sends it. That it was not sent is
	// then as good as the shop's word, and must outlive a failover as that does: another edge
	// would send what waits again.
	Queued bool
	// Later says that the shop wants the order later; nil: it never does. The answer then reaches
	// no client, and the forwarding ends without an outcome: PutOff is set, and the slot kept.
	Later func(*outcome.ShopAnswer) (yes, known bool)
	// PutOff is how long the shop wants to get no order, when it wants this one later.
	PutOff *time.Duration
	// Kept gets the shop's whole answer before Redis hears the outcome; nil: it is not kept. It
	// is not called for an order in doubt.
	Kept func(status int, header http.Header, body []byte)
	// Ended is called when the outcome is known, before the client has read the answer.
	Ended func()

	wire  sendTrace
	ended bool
	doubt bool // it ended in doubt
	// reader is the client. The answer is written to it after the end.
	reader reader

	// fields that forwarding needs are embedded, to save allocations: every sale takes this
	// path
	answer heldAnswer
	reply  outcome.ShopAnswer
	writer caddyhttp.ResponseWriterWrapper
	trace  httptrace.ClientTrace
}

// Asker asks the shop how an order ended.
type Asker interface {
	// Ask is called once, when the shop has answered, or will not answer any more. sent is the
	// number of requests whose headers were written, answer what the shop said to the last one; it is
	// not whole if the shop broke it off, or if it is longer than MaxAnswer.
	Ask(sent int, answer *outcome.ShopAnswer) (v outcome.Decision, cause string)
	// ReadsAnswer reports whether Ask reads the body of the answer.
	ReadsAnswer() bool
	// Confirm tells Redis that the shop has the order. It returns the state that the hold has;
	// empty: Redis has not answered.
	Confirm(ctx context.Context, cause string) (record.State, error)
	// InDoubt is called when Redis has heard that the outcome is unknown.
	InDoubt()
}

// Forward sends the attempt to the shop. The forwarded request does not end when the client
// leaves: the shop's answer decides, even if no client reads it.
func (f *Forwarding) Forward(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, timeout time.Duration) (err error) {
	traced, forwarding := span.Start(r.Context(), span.Forward)
	defer forwarding.End()
	f.ctx = context.WithoutCancel(traced)
	ctx, cancel := context.WithTimeout(f.ctx, timeout)
	defer cancel()
	f.out = w.Header()
	var before http.Header
	if f.Later != nil {
		before = f.out.Clone()
	}
	f.forget()
	f.Repl.Delete(proxyRetriesKey)

	f.writer.ResponseWriter = w
	f.answer = heldAnswer{ResponseWriterWrapper: &f.writer, flight: f, copy: f.Copy}
	a := &f.answer
	f.reader.init(w, r)
	defer f.Slot.of.readers.leave(&f.reader)
	f.wire.watch(&f.trace, f.Repl)
	returned := false
	defer func() {
		if !returned { // a panic goes on after this
			f.end(f.lost(a, nil, "panic"))
		}
	}()
	sends := httptrace.WithClientTrace(ctx, &f.trace)
	if f.SentBefore {
		sends = ownVars(sends)
	}
	err = next.ServeHTTP(a, f.request(r, sends))
	returned = true
	f.countAnswer(a)
	cause := "no_answer"
	switch {
	case err == nil:
		f.answerWithStatus(a)
		err = a.finish()
	case ctx.Err() != nil:
		cause = "timeout"
	default:
		cause = "connection_lost"
	}
	if !f.ended {
		f.end(f.lost(a, err, cause))
	}
	if f.PutOff != nil {
		clear(f.out)
		maps.Copy(f.out, before)
		return nil
	}
	if err == nil && a.left {
		return nil
	}
	if a.left {
		panic(http.ErrAbortHandler) // the client has part of the answer, which must not look complete
	}
	if err == nil { // net/http would write an empty 200, which the shop did not send
		err = caddyhttp.Error(http.StatusBadGateway, errors.New("the shop gave no final answer"))
	}
	reply.DropPayload(r)
	return err
}

// countAnswer counts what the shop has said, if it was asked.
func (f *Forwarding) countAnswer(a *heldAnswer) {
	if f.PutOff != nil { // it has asked for later, as agreed
		return
	}
	status, proxied := f.proxyStatus()
	if !proxied {
		status = a.status
	}
	meter.CountShopAnswer(f.Hold.Sale, status)
}

// answerWithStatus writes the shop's own status if the handlers behind the gate received
// one and wrote nothing.
func (f *Forwarding) answerWithStatus(a *heldAnswer) {
	if status, proxied := f.proxyStatus(); proxied && status >= 200 && a.status == 0 {
		a.WriteHeader(status)
	}
}

// request returns the request for the shop: the client's, with the token.
func (f *Forwarding) request(r *http.Request, ctx context.Context) *http.Request {
	out := r.WithContext(ctx)
	out.Header = r.Header.Clone() // handlers change values in place
	out.Header[token.Header] = []string{f.Token}
	if f.Rules.ReadsBody || f.Copy != nil || f.Asker != nil && f.Asker.ReadsAnswer() {
		out.Header["Accept-Encoding"] = []string{"identity"}
	}
	// No GetBody: net/http must not resend a body by itself. The body of the outer request
	// stays unread.
	if len(f.Body) > 0 {
		out.Body = io.NopCloser(bytes.NewReader(f.Body))
	} else {
		out.Body = http.NoBody
	}
	out.GetBody = nil
	out.ContentLength = int64(len(f.Body))
	out.TransferEncoding = nil
	out.Trailer = nil
	return out
}

// forget drops the status of an earlier answer when a request is sent: it is not the answer
// to this one. forward_auth is a reverse proxy too.
func (f *Forwarding) forget() { Forget(f.Repl) }

// Forget drops the status of an earlier answer.
func Forget(repl *caddy.Replacer) { repl.Delete(proxyStatusKey) }

// proxyStatus returns the status that the shop gave to reverse_proxy, even if other
// handlers changed it.
func (f *Forwarding) proxyStatus() (int, bool) { return ProxyStatus(f.Repl) }

// ProxyStatus returns the status that the shop gave to reverse_proxy.
func ProxyStatus(repl *caddy.Replacer) (int, bool) {
	v, ok := repl.Get(proxyStatusKey)
	if !ok {
		return 0, false
	}
	status, ok := v.(int)
	return status, ok
}

// Package forward sends a reserved attempt to the shop and reports the outcome to Redis.
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
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	oteltrace "go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/caddymodule/internal/reply"
	"github.com/stockgate/stockgate/caddymodule/internal/span"
	"github.com/stockgate/stockgate/outcome"
	"github.com/stockgate/stockgate/record"
	"github.com/stockgate/stockgate/reservation"
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
	out   http.Header // the answer's header
	ctx   context.Context
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
	Later func(*outcome.Reply) (yes, known bool)
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
	answer answer
	reply  outcome.Reply
	writer caddyhttp.ResponseWriterWrapper
	trace  httptrace.ClientTrace
}

// Asker asks the shop how an order ended.
type Asker interface {
	// Ask is called once, when the shop has answered, or will not answer any more. sent is the
	// number of requests whose headers were written, answered whether the last one got a whole
	// answer.
	Ask(sent int, answered bool) (v outcome.Decision, cause string)
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
	f.answer = answer{ResponseWriterWrapper: &f.writer, flight: f, copy: f.Copy}
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
	err = next.ServeHTTP(a, f.request(r, httptrace.WithClientTrace(ctx, &f.trace)))
	returned = true
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

// answerWithStatus writes the shop's own status if the handlers behind the gate received
// one and wrote nothing.
func (f *Forwarding) answerWithStatus(a *answer) {
	if status, proxied := f.proxyStatus(); proxied && status >= 200 && a.status == 0 {
		a.WriteHeader(status)
	}
}

// request returns the request for the shop: the client's, with the token.
func (f *Forwarding) request(r *http.Request, ctx context.Context) *http.Request {
	out := r.WithContext(ctx)
	out.Header = r.Header.Clone() // handlers change values in place
	out.Header[token.Header] = []string{f.Token}
	if f.Rules.ReadsBody || f.Copy != nil {
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

// judge applies the rules. If more than one request was sent, a refusal of the last one
// says nothing about the others: the shop may refuse a retry because the first request has
// become an order.
func (f *Forwarding) judge(r *outcome.Reply) (v outcome.Decision, cause string) {
	v = f.Rules.Decide(r)
	if v == outcome.Release && f.wire.sent.Load() > 1 {
		return f.Rules.Otherwise, "several_answers"
	}
	return v, outcome.StatusCause(r.Status)
}

// decide is called while the answer arrives, before the client sees it. last: no more will
// arrive.
func (f *Forwarding) decide(status int, body []byte, whole, last bool) (enough bool) {
	if f.Asker != nil {
		if last {
			f.end(f.Asker.Ask(int(f.wire.sent.Load()), whole))
		}
		return last
	}
	shops, proxied := f.proxyStatus()
	if !proxied {
		if !last {
			return false // without a proxy, the status decides when the answer must go out
		}
		shops = status
	}
	f.reply = outcome.Reply{Status: shops, Header: f.out, Body: body, Whole: whole}
	if f.Later != nil && f.wire.sent.Load() <= 1 {
		switch yes, known := f.Later(&f.reply); {
		case yes:
			f.putOff()
			return true
		case !known && !last:
			return false
		}
	}
	v, cause := f.judge(&f.reply)
	if v == outcome.Undecided {
		if !last {
			return false
		}
		f.end(f.Rules.Otherwise, "long_answer")
		return true
	}
	f.end(v, cause)
	return true
}

// putOff ends the forwarding of an order that the shop wants later.
func (f *Forwarding) putOff() {
	after := time.Duration(0)
	if seconds, err := strconv.Atoi(f.out.Get("Retry-After")); err == nil && seconds > 0 { // RFC 9110, section 10.2.3
		after = time.Duration(min(seconds, int(mostLater/time.Second))) * time.Second
	} else if at, err := http.ParseTime(f.out.Get("Retry-After")); err == nil {
		after = min(max(time.Until(at), 0), mostLater)
	}
	f.PutOff, f.ended = &after, true
}

// mostLater bounds what a shop may ask for: a wrong date must not stop a sale.
const mostLater = 5 * time.Minute

// lost decides when the handlers behind the gate have returned and the answer did not
// decide: by the status if there is one; otherwise the outcome is unknown.
func (f *Forwarding) lost(a *answer, err error, cause string) (outcome.Decision, string) {
	if f.ended {
		return outcome.Undecided, ""
	}
	if f.Asker != nil && !f.neverSent(err) {
		return f.Asker.Ask(int(f.wire.sent.Load()), false)
	}
	status, proxied := f.proxyStatus()
	if !proxied && err == nil && cause != "panic" {
		status = a.status
	}
	switch {
	case status >= 200:
		f.reply = outcome.Reply{Status: status, Header: f.out}
		if v, cause := f.judge(&f.reply); v != outcome.Undecided {
			return v, cause
		}
		return f.Rules.Otherwise, "short_answer"
	case status != 0: // 101
		return f.Rules.Otherwise, outcome.StatusCause(status)
	}
	if f.neverSent(err) {
		return outcome.Release, "never_sent"
	}
	if err == nil && cause == "no_answer" {
		f.Log.Error("nothing behind the gate answered: is there a reverse_proxy after stockgate?", zap.String("reservation", f.Hold.ID))
	}
	return f.Rules.Otherwise, cause
}

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

// end reports the outcome to Redis, to the client and to the operator.
func (f *Forwarding) end(v outcome.Decision, cause string) {
	if f.ended {
		return
	}
	f.ended = true
	var resolving oteltrace.Span
	f.ctx, resolving = span.Start(f.ctx, span.Resolve)
	defer resolving.End()
	defer func() {
		f.Slot.of.readers.join(&f.reader)
		f.Slot.GiveBack() // the edge runtime may close from here on
		if f.Ended != nil {
			f.Ended()
		}
	}()
	f.out[ReservationHeader] = []string{f.Hold.ID}
	sale, id := f.Hold.Sale, f.Hold.ID
	if f.Again {
		f.endAgain(v, cause)
		return
	}
	if f.Kept != nil && v != outcome.InDoubt {
		if status, header, body, ok := f.Copy.kept(); ok {
			f.Kept(status, header, body)
		}
	}
	var state record.State
	var err error
	switch v {
	case outcome.Confirm:
		f.remember() // first: as soon as the order is sold, a repeat may ask for the answer
		if f.Asker != nil {
			state, err = f.Asker.Confirm(f.ctx, cause)
		} else {
			state, err = f.Slot.runtime.ConfirmEventually(f.ctx, sale, id, cause)
		}
	case outcome.Release:
		word := reservation.SourceShop
		if cause == "never_sent" && !f.Queued {
			word = reservation.SourceUnsent
		}
		state, err = f.Slot.runtime.ReleaseEventually(f.ctx, sale, id, word, cause)
	case outcome.Keep:
		f.remember()
		f.Slot.runtime.Free(f.ctx, sale, id)
	default:
		state, err = f.Slot.runtime.DoubtEventually(f.ctx, sale, id, cause)
	}
	if f.Asker != nil && v == outcome.InDoubt {
		f.Asker.InDoubt()
	}
	became := v.State()
	switch state { // the shop's API, an operator or a probe may have settled it first
	case record.Confirmed, record.Released, record.Unbacked:
		became = string(state)
	}
	meter.CountAttempt(sale, became, "")
	switch became {
	case string(record.Confirmed), string(record.Held):
		meter.Won(time.Since(f.Began))
	case string(record.Released):
		meter.Lost(time.Since(f.Began))
	}
	if would := f.Hold.Shadow; would != nil && became == string(record.Confirmed) {
		meter.CountShadow(sale, meter.SoldPast, would.Reason)
	} else if would != nil {
		meter.CountShadow(sale, meter.WouldRefuse, would.Reason)
	}
	switch {
	case errors.Is(err, reservation.ErrNotFound) && v == outcome.Confirm:
		f.Log.Error("the shop took an order whose reservation redis does not know: it has lost data; check the order by hand",
			zap.String("sale", sale), zap.String("reservation", id))
	case err != nil:
		f.Log.Warn("redis could not be told how an attempt ended", zap.String("sale", sale),
			zap.String("reservation", id), zap.String("outcome", v.String()), zap.String("cause", cause), zap.Error(err))
	}
	if f.doubt = became == "in_doubt"; f.doubt && err == nil {
		f.Log.Warn("in doubt: it is unknown whether the shop took the order", zap.String("sale", sale),
			zap.String("reservation", id), zap.String("cause", cause))
	}
}

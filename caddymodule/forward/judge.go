package forward

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	oteltrace "go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/caddymodule/internal/span"
	"github.com/stockgate/stockgate/filters/outcome"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// judge applies the rules. If more than one request was sent, a refusal of the last one
// says nothing about the others: the shop may refuse a retry because the first request has
// become an order.
func (f *Forwarding) judge(r *outcome.ShopAnswer) (v outcome.Decision, cause string) {
	v, by, _ := f.Rules.Match(r)
	if v == outcome.Release && f.wire.sent.Load() > 1 {
		return f.Rules.Otherwise, "several_answers"
	}
	if by == "" && v == outcome.InDoubt {
		if cause = f.Rules.Unmatched(r); cause != "" {
			return v, cause
		}
	}
	return v, outcome.StatusCause(r.Status)
}

// decide is called while the answer arrives, before the client sees it. last: no more will
// arrive.
func (f *Forwarding) decide(status int, body []byte, whole, last bool) (enough bool) {
	if f.Asker != nil {
		if last {
			f.reply = outcome.ShopAnswer{Status: status, Header: f.out, Body: body, Whole: whole, MaxBody: f.MaxAnswer}
			f.end(f.Asker.Ask(int(f.wire.sent.Load()), &f.reply))
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
	f.reply = outcome.ShopAnswer{Status: shops, Header: f.out, Body: body, Whole: whole, MaxBody: f.MaxAnswer}
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
		cause := "long_answer"
		if _, problem := f.reply.Plain(); problem == "" { // all of it is there, and an array has more elements than the rules read
			cause = "more_elements"
		}
		f.end(f.Rules.Otherwise, cause)
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
func (f *Forwarding) lost(a *heldAnswer, err error, cause string) (outcome.Decision, string) {
	if f.ended {
		return outcome.Undecided, ""
	}
	if f.Asker != nil && !f.neverSent(err) {
		return f.Asker.Ask(int(f.wire.sent.Load()), &outcome.ShopAnswer{MaxBody: f.MaxAnswer})
	}
	status, proxied := f.proxyStatus()
	if !proxied && err == nil && cause != "panic" {
		status = a.status
	}
	switch {
	case status >= 200:
		f.reply = outcome.ShopAnswer{Status: status, Header: f.out}
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
		meter.Won(sale, time.Since(f.Began))
	case string(record.Released):
		meter.Lost(sale, time.Since(f.Began))
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

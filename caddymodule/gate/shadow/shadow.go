// Package shadow says what gates in shadow would have done. They forward every request as it is, and refuse and hold nothing.
package shadow

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/forward"
	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/caddymodule/gate/selling"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/filters"
	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/filters/outcome"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// watchedPerSlot is how many requests of a gate in shadow are watched at a time for each of its
// in-flight slots, from their arrival to the end of their dry run. Others are forwarded all the
// same, and not judged.
const watchedPerSlot = 4

// Shadow is what a gate in shadow has compiled.
type Shadow struct {
	judge    *judge.Judge
	terms    *selling.Terms
	watching *filters.Slots
	texts    []string // the values that only Caddy's replacer knows
	keep     forward.Excerpt
	maxBody  int64
}

// Open prepares what is kept of the requests of a gate.
func (s *Shadow) Open(j *judge.Judge, terms *selling.Terms) error {
	if j.App.Journals().Mirrors(j.Sale...) {
		return errors.New("shadow: the app has `mirror`, which would overwrite the numbers by which the shop's own script still sells: leave mirror out until the gate is live")
	}
	s.judge, s.terms = j, terms
	s.watching, s.maxBody, s.keep.Header = filters.NewSlots(watchedPerSlot*j.MaxInFlight), j.BodyLimit(), len(terms.Answers) > 0
	if terms.Outcomes.ReadsBody {
		s.keep.Body = terms.AnswerLimit()
	}
	for _, expr := range j.Values() {
		if v, err := attempt.Compile(expr); err == nil && v.Kind() == attempt.Text {
			s.texts = append(s.texts, v.Asked())
		}
	}
	return nil
}

// ServeHTTP forwards a request as it is. What the gate would have done is decided when the
// shop has answered: nothing of it delays the request.
func (s *Shadow) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if r.Method == http.MethodOptions {
		return next.ServeHTTP(w, r)
	}
	d := s.judge.App.Runtime()
	switch {
	case !s.watching.Take():
		meter.SkipShadow(meter.SkippedBusy)
		return next.ServeHTTP(w, r)
	case d == nil || !d.Begin():
		s.watching.Give()
		meter.SkipShadow(meter.SkippedRedis)
		return next.ServeHTTP(w, r)
	}
	seen := &sighting{of: s, runtime: d, repl: r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer), decision: outcome.InDoubt}
	seen.purchase = s.judge.Seller().Begin(judge.Visit{Purpose: judge.Watching, Began: time.Now(), Out: make(http.Header), Texts: make(map[string]string, len(s.texts))})
	for _, text := range s.texts {
		seen.purchase.Texts[text] = seen.repl.ReplaceAll(text, "")
	}
	seen.watch = forward.BeginWatch(w, r, s.maxBody, s.keep)
	forward.Forget(seen.repl)
	defer func() { // also when a handler panics
		seen.status, _ = forward.ProxyStatus(seen.repl)
		go seen.judge()
	}()
	err := next.ServeHTTP(seen.watch.Writer(), r)
	if err == nil {
		seen.written = seen.watch.Writer().Status()
	}
	return err
}

// sighting is one request in shadow.
type sighting struct {
	of       *Shadow
	runtime  *edgeruntime.Runtime
	repl     *caddy.Replacer
	watch    *forward.Watch
	status   int // the shop's own; 0: no proxy has got one
	written  int // by the handlers behind the gate; 0: nothing, or they failed
	decision outcome.Decision
	purchase *judge.Case
}

// judge makes the dry run, and counts what came of it.
func (s *sighting) judge() {
	defer s.runtime.End()
	defer s.of.watching.Give()
	defer func() {
		if fault := recover(); fault != nil { // a dry run must not end the process
			meter.SkipShadow(meter.SkippedFailed)
			s.of.judge.Log().Error("a dry run in shadow has failed: report this", zap.Any("fault", fault))
		}
	}()
	if status := s.shopStatus(); status >= http.StatusOK {
		s.decision = s.of.terms.Outcomes.Decide(s.watch.Writer().Reply(status))
	}
	if s.decision == outcome.Undecided {
		s.decision = s.of.terms.Outcomes.Otherwise
	}
	r, complete := s.watch.Request()
	if !complete {
		meter.SkipShadow(meter.SkippedBody)
		return
	}
	p := s.purchase
	no, err := s.of.judge.Consider(r, p)
	if err != nil {
		meter.SkipShadow(meter.SkippedBody)
		return
	}
	earlier, _ := p.Earlier.Found()
	passed := no == nil && (p.Unlisted || earlier != "")
	if !passed && (no == nil || no.Reason != sale.Unavailable) {
		no, err = s.dryRun(r, no)
	}
	_, repeated := errors.AsType[*reservation.AlreadyBound](err)
	switch {
	case repeated || earlier != "":
		meter.CountShadow(p.SaleID(), "repeated", "")
	case err != nil || no != nil && no.Reason == sale.Unavailable:
		meter.SkipShadow(meter.SkippedRedis)
	case passed:
		meter.CountShadow(p.SaleID(), "passed", "")
	case no == nil:
		meter.CountShadow(p.SaleID(), s.decision.State(), "")
	case s.decision == outcome.Confirm:
		meter.CountShadow(p.SaleID(), meter.SoldPast, no.Reason)
	default:
		meter.CountShadow(p.SaleID(), meter.WouldRefuse, no.Reason)
	}
}

// shopStatus returns the status by which the rules judge; 0: there is none.
func (s *sighting) shopStatus() int {
	if s.status != 0 {
		return s.status
	}
	return s.written
}

// dryRun asks Redis about an attempt that the edge would let pass, and notes there what the shop
// has sold. no is the edge's own refusal.
func (s *sighting) dryRun(r *http.Request, no *sale.Refusal) (*sale.Refusal, error) {
	p, sold := s.purchase, reservation.NotSold
	switch {
	case no == nil && s.decision == outcome.Confirm:
		sold = reservation.WasSold
	case no == nil:
	case s.decision == outcome.Confirm && s.listed():
		sold = reservation.SoldPast
	default:
		return no, nil
	}
	shadowed, refusal, err := s.runtime.DryRun(context.WithoutCancel(r.Context()), p.Listing, p.Attempt, p.Lines, s.of.terms.Hold, sold)
	switch {
	case no != nil: // whatever Redis says
		return no, nil
	case refusal != nil:
		return refusal, err
	}
	return shadowed, err
}

// listed finds the sale of an attempt that was refused before its sale was looked for, or by it.
func (s *sighting) listed() bool {
	p := s.purchase
	if p.Attempt == nil || len(p.Attempt.Lines) == 0 {
		return false
	}
	if p.Listing == nil {
		var first *edge.Listing
		for _, l := range judge.Candidates(s.runtime.Catalogue(), p.Attempt) {
			if first == nil || l.RefusalAt(p.Began) == nil && first.RefusalAt(p.Began) != nil {
				first = l
			}
		}
		p.Listing = first
	}
	if p.Listing == nil {
		return false
	}
	if p.Lines == nil {
		p.Lines = judge.LinesIn(p.Listing.Sale, p.Attempt)
	}
	return true
}

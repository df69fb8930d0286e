// Package asking asks the shop how orders ended, for gates with `outcome ask`.
package asking

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/forward"
	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/caddymodule/gate/option/inquiry"
	"github.com/stockgate/stockgate/caddymodule/gate/option/session"
	"github.com/stockgate/stockgate/caddymodule/gate/selling"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/caddymodule/internal/timing"
	"github.com/stockgate/stockgate/filters"
	"github.com/stockgate/stockgate/filters/outcome"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

const (
	// askAgain is the least time between two questions about one order. It doubles.
	askAgain = 5 * time.Second
	// maxAsks is how often the shop is asked about one order.
	maxAsks = 10
	// maxAsksLater bounds the orders that are asked about again, whose credentials the edge
	// keeps until then.
	maxAsksLater = 10_000
)

// Inquirer asks the shop of one gate.
type Inquirer struct {
	terms *selling.Terms
	log   *zap.Logger
	slots *filters.Slots // bounds the orders that are asked about again
}

// New returns what asks by a gate's terms; nil: the shop is not asked.
func New(terms *selling.Terms, log *zap.Logger) *Inquirer {
	if terms.Asked == nil {
		return nil
	}
	return &Inquirer{terms: terms, log: log, slots: filters.NewSlots(maxAsksLater)}
}

// About prepares the question about an order. began is when its stock was asked for.
func (a *Inquirer) About(r *http.Request, p *judge.Case, hold *reservation.Hold, began time.Time) forward.Asker {
	values := a.terms.Asked.Told(p.Documents())
	values["ref"] = p.Attempt.Ref
	return &asking{
		inquirer: a, runtime: p.Runtime, buyer: inquiry.BuyerOf(r).WithoutQuery(), attempt: *p.Attempt, values: values, turn: p.Turn, hold: hold,
		deadline: began.Add(a.terms.Hold.HoldFor),
	}
}

// asking asks the shop how one order ended.
type asking struct {
	inquirer *Inquirer
	runtime  *edgeruntime.Runtime
	buyer    *inquiry.Buyer
	attempt  sale.Attempt
	values   map[string]string // of the question
	turn     *session.Exclusion
	hold     *reservation.Hold
	// deadline is when the hold's token is certainly no longer valid.
	deadline time.Time
	sold     edge.SoldUnits // nil: the shop did not say
	said     string         // what the shop said last, as a cause
	asked    int
	notSold  int  // how often in a row the shop said that it has no order
	nameless bool // there is no question: a value that names the order is missing, or cannot stand in the URL
}

// The causes of outcomes that were asked.
const (
	causeSold    = "asked_sold"
	causeNotSold = "asked_not_sold"
	causeUnclear = "asked_unclear"
	causeFailed  = "asked_failed"
)

// ReadsAnswer reports whether the question needs the shop's answer to the order.
func (a *asking) ReadsAnswer() bool { return a.inquirer.terms.Asked.ReadsAnswer() }

// ask asks once.
func (a *asking) ask() (v outcome.Decision) {
	a.asked++
	answer, err := a.inquirer.terms.Asked.Ask(context.Background(), a.buyer, func(name string) string { return a.values[name] })
	switch {
	case err != nil:
		a.said, a.nameless = causeFailed, errors.Is(err, inquiry.ErrNoValue)
		if c := a.inquirer.log.Check(zap.DebugLevel, "the shop did not say how an order ended"); c != nil {
			c.Write(zap.String("reservation", a.hold.ID), zap.Error(err))
		}
		v = outcome.InDoubt
	default:
		v = a.inquirer.terms.Outcomes.Decide(answer)
		a.said = map[outcome.Decision]string{outcome.Confirm: causeSold, outcome.Release: causeNotSold}[v]
		if a.said == "" {
			a.said, v = causeUnclear, outcome.InDoubt
		}
		if lines := a.inquirer.terms.Ask.Lines; v == outcome.Confirm && lines != nil {
			var ok bool
			if a.sold, ok = lines.Sold(answer); !ok {
				a.inquirer.log.Warn("the shop's answer to outcome ask has no lines where the gate looks for them, so the units sold are not compared with the units reserved",
					zap.String("lines", lines.Array))
			}
		}
	}
	if v == outcome.Release {
		a.notSold++
	} else {
		a.notSold = 0
	}
	meter.CountAsk(strings.TrimPrefix(a.said, "asked_"))
	if a.said == causeUnclear {
		if why := a.inquirer.terms.Outcomes.Unmatched(answer); why != "" {
			a.said = "asked_" + why
		}
	}
	return v
}

// Ask asks when the shop has answered the order. That it has no order yet proves nothing
// unless it says that payments are decided at once, and one request was sent and answered: a
// payment may be under way, a server that answers may lag behind, or another edge serves the
// session too.
func (a *asking) Ask(sent int, answer *outcome.ShopAnswer) (outcome.Decision, string) {
	if lacks := a.inquirer.terms.Asked.Answered(a.values, answer); lacks != "" {
		a.nameless, a.said = true, "answer_"+string(lacks)
		meter.CountAsk("unnamed")
		return outcome.InDoubt, a.said
	}
	v := a.ask()
	if v == outcome.Release && (!a.inquirer.terms.Ask.PaymentsSync || sent != 1 || !answer.Whole || !a.turn.WasAlone()) {
		v = outcome.InDoubt
	}
	return v, a.said
}

// Confirm tells Redis that the shop has the order, and what it sold where it says that.
func (a *asking) Confirm(ctx context.Context, cause string) (record.State, error) {
	if a.sold == nil {
		return a.runtime.ConfirmEventually(ctx, a.hold.Sale, a.hold.ID, cause)
	}
	return a.runtime.ConfirmOrderEventually(ctx, a.hold, &a.attempt, cause, a.sold)
}

// InDoubt asks again later, unless nothing names the order.
func (a *asking) InDoubt() {
	if !a.nameless && a.inquirer.slots.Take() {
		a.later()
	}
}

// later asks again. An order that the shop does not have must be asked about once more when it
// can no longer be placed with the hold's token. What the edge does not live to ask stays in
// doubt, for the gate's probe or an operator.
func (a *asking) later() {
	wait := askAgain << min(a.asked-1, maxAsks)
	if a.notSold > 0 {
		wait = max(wait, time.Until(a.deadline))
	}
	timing.QuestionLater.Call(wait, func() {
		if !a.runtime.Begin() {
			a.inquirer.slots.Give()
			return
		}
		defer a.runtime.End()
		switch v := a.ask(); {
		case v == outcome.Confirm:
			_, _ = a.Confirm(context.Background(), a.said)
		case a.notSold > 1 && a.release() == nil:
		case a.asked < maxAsks:
			a.later()
			return
		}
		a.inquirer.slots.Give()
	})
}

// release gives the units back, unless Redis says that the token may still be valid.
func (a *asking) release() error {
	ctx, cancel := context.WithTimeout(context.Background(), 4*a.runtime.Store.Shard().Timeout())
	defer cancel()
	_, err := a.runtime.Store.Release(ctx, a.hold.Sale, a.hold.ID, reservation.SourceProbe, a.said)
	return err
}

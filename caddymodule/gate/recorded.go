package gate

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/filters/outcome"
	"github.com/stockgate/stockgate/filters/scope"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/queue"
	"github.com/stockgate/stockgate/internal/store/record"
)

// An order that waits may have been made by another configuration of the gate: before a reload, or at
// another edge. What it is about is read again, and what decides its outcome is what was recorded.

// unlike reads an order's request as the gate reads it now. It returns what is not as it was when stock
// was held for it, empty: nothing. known is false if that cannot be found out now.
func (g *Gate) unlike(r *http.Request, made *judge.Case, saleID string, o *queue.Order) (what string, known bool) {
	p := &judge.Case{Visit: judge.Visit{Purpose: judge.Trying, Began: made.Began, Repl: made.Repl, Out: make(http.Header), AsOf: o.At}}
	no, err := g.InScope(r, p)
	if no == nil && err == nil && p.Scope == scope.Attempt {
		no, err = g.Read(r, p)
	}
	switch {
	case err != nil:
		return "body", true
	case no != nil && no.Reason == sale.Unavailable:
		return "", false
	case no != nil:
		return string(no.Reason), true
	case p.Scope != scope.Attempt:
		return "operation", true
	}
	return difference(p.Attempt, &o.Attempt, saleID), true
}

// difference names what of an order is not as it was; empty: nothing.
func difference(now, then *sale.Attempt, saleID string) string {
	switch {
	case now.Buyer != then.Buyer:
		return "buyer"
	case now.Sale != "" && now.Sale != saleID:
		return "sale"
	case now.Region != then.Region || !slices.Equal(inOrder(now.Lines), inOrder(then.Lines)):
		return "lines"
	case now.Ref != then.Ref:
		return "ref"
	}
	return ""
}

// inOrder sorts lines, which a cart may list in any order.
func inOrder(lines []sale.Line) []sale.Line {
	return slices.SortedFunc(slices.Values(lines), func(a, b sale.Line) int {
		return cmp.Or(cmp.Compare(a.SKU, b.SKU), cmp.Compare(a.Quantity, b.Quantity))
	})
}

// verdicts are what decides the outcome of an order, and for how long its stock is held at the shop.
type verdicts struct {
	mode    record.Mode
	rules   *outcome.Rules
	holdFor time.Duration
	margin  time.Duration
	atMost  time.Duration // for which the shop may take; 0: no bound but the gate's
}

// verdictsOf are those of an order: its mode was recorded with it.
func (g *Gate) verdictsOf(o *queue.Order) verdicts {
	v := verdicts{mode: g.mode(), rules: g.outcomes, holdFor: g.holdOptions.HoldFor, margin: g.holdOptions.Margin}
	if o.Mode == "" || o.Mode == v.mode {
		return v
	}
	v.mode, v.rules, v.holdFor = o.Mode, g.otherRules, o.HoldFor
	v.margin = min(v.margin, max(v.holdFor/5, time.Second))
	if v.mode == record.ModeBackend {
		v.atMost = backendForwardTimeout
	}
	return v
}

// compileOther compiles the rules for orders of the mode that the gate does not have. Of the gate's rules
// those count that it could have in that mode.
func (g *Gate) compileOther() (*outcome.Rules, error) {
	if g.Ask != nil { // its rules judge what the shop says when it is asked
		return outcome.Compile(nil, nil, true)
	}
	if g.mode() != record.ModeBackend {
		releases := slices.DeleteFunc(slices.Clone(g.Rules), func(r outcome.Rule) bool { return r.Outcome == "confirm" })
		return outcome.Compile(releases, g.Answers, true)
	}
	if len(g.GraphQL) == 0 {
		return outcome.Compile(g.Rules, g.Answers, false)
	}
	rules, err := outcome.Compile(g.Rules, g.Answers, true) // no status of such a server confirms
	if err == nil {
		rules.Otherwise = outcome.InDoubt
	}
	return rules, err
}

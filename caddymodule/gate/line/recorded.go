package line

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/filters/scope"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/queue"
)

// An order that waits may have been made by another configuration of the gate: before a reload, or at
// another edge. What it is about is read again, and what decides its outcome is what was recorded.

// unlike reads an order's request as the gate reads it now. It returns what is not as it was when stock
// was held for it, empty: nothing. known is false if that cannot be found out now.
func (u *Usher) unlike(r *http.Request, made *judge.Case, saleID string, o *queue.Order) (what string, known bool) {
	p := &judge.Case{Visit: judge.Visit{Purpose: judge.Trying, Began: made.Began, Repl: made.Repl, Out: make(http.Header), AsOf: o.At}}
	no, err := u.InScope(r, p)
	if no == nil && err == nil && p.Scope == scope.Attempt {
		no, err = u.Read(r, p)
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

package filters

import (
	"time"

	"github.com/stockgate/stockgate/internal/sale"
)

// Listing is a sale as an edge knows it, at this moment.
type Listing interface {
	// Verdict says why the sale does not sell at a moment of this machine's clock; nil: it sells.
	RefusalAt(moment time.Time) *sale.Refusal
	// Resolve checks the attempt's lines against the sale's items.
	Resolve(*sale.Attempt) ([]sale.Line, *sale.Refusal)
}

// Choose finds the sale that an attempt is about at this moment: the one it names, else the one
// that lists its items and sells now. It returns the lines as that sale resolves
// them, or the refusal of the sale that comes closest to selling.
func Choose[L Listing](a *sale.Attempt, moment time.Time, byID func(string) (L, bool), listing func(sku string) []L) (L, []sale.Line, *sale.Refusal) {
	var none L
	if a.Sale != "" {
		l, ok := byID(a.Sale)
		if !ok {
			return none, nil, refuseUnknownSale
		}
		if refusal := l.RefusalAt(moment); refusal != nil {
			return l, nil, refusal
		}
		lines, refusal := l.Resolve(a)
		return l, lines, refusal
	}
	best, bestRefusal, bestRank := none, (*sale.Refusal)(nil), 0
	for _, l := range listing(a.Lines[0].SKU) {
		refusal := l.RefusalAt(moment)
		lines, unfit := l.Resolve(a)
		if refusal == nil && unfit == nil {
			return l, lines, nil
		}
		if refusal == nil || unfit != nil && unfit.Reason == sale.UnknownItem {
			// a sale that lacks one of the items is not what the attempt is about
			refusal = unfit
		}
		if rank := closeness(refusal.Reason); rank > bestRank {
			best, bestRefusal, bestRank = l, refusal, rank
		}
	}
	if bestRefusal == nil {
		return none, nil, &sale.Refusal{Reason: sale.UnknownItem, SKU: a.Lines[0].SKU}
	}
	return best, nil, bestRefusal
}

// NoneSells returns the refusal of the sale that comes closest to selling at this moment, or of
// the one that an attempt names; nil: one sells, or there is none.
func NoneSells[L Listing](named string, moment time.Time, byID func(string) (L, bool), all func(yield func(L) bool)) *sale.Refusal {
	if named != "" {
		if l, ok := byID(named); ok {
			return l.RefusalAt(moment)
		}
		return refuseUnknownSale
	}
	var best *sale.Refusal
	rank := 0
	for l := range all {
		no := l.RefusalAt(moment)
		if no == nil {
			return nil
		}
		if r := closeness(no.Reason); r > rank {
			best, rank = no, r
		}
	}
	return best
}

var refuseUnknownSale = sale.Refuse(sale.UnknownSale)

// closeness ranks the refusals of several sales that list the same items: the buyer
// gets the one that they can do most about.
func closeness(r sale.Reason) int {
	switch r {
	case sale.UnknownItem:
		return 1
	case sale.ClosedSale:
		return 2
	case sale.Ended:
		return 3
	case sale.NotStarted:
		return 4
	case sale.PausedSale:
		return 5
	default: // it sells, but not this order
		return 6
	}
}

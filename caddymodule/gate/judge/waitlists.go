package judge

import (
	"errors"
	"fmt"
	"slices"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
)

// Unread says which handlers do not read an identity by which a sale with a waiting list knows people, one sentence each:
// there one person could have two places, or could not use an offer. Loading a configuration and `sale apply` fail by the
// first, and the doctor tells all.
func (js *Judges) Unread(s *sale.Sale) (faults []string) {
	if s.Waitlist == nil {
		return nil
	}
	for _, j := range js.List() {
		if !j.meetsList(s.ID) {
			continue
		}
		for _, kind := range append([]string{"buyer"}, s.KnownBy()...) {
			if j.Reads(kind) {
				continue
			}
			option, instead := "identity "+kind, ", or take "+kind+" out of the sale's limits"
			if kind == "buyer" {
				option, instead = kind, ""
			}
			faults = append(faults, fmt.Sprintf("the sale %s has a waiting list and knows people by %s, which %s does not read: add `%s <value>` there%s", s.ID, kind, j.Title(), option, instead))
		}
	}
	return faults
}

// meetsList reports whether people on the waiting list of a sale may come to the handler. A gate in shadow and a check that
// lets requests wait know of no list.
func (j *Judge) meetsList(saleID string) bool {
	return !j.OnlyTurns() && !j.InShadow && j.IsOf(saleID)
}

// Enters reports whether people may enter the waiting list of a sale somewhere in the configuration.
func (js *Judges) Enters(saleID string) bool {
	return slices.ContainsFunc(js.List(), func(j *Judge) bool { return j.Enters && j.IsOf(saleID) })
}

// CannotEnter is what a sale with a waiting list lacks without a stockgate_waitlist.
const CannotEnter = "has a waiting list, and no stockgate_waitlist of this edge lets people enter it: unless another edge has one, no person waits, and units that come back go to the fastest client; add `stockgate_waitlist`"

// WithoutList returns the handlers in which people could enter the waiting lists of some sales, and none of these has one.
func (js *Judges) WithoutList(sales func(yield func(*edge.Listing) bool)) (all []*Judge) {
	for _, j := range js.List() {
		found := false
		for l := range sales {
			found = found || l.Sale.Waitlist != nil && j.IsOf(l.Sale.ID)
		}
		if j.Enters && !found {
			all = append(all, j)
		}
	}
	return all
}

// CheckSales refuses a configuration in which a handler cannot know the people who wait.
func (js *Judges) CheckSales(d *edgeruntime.Runtime) error {
	for l := range d.Catalogue().All {
		if !hasList(l) {
			continue
		}
		switch faults := js.Unread(l.Sale); len(faults) {
		case 0:
		case 1:
			return errors.New(faults[0])
		default:
			return fmt.Errorf("%s (and %d more like it)", faults[0], len(faults)-1)
		}
	}
	return nil
}

// hasList reports whether a sale has a waiting list on which people may still be.
func hasList(l *edge.Listing) bool {
	return l.Sale.Waitlist != nil && l.Status != sale.Closed && l.Now().Before(l.Sale.EndsAt)
}

// warnLists logs the sales whose waiting list people cannot enter.
func (js *Judges) warnLists(d *edgeruntime.Runtime, all []*Judge) {
	for l := range d.Catalogue().All {
		if hasList(l) && !js.Enters(l.Sale.ID) && len(all) > 0 {
			all[0].log.Warn("the sale " + l.Sale.ID + " " + CannotEnter)
		}
	}
}

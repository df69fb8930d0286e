package operator

import (
	"strings"

	"github.com/stockgate/stockgate/caddymodule/gate"
	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
)

// checkReaders refuses a file with a waiting list if handlers of this edge could not know the people on it: the
// configuration would not load again.
func (o *operator) checkReaders(next *sale.Sale) error {
	if l, ok := o.runtime.Catalogue().Sale(next.ID); ok && l.Status == sale.Closed {
		return nil
	}
	if faults := gate.Of(o.app).Unread(next); len(faults) > 0 {
		return request.Bad("%s", strings.Join(faults, "; "))
	}
	return nil
}

// almostFull is the share of the people that a list may have at which the doctor warns.
const almostFull = 0.8

// waitlist examines the waiting list of a sale, and whether the handlers of this edge go with it.
func (d *doctor) waitlist(l *edge.Listing) {
	if l.Sale.Waitlist == nil || l.Status == sale.Closed {
		return
	}
	for _, fault := range gate.Of(d.app).Unread(l.Sale) {
		d.Add(adminapi.LevelError, "waitlist", "%s; this configuration will not load again", fault)
	}
	if !gate.Of(d.app).Enters(l.Sale.ID) {
		d.Add(adminapi.LevelWarning, "waitlist", "%s %s", l.Sale.ID, gate.CannotEnter)
	}
	people, offered, ok := d.runtime.OnList(l)
	switch most := l.Sale.Waitlist.Max; {
	case !ok:
	case float64(people) >= almostFull*float64(most):
		d.Add(adminapi.LevelWarning, "waitlist", "%d people are on the waiting list of %s, which may have %d: who comes beyond that is refused as list_full; raise `max` of `waitlist` in the sale file", people, l.Sale.ID, most)
	case people > 0:
		d.Add(adminapi.LevelOK, "waitlist", "%d people are on the waiting list of %s, %d of them have an offer", people, l.Sale.ID, offered)
	}
}

// waitlists looks for handlers that let people enter lists that there are not.
func (d *doctor) waitlists() {
	for _, j := range gate.Of(d.app).WithoutList(d.runtime.Catalogue().All) {
		d.Add(adminapi.LevelWarning, "waitlist", "%s refuses all people who want to enter, because no sale of it has a waiting list: write `waitlist: {}` in the sale file, or take the handler away", j.Title())
	}
}

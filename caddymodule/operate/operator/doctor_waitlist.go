package operator

import (
	"time"

	"github.com/stockgate/stockgate/caddymodule/gate"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
)

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
	if !ok {
		return
	}
	ctx, cancel := d.call()
	defer cancel()
	c, err := d.runtime.ReadList(ctx, l.Sale.ID)
	if err != nil {
		d.Add(adminapi.LevelError, "waitlist", "the waiting list of %s cannot be read: %v", l.Sale.ID, err)
		return
	}
	switch most := l.Sale.Waitlist.Max; {
	case float64(people) >= almostFull*float64(most):
		d.Add(adminapi.LevelWarning, "waitlist", "the waiting list of %s is nearly full: %d of %d people; people beyond are refused as list_full. Raise waitlist.max in its file, and apply it", l.Sale.ID, people, most)
	case c.PausedSince.IsZero():
		d.Add(adminapi.LevelOK, "waitlist", "%d people are on the waiting list of %s, %d of them with an offer", people, l.Sale.ID, offered)
	}
	if !c.PausedSince.IsZero() {
		d.Add(adminapi.LevelWarning, "waitlist", "an operator has paused the offers of %s since %s, and %d people wait: 'caddy stockgate waitlist resume %s' lets them go on",
			l.Sale.ID, c.PausedSince.UTC().Format(time.RFC3339), people-offered, l.Sale.ID)
	}
}

// waitlists looks for handlers that let people enter lists that there are not.
func (d *doctor) waitlists() {
	for _, j := range gate.Of(d.app).WithoutList(d.runtime.Catalogue().All) {
		d.Add(adminapi.LevelWarning, "waitlist", "%s refuses all people who want to enter, because no sale of it has a waiting list: write `waitlist: {}` in the sale file, or take the handler away", j.Title())
	}
}

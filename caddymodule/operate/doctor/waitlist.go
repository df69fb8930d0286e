package doctor

import (
	"time"

	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
)

// waitlist examines the waiting list of a sale, and whether the handlers of this edge go with it.
func (d *examination) waitlist(l *edge.Listing) {
	if l.Sale.Waitlist == nil || l.Status == sale.Closed {
		return
	}
	for _, fault := range judge.Of(d.app).Unread(l.Sale) {
		d.Add(adminapi.LevelError, "waitlist", "%s; this configuration will not load again", fault)
	}
	if !judge.Of(d.app).Enters(l.Sale.ID) {
		d.Add(adminapi.LevelWarning, "waitlist", "%s %s", l.Sale.ID, judge.CannotEnter)
	}
	ctx, cancel := d.call()
	defer cancel()
	s, err := d.runtime.List(ctx, l)
	if err != nil {
		d.Add(adminapi.LevelError, "waitlist", "the waiting list of %s cannot be read: %v", l.Sale.ID, err)
		return
	}
	switch {
	case s.NearlyFull():
		d.Add(adminapi.LevelWarning, "waitlist", "the waiting list of %s is nearly full: %d of %d people; people beyond are refused as list_full. Raise waitlist.max in its file, and apply it", l.Sale.ID, s.People, s.Most)
	case s.PausedSince.IsZero():
		d.Add(adminapi.LevelOK, "waitlist", "%d people are on the waiting list of %s, %d of them with an offer", s.People, l.Sale.ID, s.Offered)
	}
	if !s.PausedSince.IsZero() {
		d.Add(adminapi.LevelWarning, "waitlist", "an operator has paused the offers of %s since %s, and %d people wait: 'caddy stockgate waitlist resume %s' lets them go on",
			l.Sale.ID, s.PausedSince.UTC().Format(time.RFC3339), s.People-s.Offered, l.Sale.ID)
	}
}

// waitlists looks for handlers that let people enter lists that there are not.
func (d *examination) waitlists() {
	for _, j := range judge.Of(d.app).WithoutList(d.runtime.Catalogue().All) {
		d.Add(adminapi.LevelWarning, "waitlist", "%s refuses all people who want to enter, because no sale of it has a waiting list: write `waitlist: {}` in the sale file, or take the handler away", j.Title())
	}
}

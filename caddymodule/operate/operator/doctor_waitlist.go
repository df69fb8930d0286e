package operator

import (
	"time"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

// judgeWaitlist adds the findings about the waiting list of a sale.
func (d *doctor) judgeWaitlist(id string) {
	l, ok := d.runtime.Catalogue().Sale(id)
	if !ok {
		return
	}
	people, offered, ok := d.runtime.OnList(l)
	if !ok {
		return
	}
	ctx, cancel := d.call()
	defer cancel()
	c, err := d.runtime.ReadList(ctx, id)
	if err != nil {
		d.Add(adminapi.LevelError, "waitlist", "the waiting list of %s cannot be read: %v", id, err)
		return
	}
	most := l.Sale.Waitlist.Max
	switch since := c.PausedSince; {
	case int64(people)*10 >= most*8:
		d.Add(adminapi.LevelWarning, "waitlist", "the waiting list of %s is nearly full: %d of %d people; people beyond are refused as list_full. Raise waitlist.max in its file, and apply it", id, people, most)
	case since.IsZero():
		d.Add(adminapi.LevelOK, "waitlist", "%d people are on the waiting list of %s, %d of them with an offer", people, id, offered)
	}
	if !c.PausedSince.IsZero() {
		d.Add(adminapi.LevelWarning, "waitlist", "an operator has paused the offers of %s since %s, and %d people wait: 'caddy stockgate waitlist resume %s' lets them go on",
			id, c.PausedSince.UTC().Format(time.RFC3339), people-offered, id)
	}
}

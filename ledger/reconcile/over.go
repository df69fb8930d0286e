package reconcile

import (
	"time"

	"github.com/stockgate/stockgate/reservation"
)

// over says that Redis may have forgotten a reservation by now: its record may be missing, and
// the shop may have released it once more, which leaves a tombstone.
func (t *told) over(now time.Time) bool {
	if t.state != reservation.Released && t.state != reservation.Expired {
		return false
	}
	if t.part { // its deadline is not known
		return !now.Before(time.UnixMilli(t.changed).Add(reservation.EndedFor))
	}
	r, err := reservation.ParseRecord(t.record(""))
	return err == nil && r.Over(now)
}

// forgotten says that a record that is not what is told is that of a reservation that
// Redis may have forgotten.
func (b *batch) forgotten(t *told, has reservation.Value, p parsed, readable bool) bool {
	return t != nil && (!has.Found || readable && p.fields.State == tombstone) && t.over(b.seen.Now)
}

package recovery

import (
	"time"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// over reports whether Redis may have forgotten a reservation by now: its record may be
// missing, or be a tombstone if the shop has released it again.
func (t *expected) over(now time.Time) bool {
	if t.part && (t.State == record.Released || t.State == record.Expired) { // its deadline is not known
		return !now.Before(t.Changed.Add(record.EndedFor))
	}
	return t.Over(now)
}

// forgotten reports whether a record differs only because Redis may have forgotten the reservation.
func (b *batch) forgotten(t *expected, has reservation.KeyValue, p parsed, readable bool) bool {
	return t != nil && (!has.Found || readable && p.fields.State == record.Tombstone) && t.over(b.seen.Now)
}

package recovery

import (
	"cmp"
	"slices"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// names reports whether a reservation names a binding field.
func (t *expected) names(field string) bool { return slices.Contains(t.Fields(), field) }

// owner returns the reservation that must own a binding field; empty: none. has is the
// reservation that owns it now, or empty. Of several that name the field, the owner keeps
// it unless another one has a higher priority.
func (r *run) owner(field, has string, seen *reservation.Examined) string {
	rank := func(id string) record.BindingRank {
		t := r.history.reservations[id]
		if t == nil || !t.names(field) {
			return record.RankNone
		}
		n := t.BindingRankAt(field, seen.Now, seen.Ends)
		if n != record.RankNone && !n.Sure() {
			return record.RankAttempt // it may own the field, and need not: the history does not say which came last
		}
		return n
	}
	if record.IsSingleField(field) {
		// the history does not say whether it was freed when the attempt was answered
		if rank(has) != record.RankNone {
			return has
		}
		return ""
	}
	best, most := "", record.RankNone
	if n := rank(has); n != record.RankNone {
		best, most = has, n
	}
	if most.Sure() && record.IsKeyField(field) {
		return has // a key's time may have been over when a hold took it
	}
	for id := range r.history.wants[field] {
		n := rank(id)
		if n > most || n != record.RankNone && n == most && best != has && earlier(r.history.reservations[id], r.history.reservations[best], id, best) {
			best, most = id, n
		}
	}
	if !most.Sure() && has == "" {
		return ""
	}
	return best
}

// earlier orders reservations of equal priority.
func earlier(a, b *expected, id, other string) bool {
	if b == nil {
		return true
	}
	return cmp.Or(a.Changed.Compare(b.Changed), cmp.Compare(id, other)) < 0
}

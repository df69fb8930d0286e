package recovery

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/stockgate/stockgate/record"
	"github.com/stockgate/stockgate/reservation"
)

// names says that a reservation names a binding field.
func (t *expected) names(field string) bool {
	f := fieldsOf(t.text)
	fields := f.bindings()
	return field != "" && slices.Contains(fields[:], field)
}

// claim has of a reservation what the ranks of its binding fields depend on.
func (t *expected) claim() record.Record {
	f := fieldsOf(t.text)
	ttl, _ := strconv.ParseInt(f.keyTTL, 10, 64)
	return record.Record{
		State: t.state, Mode: record.Mode(f.mode), Changed: time.UnixMilli(t.changed), KeyTTL: time.Duration(ttl) * time.Millisecond,
	}
}

// rank is how good a claim a reservation has to a field that it names.
func (t *expected) rank(field string) record.BindingRank {
	c := t.claim()
	return c.BindingRank(field)
}

// owner says to whom a field must belong, when it belongs to somebody or, empty, to
// nobody now. Several may name it; who has it keeps it, unless somebody's claim is
// better.
func (r *run) owner(field, has string, seen *reservation.Examined) string {
	rank := func(id string) record.BindingRank {
		t := r.history.reservations[id]
		if t == nil || !t.names(field) {
			return record.RankNone
		}
		c := t.claim()
		n := c.BindingRankAt(field, seen.Now, seen.Ends)
		if n != record.RankNone && !n.Sure() {
			return record.RankAttempt // it may have it, and need not: which of them came last is not told
		}
		return n
	}
	if record.IsSingleField(field) {
		// whether it was freed when the attempt was answered is not told
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

// earlier puts those with equal claims into an order.
func earlier(a, b *expected, id, other string) bool {
	if b == nil {
		return true
	}
	return cmp.Or(cmp.Compare(a.changed, b.changed), cmp.Compare(id, other)) < 0
}

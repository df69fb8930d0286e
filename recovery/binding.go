package recovery

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/stockgate/stockgate/record"
	"github.com/stockgate/stockgate/reservation"
)

// names reports whether a reservation names a binding field.
func (t *expected) names(field string) bool {
	f := fieldsOf(t.text)
	fields := f.bindings()
	return field != "" && slices.Contains(fields[:], field)
}

// priorityFields returns the parts of a reservation on which its priority for bindings depends.
func (t *expected) priorityFields() record.Record {
	f := fieldsOf(t.text)
	ttl, _ := strconv.ParseInt(f.keyTTL, 10, 64)
	return record.Record{
		State: t.state, Mode: record.Mode(f.mode), Changed: record.TimeOf(t.changed), KeyTTL: time.Duration(ttl) * time.Millisecond,
	}
}

// rank returns a reservation's priority for a binding field that it names.
func (t *expected) rank(field string) record.BindingRank {
	p := t.priorityFields()
	return p.BindingRank(field)
}

// owner returns the reservation that must own a binding field; empty: none. has is the
// reservation that owns it now, or empty. Of several that name the field, the owner keeps
// it unless another one has a higher priority.
func (r *run) owner(field, has string, seen *reservation.Examined) string {
	rank := func(id string) record.BindingRank {
		t := r.history.reservations[id]
		if t == nil || !t.names(field) {
			return record.RankNone
		}
		p := t.priorityFields()
		n := p.BindingRankAt(field, seen.Now, seen.Ends)
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
	return cmp.Or(cmp.Compare(a.changed, b.changed), cmp.Compare(id, other)) < 0
}

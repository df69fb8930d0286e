package reconcile

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/stockgate/stockgate/reservation"
)

// Prefixes of binding fields, see lua/bindings.lua.
const (
	keyField    = "k|"
	singleField = "d|"
)

// names says that a reservation names a binding field.
func (t *told) names(field string) bool {
	f := fieldsOf(t.text)
	fields := f.bindings()
	return field != "" && slices.Contains(fields[:], field)
}

// rank is the priority that a reservation's state gives it for a field that it names; 0: none.
func (t *told) rank(field string) int {
	switch t.state {
	case reservation.Held, reservation.InDoubt:
		return 2
	case reservation.Confirmed:
		if strings.HasPrefix(field, singleField) {
			return 0
		}
		return 3
	case reservation.Unbacked:
		if strings.HasPrefix(field, singleField) {
			return 0
		}
		return 1
	}
	return 0
}

// overdue says whether a key need no longer belong to a confirmed or unbacked reservation.
func (t *told) overdue(field string, now, ends time.Time) bool {
	if !strings.HasPrefix(field, keyField) || t.rank(field) == 2 {
		return false
	}
	p, ok := parse(t.record(""))
	if !ok {
		return true
	}
	until := p.fields.Changed.Add(p.fields.KeyTTL)
	return !now.Before(until) && !now.Before(ends)
}

// owner returns the reservation that a field must belong to; has is its owner now,
// empty if it has none. Several reservations may name a field: the owner keeps it
// unless another one has a higher rank.
func (r *run) owner(field, has string, seen *reservation.Examined) string {
	rank := func(id string) int {
		t := r.story.reservations[id]
		switch {
		case t == nil || !t.names(field):
			return 0
		case t.overdue(field, seen.Now, seen.Ends):
			return 1 // it may have it, but need not
		}
		return t.rank(field)
	}
	if strings.HasPrefix(field, singleField) {
		// no movement says whether it was freed when the attempt was answered
		if rank(has) > 0 {
			return has
		}
		return ""
	}
	best, most := "", 0
	if n := rank(has); n > 0 {
		best, most = has, n
	}
	if most > 1 && strings.HasPrefix(field, keyField) {
		return has // a key may have been overdue when a hold took it
	}
	for id := range r.story.wants[field] {
		n := rank(id)
		if n > most || n > 0 && n == most && best != has && earlier(r.story.reservations[id], r.story.reservations[best], id, best) {
			best, most = id, n
		}
	}
	// an unbacked reservation gets only free fields, so it may have got none; the same
	// holds for an overdue key
	if most == 1 && has == "" {
		return ""
	}
	return best
}

// earlier orders reservations of equal rank.
func earlier(a, b *told, id, other string) bool {
	if b == nil {
		return true
	}
	return cmp.Or(cmp.Compare(a.changed, b.changed), cmp.Compare(id, other)) < 0
}

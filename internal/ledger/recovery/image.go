package recovery

import (
	"cmp"
	"hash/maphash"
	"time"

	"github.com/stockgate/stockgate/internal/store/record"
)

// Image is what a shard must contain besides its records, as the records say: where
// the units are, what the purchase limits have counted, and to whom keys and refs
// belong. It is filled by Add, in any order. Half a million reservations with a
// limit, a key and a ref each take a process about 220 MiB.
type Image struct {
	// Cells are the units of each stock cell that reservations have, by its name: Stock and
	// Available are 0.
	Cells map[string]*record.Cell
	// States counts the reservations of each state.
	States map[record.State]int
	// Latest is when the newest of them came to its state, or was made.
	Latest time.Time

	now, ends time.Time
	totals    *record.Totals
	// bound has the highest priority for each binding field so far, by the field's hash. Two
	// fields with one hash are less likely than one in a million for a million records.
	bound map[uint64]priority
	// others are the reservations with a ref besides the first that was added, by ref.
	others map[string]string
	seed   maphash.Seed
}

// NewImage begins an image of a sale that ends at a time, as it must be at now by its
// shard's clock.
func NewImage(now, ends time.Time) *Image {
	totals := record.NewTotals()
	totals.Now = now
	return &Image{
		Cells: totals.Cells, States: make(map[record.State]int), now: now, ends: ends,
		totals: totals, bound: make(map[uint64]priority), others: make(map[string]string), seed: maphash.MakeSeed(),
	}
}

// Add takes a reservation into account. It returns the binding fields for which the
// reservation has a higher priority than all that were added before it. A caller that
// binds these fields after each Add, replacing what was bound, ends with the right
// bindings.
func (m *Image) Add(id string, r *record.Record) (binds []string) {
	m.States[r.State]++
	for _, at := range []time.Time{r.Created, r.Changed} {
		if at.After(m.Latest) {
			m.Latest = at
		}
	}
	m.totals.Count(r, 1)
	for _, l := range r.Lines {
		m.totals.Cell(l.Cell) // there is one also where nothing is taken of it
	}
	for _, field := range r.Fields() {
		mine, hash := m.priorityOf(id, r, field), maphash.String(m.seed, field)
		if best, ok := m.bound[hash]; mine.rank > record.RankNone && (!ok || mine.beats(best)) {
			m.bound[hash] = mine
			binds = append(binds, field)
		}
	}
	if r.Ref != "" && r.State.Named() {
		binds = m.addRef(binds, id, r.Ref)
	} else if r.Ref != "" && r.StaysFound() {
		binds = append(binds, record.EndField+r.Ref)
	}
	return binds
}

// Limits calls yield for every field of the limits that has counted something and
// whose window is not over.
func (m *Image) Limits(yield func(field string, c record.Count) bool) {
	for field, c := range m.totals.Limits {
		if c.Charged > 0 && !yield(field, c) {
			return
		}
	}
}

// Unpaid calls yield for every counter of unpaid holds that has some.
func (m *Image) Unpaid(yield func(field string, held int64) bool) {
	for field, held := range m.totals.Unpaid {
		if !yield(field, held) {
			return
		}
	}
}

// priority is a reservation's priority for a binding field.
type priority struct {
	rank  record.BindingRank
	since int64  // ms
	id    uint64 // hash
}

// priorityOf returns a reservation's priority for one of its fields. Of equal ranks the
// first reservation owns the field.
func (m *Image) priorityOf(id string, r *record.Record, field string) priority {
	rank := r.BindingRankAt(field, m.now, m.ends)
	if rank == record.RankAttempt {
		rank = record.RankNone // the attempt was answered, and with that it was freed
	}
	return priority{rank, record.MsOf(r.Changed), maphash.String(m.seed, id)}
}

// beats reports whether a priority is higher than another one for the same field. Of
// overdue holds the last owns the field.
func (p priority) beats(other priority) bool {
	if p.rank != other.rank {
		return p.rank > other.rank
	}
	order := cmp.Or(cmp.Compare(p.since, other.since), cmp.Compare(p.id, other.id))
	if p.rank == record.RankOverdue {
		order = -order
	}
	return order < 0
}

// Owns reports, once all reservations are added, whether a reservation is the one that
// owns a binding field.
func (m *Image) Owns(id string, r *record.Record, field string) bool {
	mine := m.priorityOf(id, r, field)
	return mine.rank > record.RankNone && m.bound[maphash.String(m.seed, field)] == mine
}

// Wanted reports, once all reservations are added, whether some reservation must own a
// binding field.
func (m *Image) Wanted(field string) bool {
	_, ok := m.bound[maphash.String(m.seed, field)]
	return ok
}

package recovery

import (
	"cmp"
	"hash/maphash"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/record"
)

// Image is what a shard must contain besides its records, as the records say: where
// the units are, what the purchase limits have counted, and to whom keys and refs
// belong. It is filled by Add, in any order. Half a million reservations with a
// limit, a key and a ref each take a process about 220 MiB.
type Image struct {
	// Cells are the units of each stock cell that reservations have: Stock and Available
	// are 0, and SKU is the cell's name.
	Cells map[string]*record.Cell
	// States counts the reservations of each state.
	States map[record.State]int
	// Latest is when the newest of them came to its state, or was made.
	Latest time.Time

	now, ends time.Time
	limits    map[string]Counter
	unpaid    map[string]int64
	// bound has the highest priority for each binding field so far, by the field's hash. Two
	// fields with one hash are less likely than one in a million for a million records.
	bound map[uint64]priority
	// others are the reservations with a ref besides the first that was added, by ref.
	others map[string]string
	seed   maphash.Seed
}

// Counter is what one field of the limits has counted.
type Counter struct {
	// Charged is the whole count, Pending the part of it that belongs to unsettled holds.
	Charged, Pending int64
}

// NewImage begins an image of a sale that ends at a time, as it must be at now by its
// shard's clock.
func NewImage(now, ends time.Time) *Image {
	return &Image{
		Cells: make(map[string]*record.Cell), States: make(map[record.State]int), now: now, ends: ends,
		limits: make(map[string]Counter), unpaid: make(map[string]int64), bound: make(map[uint64]priority), others: make(map[string]string), seed: maphash.MakeSeed(),
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
	m.addUnits(r)
	m.addCharges(r)
	if r.State == record.Held {
		for field := range strings.FieldsSeq(r.Unpaid) {
			m.unpaid[field]++
		}
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

func (m *Image) addUnits(r *record.Record) {
	column := r.State.Column()
	for _, l := range r.Lines {
		if c := m.cell(l.Cell); column.Taken() {
			*c.Units(column) += l.Units
		}
	}
	for _, l := range r.Returned {
		m.cell(l.Cell).Confirmed -= l.Units
	}
}

func (m *Image) cell(name string) *record.Cell {
	c, ok := m.Cells[name]
	if !ok {
		c = &record.Cell{SKU: name}
		m.Cells[name] = c
	}
	return c
}

func (m *Image) addCharges(r *record.Record) {
	if !r.State.Column().Taken() {
		return // it has given them back
	}
	rest := r.Charges
	for rest != "" {
		var field, amount string
		field, rest, _ = strings.Cut(rest, " ")
		amount, rest, _ = strings.Cut(rest, " ")
		n, err := strconv.ParseInt(amount, 10, 64)
		if err != nil || windowOver(field, m.now) {
			continue
		}
		c := m.limits[field]
		c.Charged += n
		if r.State != record.Confirmed {
			c.Pending += n
		}
		m.limits[field] = c
	}
}

// Limits calls yield for every field of the limits that has counted something and
// whose window is not over.
func (m *Image) Limits(yield func(field string, c Counter) bool) {
	for field, c := range m.limits {
		if c.Charged > 0 && !yield(field, c) {
			return
		}
	}
}

// Unpaid calls yield for every counter of unpaid holds that has some.
func (m *Image) Unpaid(yield func(field string, held int64) bool) {
	for field, held := range m.unpaid {
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

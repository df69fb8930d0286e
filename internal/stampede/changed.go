package stampede

import (
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// span says what the order of a reservation may have of each cell. most is what the shop sold: the
// lines of the reservation, and those of the one that has what was sold beyond it. fewest is that
// without what came back. An order is between them: some shops take what came back out of it,
// others leave it as it was.
type span struct{ most, fewest map[string]int64 }

func (o *oracle) span(id string) span {
	s := span{map[string]int64{}, map[string]int64{}}
	add := func(to map[string]int64, lines []sale.Line, times int64) {
		for cell, n := range o.units(lines) {
			to[cell] += times * n
		}
	}
	r, more := o.Records[id], o.Records[reservation.MoreOf(id)]
	add(s.most, r.Lines, 1)
	add(s.fewest, r.Lines, 1)
	add(s.fewest, r.Returned, -1)
	add(s.most, more.Lines, 1)
	if more.State != record.Released { // by an operator, who took it out of the order
		add(s.fewest, more.Lines, 1)
		add(s.fewest, more.Returned, -1)
	}
	return s
}

// fits reports whether an order has what its reservation has.
func (s span) fits(units map[string]int64) bool {
	for cell, n := range units {
		if n > s.most[cell] {
			return false
		}
	}
	for cell, n := range s.fewest {
		if units[cell] < n {
			return false
		}
	}
	return true
}

// has reports whether an order is left, where the shop's list has only what did not come back.
func (s span) has() bool {
	for _, n := range s.fewest {
		if n > 0 {
			return true
		}
	}
	return false
}

// sold counts the units of an order that are sold: without what came back, whether or not the
// order still has it.
func (o *oracle) sold(order Order) map[string]int64 {
	s, units := o.span(order.Reservation), o.units(order.Lines)
	for cell, n := range units {
		units[cell] = n - min(max(n-s.fewest[cell], 0), s.most[cell]-s.fewest[cell])
	}
	return units
}

// linesOf are the lines of a reservation and of what was sold beyond it.
func linesOf(records map[string]reservation.Record, id string) []sale.Line {
	var lines []sale.Line
	for _, one := range []string{id, reservation.MoreOf(id)} {
		lines = append(lines, records[one].Lines...)
	}
	return lines
}

// describeSold puts into words what the order of a reservation should have.
func (o *oracle) describeSold(id string) string {
	text := describe(linesOf(o.Records, id))
	var back []sale.Line
	for _, one := range []string{id, reservation.MoreOf(id)} {
		back = append(back, o.Records[one].Returned...)
	}
	if len(back) > 0 {
		text += ", of which " + describe(back) + " came back"
	}
	return text
}

package stampede

import (
	"errors"
	"maps"
	"slices"

	"github.com/stockgate/stockgate/internal/sale"
)

// findRefs finds the reservations of orders that name only a ref. Several buyers may have used one ref: each of
// their orders then gets a reservation of its own, with the same lines if there is one.
func (e *Evidence) findRefs() error {
	named := func(o Order) bool { return o.Reservation == "" && o.Ref != "" }
	if !slices.ContainsFunc(e.Orders, named) {
		return nil
	}
	if !e.Journal.whole() {
		return errors.New("the orders name refs, and the journal that leads to their reservations is not whole: list the reservations too")
	}
	byRef := e.byRef()
	found := map[[2]string]string{} // by ref and number: an order may be listed by its lines
	for i := range e.Orders {
		o := &e.Orders[i]
		if !named(*o) {
			continue
		}
		key := [2]string{o.Ref, o.OrderNo}
		if ids := byRef[o.Ref]; found[key] == "" && len(ids) > 0 {
			at := max(slices.IndexFunc(ids, func(id string) bool { return sameUnits(e.Records[id].Lines, o.Lines) }), 0)
			found[key] = ids[at]
			byRef[o.Ref] = slices.Delete(ids, at, at+1)
		}
		o.Reservation = found[key]
	}
	return nil
}

// byRef returns the ids of reservations by their refs: those that still have their units, or else the others.
func (e *Evidence) byRef() map[string][]string {
	live, ended := map[string][]string{}, map[string][]string{}
	for _, id := range slices.Sorted(maps.Keys(e.Records)) {
		into := ended
		if e.Records[id].State.Named() {
			into = live
		}
		if ref := e.Records[id].Ref; ref != "" {
			into[ref] = append(into[ref], id)
		}
	}
	for ref, ids := range ended {
		if len(live[ref]) == 0 {
			live[ref] = ids
		}
	}
	return live
}

// sameUnits tells whether two orders have the same units of the same items.
func sameUnits(a, b []sale.Line) bool {
	units := map[string]int64{}
	for _, l := range a {
		units[l.SKU] += l.Quantity
	}
	for _, l := range b {
		units[l.SKU] -= l.Quantity
	}
	for _, n := range units {
		if n != 0 {
			return false
		}
	}
	return true
}

package stampede

import (
	"cmp"
	"maps"
	"slices"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// balance: every unit is in one place, and no place is left open.
func (o *oracle) balance() {
	if len(o.cells) == 0 {
		o.complain("the sale lists no items")
	}
	unbalanced := false
	for _, name := range o.names() {
		c := o.cells[name]
		if !c.Balanced() {
			unbalanced = true
			o.complain("the cells of %s do not balance: stock %d, available %d, held %d, in doubt %d, confirmed %d",
				name, c.Stock, c.Available, c.Held, c.InDoubt, c.Confirmed)
		}
		if c.Held != 0 && !o.may.Held {
			o.complain("%d units of %s are still held: the outcome of their orders is missing", c.Held, name)
		}
		if c.InDoubt != 0 && !o.may.InDoubt {
			o.complain("%d units of %s are in doubt, though the shop answered everything", c.InDoubt, name)
		}
	}
	if !o.Stock.Balanced && !unbalanced {
		o.complain("the admin API says that the sale does not balance")
	}
	if o.Stock.Unbacked != 0 {
		o.complain("the shop took %d orders whose units had gone elsewhere", o.Stock.Unbacked)
	}
}

// oversold: neither Redis nor the shop promises more than there is.
func (o *oracle) oversold() {
	for _, name := range o.names() {
		c := o.cells[name]
		promised := c.Confirmed + c.Held + c.InDoubt
		if promised > c.Stock {
			o.complain("oversold in Redis: %d units of %s are confirmed, held or in doubt, and there are %d", promised, name, c.Stock)
		}
		if o.ordered[name] > c.Stock {
			o.complain("oversold in the shop: %d units of %s are ordered, and there are %d", o.ordered[name], name, c.Stock)
		}
		o.verdict.Oversold += max(0, max(promised, o.ordered[name])-c.Stock)
	}
}

// undersold: no unit that a buyer wanted stays unsold.
func (o *oracle) undersold() {
	if o.verdict.Ordered < o.MustSell {
		o.complain("%d units are sold, and %d were wanted and in stock", o.verdict.Ordered, o.MustSell)
	}
}

// ordersAreReservations: an order is exactly one reservation, that of its buyer
// and its lines, and it still has its units but for those that came back.
func (o *oracle) ordersAreReservations() {
	for _, order := range o.orders {
		id := order.Reservation
		r, known := o.Records[id]
		more := o.Records[reservation.MoreOf(id)]
		switch {
		case id == "" && order.Ref != "":
			o.complain("order %s has the ref %s, and no reservation of the sale has it: it came past the gate", order.OrderNo, order.Ref)
		case id == "":
			o.complain("order %s has no reservation: it came past the gate", order.OrderNo)
		case len(o.byID[id]) > 1 && o.byID[id][0].OrderNo != order.OrderNo:
			o.complain("orders %s and %s are for one reservation, %s", o.byID[id][0].OrderNo, order.OrderNo, id)
		case !known:
			o.complain("order %s is for the reservation %s, which does not exist", order.OrderNo, id)
		case r.State != record.Confirmed && r.State != record.InDoubt && !(o.may.Held && r.State == record.Held):
			o.complain("order %s is for the reservation %s, which is %s: its units may be sold again", order.OrderNo, id, r.State)
		case more.State == record.Unbacked:
			o.complain("order %s has more than was held, in the reservation %s, which is %s: its units may be sold again", order.OrderNo, more.ID, more.State)
		case !o.span(id).fits(o.units(order.Lines)):
			o.complain("order %s is for %s, and its reservation %s for %s", order.OrderNo, describe(order.Lines), id, o.describeSold(id))
		}
	}
}

// unitsAreOrders: confirmed units were ordered, and the other way
// round, unit by unit.
func (o *oracle) unitsAreOrders() {
	if o.NoOrders {
		return
	}
	confirmed, doubtful := map[string]int64{}, map[string]int64{}
	for id, orders := range o.byID {
		units := confirmed
		switch o.Records[id].State {
		case record.Confirmed:
		case record.InDoubt:
			units = doubtful
		default:
			continue // ordersAreReservations says so
		}
		for _, order := range orders {
			for cell, n := range o.sold(order) {
				units[cell] += n
			}
		}
	}
	for _, name := range o.names() {
		c := o.cells[name]
		switch {
		case confirmed[name] > c.Confirmed:
			o.complain("the shop has orders for %d confirmed units of %s, the sale has %d", confirmed[name], name, c.Confirmed)
		case confirmed[name] < c.Confirmed && !o.may.Phantom:
			o.complain("%d units of %s are confirmed without an order: the sale says %d, the shop's orders %d",
				c.Confirmed-confirmed[name], name, c.Confirmed, confirmed[name])
		}
		if doubtful[name] > c.InDoubt {
			o.complain("the shop has orders for %d units of %s in doubt, the sale has %d", doubtful[name], name, c.InDoubt)
		}
	}
}

// answersAreOrders: a buyer whose answer was a success has the order, and the units are sold.
func (o *oracle) answersAreOrders() {
	if o.Tally == nil {
		return
	}
	for _, a := range o.Tally.Answers {
		r, known := o.Records[a.Reservation]
		lines, anything := a.Lines, len(a.Lines) == 0
		if anything { // the request names the lines, and the crowd does not know them
			lines = r.Lines
		}
		if !a.Accepted || len(o.units(lines)) == 0 && (known || !anything) || anything && r.Sale != "" && r.Sale != o.Stock.ID {
			continue
		}
		if a.Reservation == "" {
			o.complain("%s was told yes without a reservation", named(a.Buyer))
			continue
		}
		if anything && !known {
			o.complain("%s was told yes with the reservation %s, which does not exist", named(a.Buyer), a.Reservation)
			continue
		}
		if o.NoOrders {
			if r.State != record.Confirmed && r.State != record.InDoubt && !(o.may.Held && r.State == record.Held) {
				o.complain("%s was told yes (reservation %s), and the reservation is %s: no unit is sold", named(a.Buyer), a.Reservation, cmp.Or(r.State, "unknown"))
			}
			continue
		}
		orders, sold := o.byID[a.Reservation], o.span(a.Reservation)
		if len(orders) == 0 && known && !sold.has() {
			continue // all of it came back, and the shop's list has only what is sold
		}
		if len(orders) == 0 {
			o.complain("%s was told yes (reservation %s), and the shop has no such order", named(a.Buyer), a.Reservation)
			continue
		}
		if orders[0].Buyer != a.Buyer && !o.Nameless {
			o.complain("%s was told yes with the reservation %s, and the order is that of %s", a.Buyer, a.Reservation, orders[0].Buyer)
		}
		// of what was held, the shop may have sold another part
		asHeld := maps.Equal(o.units(lines), o.units(r.Lines)) && sold.fits(o.units(orders[0].Lines))
		if !maps.Equal(o.units(orders[0].Lines), o.units(lines)) && !asHeld {
			o.complain("%s was told yes for %s, and the order is for %s", named(a.Buyer), describe(lines), describe(orders[0].Lines))
		}
	}
}

// named is a buyer in a sentence.
func named(buyer string) string { return cmp.Or(buyer, "a buyer") }

// refusedHaveNothing: a buyer whom the gate refused every time has no order.
func (o *oracle) refusedHaveNothing() {
	if o.Tally == nil || o.Nameless {
		return
	}
	for _, order := range o.orders {
		if o.Tally.TurnedAway[order.Buyer] && !o.Journal.isOlder(order.Reservation) {
			o.complain("the gate refused %s every time, and yet they have the order %s", order.Buyer, order.OrderNo)
		}
	}
}

// soldOutWasTrue: sold out means that nothing can come back, so the units are missing
// at the end too; otherwise a buyer was refused units that were for sale.
func (o *oracle) soldOutWasTrue() {
	if o.Tally == nil {
		return
	}
	for _, b := range o.Tally.SoldOut {
		units := o.units(b.Lines)
		if len(units) == 0 {
			continue
		}
		missing := func(cell string) bool { return o.cells[cell].Available < units[cell] }
		if !slices.ContainsFunc(slices.Collect(maps.Keys(units)), missing) {
			o.complain("a buyer was told that %s is sold out, and it is available at the end", describe(b.Lines))
		}
	}
}

// limits: no buyer has more than the sale allows.
func (o *oracle) limits() {
	if o.MaxPerBuyer == 0 {
		return
	}
	has := map[string]int64{}
	for _, order := range o.orders {
		for _, n := range o.sold(order) {
			has[order.Buyer] += n
		}
	}
	for _, buyer := range slices.Sorted(maps.Keys(has)) {
		if has[buyer] > o.MaxPerBuyer {
			o.complain("%s has %d units, and one buyer may have %d", buyer, has[buyer], o.MaxPerBuyer)
		}
	}
}

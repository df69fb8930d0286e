package recovery

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// checkTakeOver refuses to take units over while the sale sells, or from a list that probably names its orders otherwise
// than reservations do: each would seem to have none.
func (r *run) checkTakeOver(status sale.Status) error {
	if r.Shop == nil || !r.Shop.TakeOver {
		return nil
	}
	if status == sale.Open {
		return shard.Refused("sale %s is open, and may sell the units that are to be taken over: pause it first, `caddy stockgate sale pause %s`", r.sale, r.sale)
	}
	return nil
}

// knowsNames refuses a list that names no reservation of a sale that has sold.
func (r *run) knowsNames(refs map[string][]string) error {
	if !r.Shop.TakeOver {
		return nil
	}
	sold := 0
	for id, t := range r.history.reservations {
		switch {
		case reservation.IsMovedIn(id):
			return shard.Refused("sale %s has purchases that were moved in, and no order of the list names them: their units would be taken out twice; "+
				"take out the units of each order that came past the gate with `caddy stockgate stock add`", r.sale)
		case t.State == record.Confirmed:
			sold++
		}
	}
	if sold == 0 || slices.ContainsFunc(r.Shop.Orders, func(name string) bool { return r.history.reservations[name] != nil || refs[name] != nil }) {
		return nil
	}
	return shard.Refused("no order of the list goes by the name of any of the %d reservations that are sold, so the list probably has other names: give the column that has the refs or the reservation ids", sold)
}

// takeOver takes the units of an order without a reservation out of the stock, because the shop sold them past the gate. An
// order that is taken over already changes nothing.
func (r *run) takeOver(ctx context.Context, name string) error {
	units := r.Shop.Units[name]
	if len(units) == 0 {
		r.cannotTakeOver(name, "the list has no units of it", "none: give the list a column quantity, and sku where an order has several items")
		return nil
	}
	for _, sku := range slices.Sorted(maps.Keys(units)) {
		cell, listed := r.cellOf(sku)
		switch {
		case !listed && sku != "" || units[sku] == 0: // none of the sale's business
		case !listed:
			r.cannotTakeOver(name, "the list does not say of which item its units are", "none: give the list a column sku")
		case cell == "":
			r.cannotTakeOver(name, "its item has a stock for each region, and the list does not say of which region it was sold",
				fmt.Sprintf("none: take it out with `caddy stockgate stock add %s %s -%d --region REGION`", r.sale, sku, units[sku]))
		default:
			if err := r.takeUnits(ctx, name, cell, units[sku]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *run) cannotTakeOver(name, why, what string) {
	r.report.add(Difference{
		Kind: "shop", Name: name, Text: fmt.Sprintf("the shop has an order %s, no reservation goes by this name, and %s", name, why),
		Cause: "the order did not come through the gate", Repair: what,
	})
}

// cellOf returns the only cell of an item; without a name the cell of the only item, unless the sale has
// bundles. It is empty if there are several.
func (r *run) cellOf(sku string) (cell string, listed bool) {
	if sku != "" {
		cell, listed = r.cells[sku]
		return cell, listed
	}
	if len(r.skus) != 1 || r.bundles {
		return "", false
	}
	for cell = range r.skus {
	}
	return cell, true
}

// takeUnits takes units of a cell out of the stock. Where fewer are left, it takes those, so that none of them is sold too.
func (r *run) takeUnits(ctx context.Context, name, cell string, units int64) error {
	if r.takenOut == nil {
		r.takenOut = make(map[string]int64)
		for _, a := range r.history.adjusted {
			r.takenOut[a.id] = -a.delta
		}
	}
	id, taken := takenOverID(name, cell, 0), int64(0)
	for r.takenOut[id] > 0 && taken < units {
		taken += r.takenOut[id]
		id = takenOverID(name, cell, taken)
	}
	left := units - taken
	if left <= 0 {
		return nil
	}
	d := Difference{
		Kind: "shop", Name: name, Text: fmt.Sprintf("the shop has sold %d units of %s with the order %s, and no reservation has them", left, r.skuOf(cell), name),
		Cause:  "the order did not come through the gate",
		Repair: "take them out of the stock", Repairable: true,
	}
	if r.Repair {
		short, err := r.takeOut(ctx, name, id, cell, left)
		if err != nil {
			return err
		}
		if d.Repaired = short == 0; !d.Repaired {
			d.Repairable = false
			d.Repair = fmt.Sprintf("none: %d of them are held by, or sold to, others: cancel that part of the order, or add units that you have and run the same again", short)
		}
	}
	r.report.add(d)
	return nil
}

// takeOut returns how many units are not available.
func (r *run) takeOut(ctx context.Context, name, id, cell string, units int64) (short int64, err error) {
	by := fmt.Sprintf("%s, reconcile: order %s without a reservation", r.By, name)
	_, err = r.store.Adjust(ctx, r.sale, id, cell, -units, by)
	few, isShort := errors.AsType[*reservation.ShortError](err)
	if !isShort {
		return 0, err
	}
	if few.Available <= 0 {
		return units, nil
	}
	_, err = r.store.Adjust(ctx, r.sale, id, cell, -few.Available, by)
	if _, again := errors.AsType[*reservation.ShortError](err); again { // a hold has taken some of them meanwhile
		return units, nil
	}
	return units - few.Available, err
}

// takenOverID is the id of the adjustment that takes units of an order out of the stock, after others have taken some.
func takenOverID(name, cell string, taken int64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d", name, cell, taken))
	return "order-" + hex.EncodeToString(sum[:16])
}

package recovery

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// bounds are how many units of an item an order may have: the shop's list may have those that
// came back, or not.
type bounds struct{ least, most int64 }

// compareUnits compares the units that the shop has sold with an order with those of its
// reservation. One that is held is not compared: the shop's answer is on its way.
func (r *run) compareUnits(name, id string) {
	sold := r.Shop.Units[name]
	if state := r.history.reservations[id].State; len(sold) == 0 || state != record.Confirmed && state != record.InDoubt {
		return
	}
	reserved := r.reserved(id)
	units, whole := sold[""]
	if whole && r.bundles {
		return // unbundle has noted it
	}
	if whole { // the list names no items, so all count together
		all := bounds{}
		for _, b := range reserved {
			all = bounds{all.least + b.least, all.most + b.most}
		}
		for sku, more := range sold {
			if sku != "" {
				units += more
			}
		}
		r.compareItem(name, id, "", units, all)
		return
	}
	for _, sku := range r.skus {
		if _, known := reserved[sku]; !known && sold[sku] > 0 {
			reserved[sku] = bounds{}
		}
	}
	for _, sku := range slices.Sorted(maps.Keys(reserved)) { // items that the sale does not list are none of its business
		r.compareItem(name, id, sku, sold[sku], reserved[sku])
	}
}

// unbundle puts the components of bundles in the place of these in the units of the shop's orders.
func (r *run) unbundle(file *sale.Sale) {
	if r.bundles = len(file.Bundles()) > 0; !r.bundles || r.Shop == nil {
		return
	}
	shop := *r.Shop
	shop.Units = make(map[string]map[string]int64, len(r.Shop.Units))
	unnamed := 0
	for order, sold := range r.Shop.Units {
		units := make(map[string]int64, len(sold))
		for name, n := range sold {
			for _, l := range file.Unbundle([]sale.Line{{SKU: name, Quantity: n}}) {
				units[l.SKU] += l.Quantity
			}
		}
		if shop.Units[order] = units; units[""] > 0 {
			unnamed++
		}
	}
	if r.Shop = &shop; unnamed > 0 {
		r.report.Notes = append(r.report.Notes, fmt.Sprintf("the units of %d orders are not compared: the list does not name their items, and the sale has bundles; give a column sku", unnamed))
	}
}

// reserved returns the units that a reservation and what was sold beyond its hold have, by SKU.
func (r *run) reserved(id string) map[string]bounds {
	units := make(map[string]bounds)
	add := func(id string, mayLack bool) {
		t := r.history.reservations[id]
		for _, l := range t.Lines {
			b := units[r.skuOf(l.Cell)]
			if b.most += l.Units; !mayLack {
				b.least += l.Units
			}
			units[r.skuOf(l.Cell)] = b
		}
		for _, l := range t.Returned {
			b := units[r.skuOf(l.Cell)]
			b.least -= l.Units
			units[r.skuOf(l.Cell)] = b
		}
	}
	add(id, false)
	more := reservation.MoreOf(id)
	if t := r.history.reservations[more]; t != nil && t.State == record.Confirmed {
		_, apart := r.Shop.Units[more]
		add(more, apart || !t.Changed.Before(r.Shop.AsOf))
	}
	return units
}

// skuOf returns the item of a cell; the cell itself if the sale's file has no such item any more.
func (r *run) skuOf(cell string) string { return cmp.Or(r.skus[cell], cell) }

// compareItem reports an order that has more or fewer units than its reservation. sku is empty where
// the list names no items.
func (r *run) compareItem(name, id, sku string, sold int64, reserved bounds) {
	d := Difference{Kind: "shop", Name: id}
	of, item := "", "<sku>"
	if sku != "" {
		of, item = " of "+sku, sku
	}
	switch {
	case sold > reserved.most:
		d.Cause = "the cart has changed between the reservation and the order, or the shop sells what the gate does not read"
		if sku == "" {
			d.Cause += "; the file names no items, so those that the sale does not list count too: add a column sku"
		}
		d.Repair = fmt.Sprintf("none: cancel what is beyond the reservation, or take it out of the stock with `caddy stockgate stock add %s %s -%d`, so that it is not sold again", r.sale, item, sold-reserved.most)
	case sold < reserved.least:
		d.Cause = "the shop has sold or kept a part of what was reserved"
		d.Repair = fmt.Sprintf("none, nothing is released by a guess: give the other units back with `caddy stockgate reservation return %s`", id)
	default:
		return
	}
	d.Text = fmt.Sprintf("the shop has sold %d units%s with the order %s, and its reservation %s has %d", sold, of, name, id, reserved.most)
	r.report.add(d)
}

package doctor

import (
	"fmt"
	"slices"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
)

// SharedItems warns about the open sales that list items of a sale, and sell at the same time.
func SharedItems(a *app.App, catalogue *edge.Catalogue, next *sale.Sale) (warnings []string) {
	if l, ok := catalogue.Sale(next.ID); ok && l.Status == sale.Closed || !gatesFindSales(a) {
		return nil
	}
	for other := range catalogue.All {
		if skus := shared(next, other); skus != "" {
			warnings = append(warnings, fmt.Sprintf("the open sale %s lists %s too: %s", other.Sale.ID, skus, whatOfShared))
		}
	}
	return warnings
}

// whatOfShared says what two open sales of one item mean, and what to do.
const whatOfShared = "an order that names no sale is one of the sale that starts first, and its buyer hears sold_out although the other has units; " +
	"see that the id is not misspelt, close one of them, take the item out of one, or let the gates name the sale with `sale`"

// shared adds a finding for each two open sales that list one item.
func (d *examination) shared() {
	if !gatesFindSales(d.app) {
		return
	}
	var open []*edge.Listing
	for l := range d.runtime.Catalogue().All {
		if l.Status != sale.Open {
			continue
		}
		for _, other := range open {
			if skus := shared(l.Sale, other); skus != "" {
				d.Add(adminapi.LevelWarning, "sale", "%s and %s are open and list %s both: %s", other.Sale.ID, l.Sale.ID, skus, whatOfShared)
			}
		}
		open = append(open, l)
	}
}

// gatesFindSales reports whether some gate finds the sale of an order by its items: it does not name
// one itself, or none is configured here.
func gatesFindSales(a *app.App) bool {
	all := judge.Of(a).List()
	return len(all) == 0 || slices.ContainsFunc(all, (*judge.Judge).FindsSale)
}

// shared names the items of a sale that another one lists too, if that is open and their times
// overlap; else it is empty.
func shared(one *sale.Sale, other *edge.Listing) string {
	if other.Sale.ID == one.ID || other.Status != sale.Open || !one.StartsAt.Before(other.Sale.EndsAt) || !other.Sale.StartsAt.Before(one.EndsAt) {
		return ""
	}
	first, more := "", 0
	for i := range one.Items {
		item := &one.Items[i]
		names := append([]string{item.SKU}, item.IDs...)
		if !slices.ContainsFunc(names, func(name string) bool { _, ok := other.Sale.Place(name); return ok }) {
			continue
		}
		if first == "" {
			first = item.SKU
		} else {
			more++
		}
	}
	if more > 0 {
		return fmt.Sprintf("%s and %d more items", first, more)
	}
	return first
}

package mirror

import (
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// bundlesOf returns how many of each bundle there are, in each region or else in all of them together.
func bundlesOf(stock *reservation.SaleStock, regions bool) (all []record.Cell) {
	var units map[string]*record.Cell
	for i := range stock.Bundles {
		b := &stock.Bundles[i]
		if n := len(all); regions || n == 0 || all[n-1].SKU != b.SKU {
			all = append(all, record.Cell{SKU: b.SKU, Region: b.Region, Stock: b.Stock, Available: b.Available})
			continue
		}
		if units == nil {
			units = unitsOf(stock)
		}
		c := &all[len(all)-1]
		c.Region, c.Stock, c.Available = "", c.Stock+b.Stock, c.Available+b.Available
		for _, part := range b.Components {
			if of, ok := units[part.SKU]; ok && part.Region == "" { // its regions share it
				c.Stock, c.Available = min(c.Stock, of.Stock/part.Quantity), min(c.Available, of.Available/part.Quantity)
			}
		}
	}
	return all
}

// unitsOf returns the cells of the items without regions.
func unitsOf(stock *reservation.SaleStock) map[string]*record.Cell {
	units := make(map[string]*record.Cell, len(stock.Items))
	for i := range stock.Items {
		if c := &stock.Items[i]; c.Region == "" {
			units[c.SKU] = c
		}
	}
	return units
}

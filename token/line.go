package token

// MaxUnits is the most units of one cell, and of one line of a token: far below what Lua
// counts exactly.
const MaxUnits = 1_000_000_000_000

// Line is an item and how many units of it; several lines are all or nothing.
type Line struct {
	SKU string `json:"sku"`
	// Quantity is the number of units, from 1.
	Quantity int64 `json:"qty"`
	// Region is where the stock is; empty: the item's stock is not split by region.
	Region string `json:"region,omitempty"`
}

// Cell names the stock that a line draws on: "sku" or "sku@region".
func (l Line) Cell() string {
	if l.Region == "" {
		return l.SKU
	}
	return l.SKU + "@" + l.Region
}

package token

import "slices"

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

// Bundle says which units a line of a token holds whose SKU is sold as units of other items.
type Bundle struct {
	// SKU is the line's.
	SKU string `json:"sku"`
	// Components are the units of all of the line.
	Components []Line `json:"components"`
}

// Held returns lines with the components of the bundles in the place of the lines that name them: the units of each
// stock cell, summed.
func Held(lines []Line, bundles []Bundle) []Line {
	if len(bundles) == 0 {
		return lines
	}
	var held []Line
	add := func(l Line) {
		for i := range held {
			if held[i].SKU == l.SKU && held[i].Region == l.Region {
				held[i].Quantity += l.Quantity
				return
			}
		}
		held = append(held, l)
	}
	for _, l := range lines {
		at := slices.IndexFunc(bundles, func(b Bundle) bool { return b.SKU == l.SKU })
		if at < 0 {
			add(l)
			continue
		}
		for _, c := range bundles[at].Components {
			add(c)
		}
	}
	return held
}

// Cell names the stock that a line draws on: "sku" or "sku@region".
func (l Line) Cell() string {
	if l.Region == "" {
		return l.SKU
	}
	return l.SKU + "@" + l.Region
}

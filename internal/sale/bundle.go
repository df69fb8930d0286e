package sale

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stockgate/stockgate/token"
)

// MaxComponents is the most components of one bundle.
const MaxComponents = 20

// Component is an item of a bundle, and how many units of it one bundle takes.
type Component struct {
	// SKU names an item of the same sale that is no bundle.
	SKU string `json:"sku" yaml:"sku"`
	// Units is 1 to 10,000. Default in a file: 1.
	Units int64 `json:"units" yaml:"units"`
}

// IsBundle reports whether the item is sold as units of other items, and has no stock of its own.
func (i *Item) IsBundle() bool { return len(i.Components) > 0 }

// mostUnits is the largest number of units of one component.
func mostUnits(components []Component) (most int64) {
	for _, c := range components {
		most = max(most, c.Units)
	}
	return most
}

// take appends the units of n bundles in a region to lines, cell by cell.
func (s *Sale) take(lines []Line, bundle *Item, n int64, region string) []Line {
	for _, c := range bundle.Components {
		line := Line{SKU: c.SKU, Quantity: n * c.Units}
		if item, ok := s.bySKU(c.SKU); ok && len(item.Regions) > 0 {
			line.Region = region
		}
		lines = addLine(lines, line)
	}
	return lines
}

// Unbundle replaces lines that name a bundle, by any of its names, with its components. Other lines stay as they are;
// equal ones are summed where there is a bundle.
func (s *Sale) Unbundle(lines []Line) []Line {
	if !s.hasBundles() || !slices.ContainsFunc(lines, func(l Line) bool { return s.bundle(l.SKU) != nil }) {
		return lines
	}
	out := make([]Line, 0, len(lines)+MaxComponents)
	for _, l := range lines {
		if bundle := s.bundle(l.SKU); bundle != nil {
			out = s.take(out, bundle, l.Quantity, l.Region)
		} else {
			out = addLine(out, l)
		}
	}
	return out
}

// ClaimsOf returns what a token says of an attempt that holds lines, without what Redis says of the hold.
func (s *Sale) ClaimsOf(a *Attempt, held []Line) token.Claims {
	lines, bundles := s.Ordered(a, held)
	return token.Claims{Subject: a.Buyer, Sale: s.ID, Ref: a.Ref, Lines: lines, Bundles: bundles}
}

// Ordered returns the lines of an attempt as it names the items, by their SKUs and summed, and the components of its
// bundles. held are the lines to which it was resolved. They are the answer if no line names a bundle, or if the
// bundles are not what they were when it was resolved.
func (s *Sale) Ordered(a *Attempt, held []Line) (lines []Line, bundles []token.Bundle) {
	if s.BundlesIn(a) == nil {
		return held, nil
	}
	for i := range a.Lines {
		item, region, no := s.resolve(a, &a.Lines[i])
		if no != nil {
			return held, nil
		}
		n := a.Lines[i].Quantity
		if !item.IsBundle() {
			lines = addLine(lines, Line{SKU: item.SKU, Quantity: n, Region: region})
			continue
		}
		lines = addLine(lines, Line{SKU: item.SKU, Quantity: n})
		at := slices.IndexFunc(bundles, func(b token.Bundle) bool { return b.SKU == item.SKU })
		if at < 0 {
			at, bundles = len(bundles), append(bundles, token.Bundle{SKU: item.SKU})
		}
		bundles[at].Components = s.take(bundles[at].Components, item, n, region)
	}
	if !sameLines(token.Held(lines, bundles), held) {
		return held, nil
	}
	return lines, bundles
}

// OrderLines returns lines that no other order has: what Ordered returns, with the components of its bundles at the end,
// which tell their regions.
func (s *Sale) OrderLines(a *Attempt, held []Line) []Line {
	lines, bundles := s.Ordered(a, held)
	for i := range bundles {
		lines = append(lines, bundles[i].Components...)
	}
	return lines
}

// sameLines reports whether two lists have the same units, whatever their order. No two lines of a list are
// of one cell.
func sameLines(a, b []Line) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(l Line) bool { return !slices.Contains(b, l) })
}

// BundlesIn are the lines of an attempt that name bundles, by their SKUs and summed; nil: there are none.
func (s *Sale) BundlesIn(a *Attempt) (out []Line) {
	if !s.hasBundles() {
		return nil
	}
	for _, l := range a.Lines {
		if bundle := s.bundle(l.SKU); bundle != nil {
			out = addLine(out, Line{SKU: bundle.SKU, Quantity: l.Quantity})
		}
	}
	return out
}

// Offer is an item in one region, or in none where its stock is not split, and what one of it takes from the
// stock.
type Offer struct {
	// SKU is the item's.
	SKU, Region string
	// Parts are the units that one of it takes: its own, or a bundle's components.
	Parts []Line
}

// Of says how many there are in the units of their cells.
func (o *Offer) Of(units func(cell string) int64) int64 {
	least := int64(MaxUnits)
	for _, p := range o.Parts {
		least = min(least, units(p.Cell())/p.Quantity)
	}
	return least
}

// Offers returns an item in each region in which it is sold, sorted by their names.
func (s *Sale) Offers(item *Item) (all []Offer) {
	regions := slices.Sorted(maps.Keys(item.Regions))
	if item.IsBundle() {
		regions = s.regionsOf(item)
	}
	if regions == nil {
		regions = []string{""}
	}
	for _, region := range regions {
		parts := []Line{{SKU: item.SKU, Quantity: 1, Region: region}}
		if item.IsBundle() {
			parts = s.take(nil, item, 1, region)
		}
		all = append(all, Offer{item.SKU, region, parts})
	}
	return all
}

// Bundles returns the offers of the sale's bundles, in the order of its items.
func (s *Sale) Bundles() (all []Offer) {
	if !s.hasBundles() {
		return nil
	}
	s = s.indexed()
	for i := range s.Items {
		if s.Items[i].IsBundle() {
			all = append(all, s.Offers(&s.Items[i])...)
		}
	}
	return all
}

// regionsOf returns the regions in which all components of a bundle have stock, sorted; nil: none has regions.
func (s *Sale) regionsOf(bundle *Item) []string {
	var common []string
	for _, c := range bundle.Components {
		item, ok := s.bySKU(c.SKU)
		if !ok || len(item.Regions) == 0 {
			continue
		}
		common = inAll(common, item.Regions)
	}
	return common
}

// inAll keeps the regions that an item has too; nil are all.
func inAll[V any](common []string, regions map[string]V) []string {
	if common == nil {
		common = make([]string, 0, len(regions))
		for region := range regions {
			common = append(common, region)
		}
		slices.Sort(common)
		return common
	}
	return slices.DeleteFunc(common, func(region string) bool { _, ok := regions[region]; return !ok })
}

// isIn reports whether an item, or each component of a bundle that has regions, has stock in a region.
func (s *Sale) isIn(item *Item, region string) bool {
	if !item.IsBundle() {
		_, ok := item.Regions[region]
		return ok
	}
	for _, c := range item.Components {
		if of, ok := s.bySKU(c.SKU); !ok || len(of.Regions) > 0 && !s.isIn(of, region) {
			return false
		}
	}
	return true
}

func (s *Sale) bundle(name string) *Item {
	if item, ok := s.Item(name); ok && item.IsBundle() {
		return item
	}
	return nil
}

func (s *Sale) hasBundles() bool {
	if s.index != nil && len(s.Items) == s.index.items {
		return s.index.bundles
	}
	return slices.ContainsFunc(s.Items, func(i Item) bool { return i.IsBundle() })
}

// addLine adds a line to the one of the same cell.
func addLine(lines []Line, l Line) []Line {
	for i := range lines {
		if lines[i].SKU == l.SKU && lines[i].Region == l.Region {
			lines[i].Quantity += l.Quantity
			return lines
		}
	}
	return append(lines, l)
}

// componentsText says what a bundle is, for a message.
func componentsText(components []Component) string {
	texts := make([]string, len(components))
	for i, c := range components {
		texts[i] = fmt.Sprintf("%d of %s", c.Units, c.SKU)
	}
	return "a bundle of " + strings.Join(texts, ", ")
}

package sale

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/stockgate/stockgate/internal/sale/skus"
)

// index finds items by name. It remembers which list it was made of, so that a
// copy of the sale with another list is searched instead.
type index struct {
	first  *Item
	places *skus.Index
	items  int
	// bundles: at least one item is a bundle.
	bundles bool
	limits  limitIndex
}

func newIndex(items []Item) *index {
	names := 0
	for i := range items {
		names += 1 + len(items[i].IDs)
	}
	x := &index{first: &items[0], places: skus.New(names), items: len(items)}
	for i := range items {
		x.bundles = x.bundles || items[i].IsBundle()
		for name := range items[i].Names {
			x.places.Add(name, uint32(i))
		}
	}
	return x
}

// indexed returns a sale that finds its items fast: the same one, or a copy of one that has no index. It has
// at least one item.
func (s *Sale) indexed() *Sale {
	if s.index != nil && s.index.items == len(s.Items) {
		return s
	}
	copied := *s
	copied.index = newIndex(s.Items)
	return &copied
}

// Item finds an item by its SKU or one of its ids; false: the sale does not list it.
func (s *Sale) Item(name string) (*Item, bool) {
	if i, ok := s.Place(name); ok {
		return &s.Items[i], true
	}
	return nil, false
}

// Place is the index in Items of the item with this SKU or id; false: the sale does not list
// it.
func (s *Sale) Place(name string) (int, bool) {
	if x := s.index; x != nil && len(s.Items) == x.items && &s.Items[0] == x.first {
		for c := x.places.Find(name); ; {
			i, ok := x.places.Next(&c)
			if !ok || s.Items[i].IsCalled(name) {
				return int(i), ok
			}
		}
	}
	for i := range s.Items {
		if s.Items[i].IsCalled(name) {
			return i, true
		}
	}
	return 0, false
}

// bySKU finds an item by its SKU alone.
func (s *Sale) bySKU(sku string) (*Item, bool) {
	item, ok := s.Item(sku)
	return item, ok && item.SKU == sku
}

// IsCalled reports whether a name is the item's SKU or one of its ids.
func (i *Item) IsCalled(name string) bool {
	return i.SKU == name || slices.Contains(i.IDs, name)
}

// Names calls yield for the item's SKU and each of its ids.
func (i *Item) Names(yield func(string) bool) {
	if !yield(i.SKU) {
		return
	}
	for _, id := range i.IDs {
		if !yield(id) {
			return
		}
	}
}

// Cells returns the units that the file loads into every stock cell.
func (s *Sale) Cells() map[string]int64 {
	cells := make(map[string]int64, len(s.Items))
	for i := range s.Items {
		s.Items[i].load(func(cell string, units int64) { cells[cell] = units })
	}
	return cells
}

// Lines maps each stock cell to its item, or to an item in a region.
func (s *Sale) Lines() map[string]Line {
	lines := make(map[string]Line, len(s.Items))
	for i := range s.Items {
		item := &s.Items[i]
		if len(item.Regions) == 0 && !item.IsBundle() {
			lines[item.SKU] = Line{SKU: item.SKU}
		}
		for region := range item.Regions {
			lines[Cell(item.SKU, region)] = Line{SKU: item.SKU, Region: region}
		}
	}
	return lines
}

// LineOf returns the item, or the item in a region, whose stock cell has a name; false: the sale has no such cell.
func (s *Sale) LineOf(cell string) (Line, bool) {
	if item, ok := s.bySKU(cell); ok && len(item.Regions) == 0 && !item.IsBundle() {
		return Line{SKU: cell}, true
	}
	for i := range len(cell) {
		if cell[i] != '@' {
			continue
		}
		if item, ok := s.bySKU(cell[:i]); ok {
			if _, ok := item.Regions[cell[i+1:]]; ok {
				return Line{SKU: item.SKU, Region: cell[i+1:]}, true
			}
		}
	}
	return Line{}, false
}

// Equal reports whether two sales are the same, in the same order. Times are compared
// as instants: 00:00+08:00 is 16:00Z of the day before.
func (s *Sale) Equal(other *Sale) bool {
	if s == nil || other == nil {
		return s == other
	}
	return s.ID == other.ID && s.StartsAt.Equal(other.StartsAt) && s.EndsAt.Equal(other.EndsAt) &&
		s.zone() == other.zone() && s.missing() == other.missing() && s.LongestHold() == other.LongestHold() &&
		s.Unpaid.same(other.Unpaid) && s.Waitlist.same(other.Waitlist) && s.MovedIn.same(other.MovedIn) && slices.EqualFunc(s.Items, other.Items, Item.Equal) && slices.Equal(s.Limits, other.Limits)
}

func (s *Sale) zone() string {
	if s.Timezone == "" {
		return "UTC"
	}
	return s.Timezone
}

func (s *Sale) missing() Missing {
	if s.Missing == "" {
		return RefuseMissing
	}
	return s.Missing
}

// most is the default of Max.
func (i *Item) most() int64 { return MaxQuantity / max(1, mostUnits(i.Components)) }

// Bounds returns the units that one order may take, with the defaults filled in.
func (i *Item) Bounds() (least, most int64) {
	least, most = i.Min, i.Max
	if least == 0 {
		least = 1
	}
	if most == 0 {
		most = i.most()
	}
	return least, most
}

// Cells names the stock cells of the item, sorted: its SKU, or one per region; a bundle has none.
func (i *Item) Cells() []string {
	cells := make([]string, 0, max(1, len(i.Regions)))
	i.load(func(cell string, _ int64) { cells = append(cells, cell) })
	slices.Sort(cells)
	return cells
}

func (i *Item) load(each func(cell string, units int64)) {
	if i.IsBundle() {
		return
	}
	if len(i.Regions) == 0 {
		each(i.SKU, i.Stock)
		return
	}
	for region, units := range i.Regions {
		each(Cell(i.SKU, region), units)
	}
}

// Equal reports whether two items are the same.
func (i Item) Equal(other Item) bool {
	least, most := i.Bounds()
	otherLeast, otherMost := other.Bounds()
	return i.SKU == other.SKU && slices.Equal(i.IDs, other.IDs) && i.Stock == other.Stock && maps.Equal(i.Regions, other.Regions) &&
		slices.Equal(i.Components, other.Components) &&
		least == otherLeast && most == otherMost
}

// MarshalJSON writes the item in its canonical form: stock even if it is 0, or
// else the regions sorted by name or the components, and both bounds.
func (i Item) MarshalJSON() ([]byte, error) {
	form := struct {
		SKU        string           `json:"sku"`
		IDs        []string         `json:"ids,omitempty"`
		Stock      *int64           `json:"stock,omitempty"`
		Regions    map[string]int64 `json:"regions,omitempty"`
		Components []Component      `json:"components,omitempty"`
		Min        int64            `json:"min"`
		Max        int64            `json:"max"`
	}{SKU: i.SKU, IDs: i.IDs, Stock: &i.Stock, Regions: i.Regions, Components: i.Components}
	if (len(i.Regions) > 0 || i.IsBundle()) && i.Stock == 0 {
		form.Stock = nil
	}
	form.Min, form.Max = i.Bounds()
	return json.Marshal(form)
}

package sale

import (
	_ "embed"
	"maps"
	"slices"
	"time"
)

// Schema is the JSON Schema of a sale's file, for editors. It knows fields, types and bounds;
// what depends on several fields only Parse checks.
//
//go:embed schema.json
var Schema []byte

// field is a value with its line, and whether it is set.
type field[T any] struct {
	val  T
	line int
	set  bool
	// bad: it is set, a problem with it has been reported, and val is meaningless.
	bad bool
}

func given[T any](val T) field[T] { return field[T]{val: val, set: true} }

// document is a sale as written, before any rule is applied: the common form of a file
// and a Go value.
type document struct {
	line             int
	id, timezone     field[string]
	startsAt, endsAt field[time.Time]
	items            field[[]itemEntry]
	itemsFile        field[string] // has the items
	stockFrom        field[stockFrom]
	boughtFrom       field[boughtFrom]
	movedIn          field[MovedIn]
	limits           field[[]limitEntry]
	missing          field[string]
	unpaid           field[unpaidEntry]
	waitlist         field[waitlistEntry]
	maxHold          field[Span]
}

type itemEntry struct {
	line     int
	source   string // of row
	row      int    // of stock_from or a file with the items, from 1; 0: the sale's file has the item
	bad      bool   // not even a mapping
	sku      field[string]
	ids      field[[]field[string]]
	stock    field[int64]
	regions  field[[]regionEntry]
	min, max field[int64]

	components field[[]componentEntry]
}

type regionEntry struct {
	name  field[string]
	units field[int64]
}

type limitEntry struct {
	line              int
	bad               bool
	per               field[[]field[string]]
	union             bool // per is written as a list
	every, count, sku field[string]
	max               field[int64]
	shadow            field[bool]
}

// describe gives a Go value the form of a file: a zero value is a missing field.
func describe(s *Sale) *document {
	d := &document{
		id:       ifSet(s.ID, s.ID != ""),
		timezone: ifSet(s.Timezone, s.Timezone != ""),
		startsAt: ifSet(s.StartsAt, !s.StartsAt.IsZero()),
		endsAt:   ifSet(s.EndsAt, !s.EndsAt.IsZero()),
		items:    given(make([]itemEntry, len(s.Items))),
		limits:   given(make([]limitEntry, len(s.Limits))),
		missing:  ifSet(string(s.Missing), s.Missing != ""),
		unpaid:   describeUnpaid(s.Unpaid),
		waitlist: describeWaitlist(s.Waitlist),
		maxHold:  ifSet(s.MaxHold, s.MaxHold != 0),
		movedIn:  describeMoved(s.MovedIn),
	}
	for i, item := range s.Items {
		e := itemEntry{
			sku: ifSet(item.SKU, item.SKU != ""),
			min: ifSet(item.Min, item.Min != 0),
			max: ifSet(item.Max, item.Max != 0),
			// An item without stock and regions loads nothing.
			stock:      ifSet(item.Stock, item.Stock != 0 || len(item.Regions) == 0 && !item.IsBundle()),
			components: describeComponents(item.Components),
		}
		for _, id := range item.IDs {
			e.ids.set = true
			e.ids.val = append(e.ids.val, given(id))
		}
		if len(item.Regions) > 0 {
			e.regions.set = true
			for _, name := range slices.Sorted(maps.Keys(item.Regions)) {
				e.regions.val = append(e.regions.val, regionEntry{given(name), given(item.Regions[name])})
			}
		}
		d.items.val[i] = e
	}
	for i, l := range s.Limits {
		e := limitEntry{
			union: l.Per.IsUnion(),
			every: ifSet(l.Every, l.Every != ""),
			count: ifSet(l.Count, l.Count != ""),
			sku:   ifSet(l.SKU, l.SKU != ""),
			max:   given(l.Max),

			shadow: ifSet(l.Shadow, l.Shadow),
		}
		for kind := range l.Per.All {
			e.per.set = true
			e.per.val = append(e.per.val, given(kind))
		}
		d.limits.val[i] = e
	}
	return d
}

func ifSet[T any](val T, set bool) field[T] { return field[T]{val: val, set: set} }

// build makes the sale from a valid document.
func (d *document) build() *Sale {
	s := &Sale{
		ID:       d.id.val,
		StartsAt: plainTime(d.startsAt.val),
		EndsAt:   plainTime(d.endsAt.val),
		Timezone: d.timezone.val,
		Items:    make([]Item, len(d.items.val)),
		Missing:  Missing(d.missing.val),
		Unpaid:   buildUnpaid(d.unpaid),
		Waitlist: buildWaitlist(d.waitlist),
		MaxHold:  d.maxHold.val,
		MovedIn:  buildMoved(d.movedIn),
	}
	s.Timezone, s.Missing = s.zone(), s.missing()
	if s.LongestHold() == DefaultMaxHold {
		s.MaxHold = 0
	}
	for i, e := range d.items.val {
		item := Item{SKU: e.sku.val, Stock: e.stock.val, Min: e.min.val, Max: e.max.val, Components: e.buildComponents()}
		item.Min, item.Max = item.Bounds()
		for _, id := range e.ids.val {
			item.IDs = append(item.IDs, id.val)
		}
		if e.regions.set {
			item.Regions = make(map[string]int64, len(e.regions.val))
			for _, region := range e.regions.val {
				item.Regions[region.name.val] = region.units.val
			}
		}
		s.Items[i] = item
	}
	s.index = newIndex(s.Items)
	for _, e := range d.limits.val {
		s.Limits = append(s.Limits, e.build())
	}
	s.index.limits = newLimitIndex(s)
	return s
}

func (e *limitEntry) build() Limit {
	kinds := make([]string, len(e.per.val))
	for i, kind := range e.per.val {
		kinds[i] = kind.val
	}
	return Limit{Per: Union(kinds...), Every: e.every.val, Max: e.max.val, Count: e.count.val, SKU: e.sku.val, Shadow: e.shadow.val}
}

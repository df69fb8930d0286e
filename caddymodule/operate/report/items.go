package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/record"
)

// SoldItem is an item of the sale, or its stock in a region.
type SoldItem struct {
	record.Cell // as Redis has it now
	// Name is its SKU, with its region, by which movements name it.
	Name string
	pace
}

// pace is what the movements say of the units of an item.
type pace struct {
	firstTaken, lastTaken time.Time // by holds, or without
	FirstSale, LastSale   time.Time // orders; zero: there was none
	Returned              int64     // units of orders that came back, on sale or not
}

// add notes what a movement does to the units of the item.
func (p *pace) add(m *journal.Movement, change *ledger.Cell) {
	if change.Held+change.InDoubt+change.Confirmed > 0 {
		p.firstTaken, p.lastTaken = orFirst(p.firstTaken, m.Time), m.Time
	}
	if change.Confirmed > 0 {
		p.FirstSale, p.LastSale = orFirst(p.FirstSale, m.Time), m.Time
	}
	if m.Kind == "returned" {
		p.Returned -= change.Confirmed
	}
}

func orFirst(first, now time.Time) time.Time {
	if first.IsZero() {
		return now
	}
	return first
}

// SoldOutAfter returns how long after the first unit the last one was taken; false: there are some left.
func (i *SoldItem) SoldOutAfter() (time.Duration, bool) {
	if i.Stock <= 0 || i.Available > 0 || i.firstTaken.IsZero() {
		return 0, false
	}
	return i.lastTaken.Sub(i.firstTaken), true
}

// Took says how long the item took to sell out, in words.
func (i *SoldItem) Took() string {
	took, ok := i.SoldOutAfter()
	if !ok {
		return "–"
	}
	return span(took)
}

// paceOf returns the pace of the item with that name.
func (r *Report) paceOf(name string) *pace {
	p := r.paces[name]
	if p == nil {
		p = new(pace)
		r.paces[name] = p
	}
	return p
}

// AddItem adds an item as Redis has it now.
func (r *Report) AddItem(name string, c record.Cell) {
	r.Stock.Add(c)
	r.items = append(r.items, SoldItem{Cell: c, Name: name})
}

// Items returns the items in the order of their names. Where movements are missing it is not known when they sold,
// nor what came back.
func (r *Report) Items() []SoldItem {
	all := slices.Clone(r.items)
	for i := range all {
		if p := r.paces[all[i].Name]; p != nil && r.Missing == 0 {
			all[i].pace = *p
		}
	}
	slices.SortFunc(all, func(a, b SoldItem) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// mostTop bounds the items of the page; the CSV has all.
const mostTop = 20

// top returns the items that sold most.
func (r *Report) top() []SoldItem {
	all := slices.DeleteFunc(r.Items(), func(i SoldItem) bool { return i.Confirmed <= 0 })
	slices.SortStableFunc(all, func(a, b SoldItem) int { return cmp.Compare(b.Confirmed, a.Confirmed) })
	return all[:min(len(all), mostTop)]
}

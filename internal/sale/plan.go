package sale

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Change is what applying a file would do.
type Change struct {
	// Deltas are the stock cells that change, sorted by cell.
	Deltas []CellDelta `json:"deltas,omitempty"`
	// Notes has one sentence per difference, for a person; for no difference, "no change".
	Notes []string `json:"notes"`
	// Same: there is nothing to apply.
	Same bool `json:"same,omitempty"`
}

// CellDelta is how the units of one stock cell change.
type CellDelta struct {
	Cell string `json:"cell"`
	// Delta is what the new file loads minus what the last one loaded. Units added by
	// other means are not included: they stay.
	Delta int64 `json:"delta"`
	// Removed: the cell is removed. Applying it checks that none of its units is held or sold.
	Removed bool `json:"removed,omitempty"`
	// New: there was no such cell.
	New bool `json:"new,omitempty"`
}

// RefusedChange is a change that may not be, and why.
type RefusedChange struct {
	// Notes are what the whole change would be.
	Notes []string
	error
}

func (e *RefusedChange) Unwrap() error { return e.error }

// Plan compares the last applied file of a sale with the next one, and says what
// changes, or why it may not. Applied is nil for a new sale; then status does
// not matter. Both sales are valid. The order of items and limits does not matter, and
// a file never changes the status.
//
// A draft may change freely. Once a sale has been open, even if it is paused, its time zone
// cannot change. A new kind of limit needs force, because it has not counted what was sold before, so
// buyers who have bought before may buy again; a limit per order counts nothing, so it does
// not need force. A change of Missing needs force too: it changes whom the limits count.
// MaxHold and Unpaid may change at any time: they count from the next extension or attempt
// on. A closed sale does not change. The error names everything that is in the way; it is a *RefusedChange
// unless the two are not of one sale.
func Plan(applied *Sale, status Status, next *Sale, force bool) (*Change, error) {
	p := planner{status: status, next: next, force: force}
	if applied == nil {
		p.create()
	} else {
		if applied.ID != next.ID {
			return nil, fmt.Errorf("the file is about sale %s, not %s: a sale keeps its id", next.ID, applied.ID)
		}
		p.applied = applied
		p.compare()
	}
	if status == Closed && applied != nil && len(p.notes) > 0 {
		return nil, &RefusedChange{p.notes, fmt.Errorf("sale %s is closed: it does not change any more", next.ID)}
	}
	if len(p.refused) > 0 {
		return nil, &RefusedChange{p.notes, errors.Join(p.refused...)}
	}
	change := &Change{Deltas: p.deltas, Notes: p.notes, Same: len(p.notes) == 0}
	if change.Same {
		change.Notes = []string{"no change"}
	}
	slices.SortFunc(change.Deltas, func(a, b CellDelta) int { return cmp.Compare(a.Cell, b.Cell) })
	return change, nil
}

type planner struct {
	applied, next *Sale
	status        Status
	force         bool

	deltas  []CellDelta
	notes   []string
	refused []error
}

func (p *planner) note(format string, args ...any) {
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}

func (p *planner) refuse(format string, args ...any) {
	p.refused = append(p.refused, fmt.Errorf(format, args...))
}

// begun: buyers may have bought already.
func (p *planner) begun() bool { return p.status != Draft }

// counts: limits have counted purchases already, of this sale or of before it came
// here.
func (p *planner) counts() bool {
	return p.begun() || p.applied.MovedIn != nil && p.applied.MovedIn.Units > 0
}

func (p *planner) create() {
	s := p.next
	p.note("new sale %s: %s to %s, timezone %s", s.ID, written(s.StartsAt), written(s.EndsAt), s.zone())
	for i := range s.Items {
		p.addItem(&s.Items[i])
	}
	for _, l := range s.Limits {
		p.note("new limit %s: max %d%s", l.String(), l.Max, l.inShadow())
	}
	if !s.Missing.IsZero() {
		p.note("missing %s", s.Missing)
	}
	if s.Unpaid != nil {
		p.note("unpaid %s", s.Unpaid)
	}
	if s.Waitlist != nil {
		p.note("waitlist %s", s.Waitlist)
	}
	if s.LongestHold() != DefaultMaxHold {
		p.note("max_hold %s", s.MaxHold)
	}
	p.compareMoved(nil, s.MovedIn)
}

func (p *planner) compare() {
	was, will := p.applied, p.next
	if !was.StartsAt.Equal(will.StartsAt) {
		p.note("starts_at %s → %s", written(was.StartsAt), written(will.StartsAt))
	}
	if !was.EndsAt.Equal(will.EndsAt) {
		p.note("ends_at %s → %s", written(was.EndsAt), written(will.EndsAt))
	}
	if was.zone() != will.zone() {
		p.note("timezone %s → %s", was.zone(), will.zone())
		switch {
		case p.begun():
			p.refuse("timezone: stays %s once the sale has been opened, because limits are counted by it", was.zone())
		case p.counts():
			p.refuse("timezone: stays %s once purchases of before are here, because limits have counted them by it", was.zone())
		}
	}
	p.compareItems()
	p.compareLimits()
	p.compareMissing()
	if was, will := was.Unpaid, will.Unpaid; !was.same(will) {
		p.note("unpaid %s → %s", was, will)
	}
	if was, will := was.Waitlist, will.Waitlist; !was.same(will) {
		p.note("waitlist %s → %s", was, will)
	}
	if was, will := was.LongestHold(), will.LongestHold(); was != will {
		p.note("max_hold %s → %s", Span(was), Span(will))
	}
	p.compareMoved(was.MovedIn, will.MovedIn)
}

// compareMoved compares what the files say of purchases of before. A file that says nothing
// leaves what was taken over as it is.
func (p *planner) compareMoved(was, will *MovedIn) {
	switch {
	case will == nil || was.same(will):
		return
	case was != nil && was.Done:
		p.refuse("moved_in: %d purchases were taken over already, and are not taken over again", was.Purchases)
	case p.applied != nil && p.begun():
		p.refuse("moved_in: the sale has been open: what was bought before it is taken over only into a draft")
	case will.Done && was != nil:
		p.note("moved in: redis has all %d purchases with %d units", will.Purchases, will.Units)
	default:
		p.note("moved in: %d purchases with %d units, made before this sale", will.Purchases, will.Units)
	}
}

func (p *planner) compareItems() {
	owners := make(map[string]string, len(p.applied.Items))
	for i := range p.applied.Items {
		sku := p.applied.Items[i].SKU
		p.applied.Items[i].load(func(cell string, _ int64) { owners[cell] = sku })
	}
	for i := range p.next.Items {
		will := &p.next.Items[i]
		for _, cell := range will.Cells() { // sorted: the same file gives the same errors
			if owner, ok := owners[cell]; ok && owner != will.SKU {
				p.refuse("item %s: its stock would be called %s, as that of item %s now: remove that item first", will.SKU, cell, owner)
			}
		}
		if was, ok := p.applied.bySKU(will.SKU); ok {
			p.compareItem(was, will)
		} else {
			p.addItem(will)
		}
	}
	for i := range p.applied.Items {
		was := &p.applied.Items[i]
		if _, ok := p.next.bySKU(was.SKU); ok {
			continue
		}
		p.note("item %s: removed, with %s%s", was.SKU, was.loaded(), p.unknownOrders(was))
		was.load(func(cell string, units int64) {
			p.deltas = append(p.deltas, CellDelta{Cell: cell, Delta: -units, Removed: true})
		})
	}
}

// unknownOrders says what is not known any more of the orders of a bundle that is removed.
func (p *planner) unknownOrders(was *Item) string {
	if !was.IsBundle() || !p.counts() {
		return ""
	}
	return "; returns cannot name it any more, and to reconcile its orders seem to have no units of its components: leave it in the file while it has orders"
}

func (p *planner) addItem(item *Item) {
	p.note("new item %s: %s%s%s", item.SKU, item.loaded(), item.bounds(), item.alsoCalled())
	item.load(func(cell string, units int64) {
		p.deltas = append(p.deltas, CellDelta{Cell: cell, Delta: units, New: true})
	})
}

func (p *planner) compareItem(was, will *Item) {
	switch {
	case was.IsBundle() || will.IsBundle():
	case (len(was.Regions) == 0) != (len(will.Regions) == 0):
		p.note("item %s: %s → %s", will.SKU, was.loaded(), will.loaded())
	case len(will.Regions) == 0:
		if was.Stock != will.Stock {
			p.note("item %s: stock %s", will.SKU, step(was.Stock, will.Stock))
		}
	default:
		p.noteRegions(was, will)
	}
	p.compareCells(was, will)
	p.compareComponents(was, will)
	if !slices.Equal(was.IDs, will.IDs) {
		p.note("item %s: ids %s → %s", will.SKU, listedIDs(was.IDs), listedIDs(will.IDs))
	}

	wasLeast, wasMost := was.Bounds()
	least, most := will.Bounds()
	if wasLeast != least {
		p.note("item %s: min %d → %d", will.SKU, wasLeast, least)
	}
	if wasMost != most {
		p.note("item %s: max %d → %d", will.SKU, wasMost, most)
	}
}

// compareComponents compares what a bundle is made of. Once orders may name it, it stays: reservations
// have units of its components, and the shop's orders are compared with them by what it is made of.
func (p *planner) compareComponents(was, will *Item) {
	if slices.Equal(was.Components, will.Components) {
		return
	}
	p.note("item %s: %s → %s", will.SKU, was.loaded(), will.loaded())
	if p.counts() {
		p.refuse("item %s: stays %s once the sale has been opened, because its orders are compared with their reservations by that: sell the other one under a SKU of its own", will.SKU, was.loaded())
	}
}

func (p *planner) noteRegions(was, will *Item) {
	both := maps.Clone(was.Regions)
	maps.Copy(both, will.Regions)
	for _, region := range slices.Sorted(maps.Keys(both)) {
		before, had := was.Regions[region]
		after, has := will.Regions[region]
		switch {
		case !had:
			p.note("item %s: new region %s: stock %d", will.SKU, region, after)
		case !has:
			p.note("item %s: region %s removed, with stock %d", will.SKU, region, before)
		case before != after:
			p.note("item %s: region %s: stock %s", will.SKU, region, step(before, after))
		}
	}
}

func (p *planner) compareCells(was, will *Item) {
	before := make(map[string]int64, max(1, len(was.Regions)))
	was.load(func(cell string, units int64) { before[cell] = units })
	will.load(func(cell string, units int64) {
		loaded, had := before[cell]
		delete(before, cell)
		if units != loaded || !had {
			p.deltas = append(p.deltas, CellDelta{Cell: cell, Delta: units - loaded, New: !had})
		}
	})
	for cell, units := range before {
		p.deltas = append(p.deltas, CellDelta{Cell: cell, Delta: -units, Removed: true})
	}
}

func (p *planner) compareLimits() {
	before := make(map[string]Limit, len(p.applied.Limits))
	for _, l := range p.applied.Limits {
		before[l.ID()] = l
	}
	for _, l := range p.next.Limits {
		was, ok := before[l.ID()]
		delete(before, l.ID())
		switch {
		case !ok && l.Every == "order":
			p.note("new limit %s: max %d%s", l.String(), l.Max, l.inShadow()) // nothing is counted that could be too low
		case !ok && p.counts() && !p.force && !l.Shadow:
			p.note("new limit %s: max %d%s", l.String(), l.Max, l.inShadow())
			p.refuse("limit %s: has not counted what was sold while it was not in the file, so buyers who have bought before may buy as much again: repeat with --force if that is meant",
				l.String())
		case !ok && p.counts():
			p.note("new limit %s: max %d%s, has not counted what was sold while it was not in the file", l.String(), l.Max, l.inShadow())
		case !ok:
			p.note("new limit %s: max %d%s", l.String(), l.Max, l.inShadow())
		case was.Max != l.Max:
			p.note("limit %s: max %d → %d", l.String(), was.Max, l.Max)
		}
		switch {
		case !ok || was.Shadow == l.Shadow:
		case l.Shadow:
			p.note("limit %s: in shadow, refuses nothing from now on", l.String())
		default:
			p.note("limit %s: out of shadow, refuses from now on", l.String())
		}
	}
	for _, l := range p.applied.Limits {
		if _, gone := before[l.ID()]; gone {
			p.note("limit %s: removed, was max %d", l.String(), l.Max)
		}
	}
}

func (p *planner) compareMissing() {
	was, will := p.applied.missing(), p.next.missing()
	if was == will {
		return
	}
	p.note("missing %s → %s", was, will)
	if !p.begun() || p.force {
		return
	}
	why := "who leaves an identity out is no longer limited by it"
	if will == RefuseMissing {
		why = "what was bought without an identity was not counted by it, and such attempts are refused now"
	}
	p.refuse("missing: %s → %s: %s: repeat with --force if that is meant", was, will, why)
}

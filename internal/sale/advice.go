package sale

import (
	"fmt"
	"time"
)

// Advice returns one sentence for each thing in the sale that is valid and probably not what
// its author wants. now is the time of the sale's Redis.
func (s *Sale) Advice(now time.Time) []string {
	var all []string
	for i, at := range []time.Time{s.StartsAt, s.EndsAt} {
		_, offset := at.Zone()
		there := at.In(s.location())
		if _, right := there.Zone(); offset != 0 && offset != right && s.zone() != "UTC" {
			all = append(all, fmt.Sprintf("%s is written with the offset %s, and %s has %s at that time, when clocks there show %s; if you mean their time, write %s",
				[]string{"starts_at", "ends_at"}[i], at.Format("-07:00"), s.Timezone, there.Format("-07:00"), there.Format("2006-01-02 15:04"), at.Format("2006-01-02T15:04:05")+there.Format("-07:00")))
		}
	}
	for _, at := range []time.Time{s.StartsAt, s.EndsAt} {
		if _, offset := at.Zone(); offset != 0 && s.zone() == "UTC" {
			all = append(all, fmt.Sprintf("the window is written with the offset %s and the sale has no timezone: the days, weeks and months of its limits begin at 00:00 UTC, which is %s there; write `timezone`, such as Asia/Shanghai",
				at.Format("-07:00"), time.Unix(0, 0).In(at.Location()).Format("15:04")))
			break
		}
	}
	all = append(all, s.adviceOnLimits()...)
	if s.Waitlist != nil && s.hasBundles() {
		var bundles adviceOn
		for i := range s.Items {
			if s.Items[i].IsBundle() {
				bundles.add("people cannot wait for the bundle %s, only for its items: while they do, orders of the bundle are refused as not_your_turn", s.Items[i].SKU)
			}
		}
		all = append(all, bundles.text()...)
	}
	if !now.Before(s.EndsAt) {
		all = append(all, fmt.Sprintf("ends_at %s is in the past: the sale sells nothing, open or not", written(s.EndsAt)))
	}
	return all
}

// adviceOnLimits names items that no limit lets anyone buy, and bundles that a limit counts in a way that
// its author may not mean: of each limit the first, and how many others there are.
func (s *Sale) adviceOnLimits() (all []string) {
	for j := range s.Limits {
		l := &s.Limits[j]
		if l.Count != "units" || l.Shadow {
			continue
		}
		var unbuyable, several adviceOn
		for i := range s.Items {
			item := &s.Items[i]
			one := item.counts(l)
			least, _ := item.Bounds()
			switch {
			case one*least > l.Max:
				unbuyable.add("the item %s cannot be bought: an order of it counts at least %d units, and the limit of %s is %d", item.SKU, one*least, l.String(), l.Max)
			case l.SKU == "" && one > 1:
				several.add("the limit of %s counts one %s as the %d units of its components; to count bundles, narrow a limit with sku: %s", l.String(), item.SKU, one, item.SKU)
			}
		}
		all = append(append(all, unbuyable.text()...), several.text()...)
	}
	return all
}

// adviceOn is one sentence about the first of several items.
type adviceOn struct {
	first string
	items int
}

func (a *adviceOn) add(format string, args ...any) {
	if a.items++; a.items == 1 {
		a.first = fmt.Sprintf(format, args...)
	}
}

func (a *adviceOn) text() []string {
	switch a.items {
	case 0:
		return nil
	case 1:
		return []string{a.first}
	}
	return []string{fmt.Sprintf("%s (and so with %d more)", a.first, a.items-1)}
}

// counts says how many units of a limit one of the item counts.
func (i *Item) counts(l *Limit) (units int64) {
	if !i.IsBundle() || l.SKU == i.SKU {
		if l.SKU == "" || l.SKU == i.SKU {
			return 1
		}
		return 0
	}
	for _, c := range i.Components {
		if l.SKU == "" || l.SKU == c.SKU {
			units += c.Units
		}
	}
	return units
}

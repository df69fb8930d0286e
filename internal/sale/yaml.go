package sale

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// YAML writes a sale as a file that Parse reads as the same sale, with comments for a person who goes on from there. It
// leaves out what was taken over from before. itemsFile is the name of a CSV file that has the items; empty: they are listed.
func (s *Sale) YAML(itemsFile string) []byte {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# A sale: what is sold, when, and how much of it one person may buy.")
	line("# `caddy stockgate sale apply FILE --dry-run` says what it changes; see docs/sale-file.md.")
	line("id: %s", strconv.Quote(s.ID))
	line("# The window, with the offset from UTC. The end does not belong to it.")
	line("starts_at: %s", s.StartsAt.Format(time.RFC3339Nano))
	line("ends_at: %s", s.EndsAt.Format(time.RFC3339Nano))
	line("# Days, weeks and months of limits begin in this zone, and times are told in it.")
	line("timezone: %s", strconv.Quote(s.zone()))
	if s.LongestHold() != DefaultMaxHold {
		line("# The latest deadline to which the shop can extend a reservation.")
		line("max_hold: %s", Span(s.LongestHold()))
	}
	if !s.Missing.IsZero() {
		line("missing: %s", s.Missing)
	}
	if s.Unpaid != nil {
		line("unpaid: %s", s.Unpaid.yaml())
	}
	if itemsFile != "" {
		line("# The items and their stock: `sale apply` reads this file, in the directory of this one.")
		line("items: %s", strconv.Quote(itemsFile))
	} else {
		line("# stock: units to load. max: units of one order.")
		line("items:")
		for i := range s.Items {
			line("  - {%s}", s.Items[i].yaml())
		}
	}
	if len(s.Limits) == 0 {
		line("# Without limits, buyers may order again and again. To let each have two units:")
		line("# limits:")
		line("#   - {per: buyer, every: sale, max: 2, count: units}")
		return []byte(b.String())
	}
	line("# per: whose purchases are counted. every: order, hour, day, week, month or sale. count: units or orders.")
	line("limits:")
	for i := range s.Limits {
		line("  - {%s}", s.Limits[i].yaml())
	}
	return []byte(b.String())
}

func (i *Item) yaml() string {
	parts := []string{"sku: " + strconv.Quote(i.SKU)}
	if len(i.IDs) > 0 {
		quoted := make([]string, len(i.IDs))
		for j, id := range i.IDs {
			quoted[j] = strconv.Quote(id)
		}
		parts = append(parts, "ids: ["+strings.Join(quoted, ", ")+"]")
	}
	switch {
	case i.IsBundle():
		components := make([]string, len(i.Components))
		for j, c := range i.Components {
			components[j] = fmt.Sprintf("{sku: %s, units: %d}", strconv.Quote(c.SKU), c.Units)
		}
		parts = append(parts, "components: ["+strings.Join(components, ", ")+"]")
	case len(i.Regions) > 0:
		regions := make([]string, 0, len(i.Regions))
		for _, region := range slices.Sorted(maps.Keys(i.Regions)) {
			regions = append(regions, fmt.Sprintf("%s: %d", strconv.Quote(region), i.Regions[region]))
		}
		parts = append(parts, "regions: {"+strings.Join(regions, ", ")+"}")
	default:
		parts = append(parts, fmt.Sprintf("stock: %d", i.Stock))
	}
	least, most := i.Bounds()
	if least != 1 {
		parts = append(parts, fmt.Sprintf("min: %d", least))
	}
	if most != i.most() {
		parts = append(parts, fmt.Sprintf("max: %d", most))
	}
	return strings.Join(parts, ", ")
}

func (i Identities) yaml() string {
	if !i.IsUnion() {
		return string(i)
	}
	return "[" + strings.Join(slices.Collect(i.All), ", ") + "]"
}

func (u *Unpaid) yaml() string {
	if u.Off {
		return "off"
	}
	u = u.filled()
	return fmt.Sprintf("{per: %s, at_once: %d, ended: %d, within: %s}", u.Per.yaml(), u.AtOnce, u.Ended, u.Within)
}

func (l *Limit) yaml() string {
	text := fmt.Sprintf("per: %s, every: %s, max: %d, count: %s", l.Per.yaml(), l.Every, l.Max, l.Count)
	if l.SKU != "" {
		text += ", sku: " + strconv.Quote(l.SKU)
	}
	if l.Shadow {
		text += ", shadow: true"
	}
	return text
}

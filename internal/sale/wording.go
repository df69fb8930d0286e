package sale

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// String names the kind of the limit, without its number.
func (l Limit) String() string {
	s := fmt.Sprintf("%s per %s and %s", l.Count, l.Per, l.Every)
	if l.SKU != "" {
		s += " of item " + l.SKU
	}
	return s
}

// loaded says what the item loads, for a message.
func (i *Item) loaded() string {
	if i.IsBundle() {
		return componentsText(i.Components)
	}
	if len(i.Regions) == 0 {
		return fmt.Sprintf("stock %d", i.Stock)
	}
	regions := make([]string, 0, len(i.Regions))
	for _, region := range slices.Sorted(maps.Keys(i.Regions)) {
		regions = append(regions, fmt.Sprintf("%s %d", region, i.Regions[region]))
	}
	return "regions " + strings.Join(regions, ", ")
}

// bounds says what one order may take, if it is not the default.
func (i *Item) bounds() string {
	s := ""
	least, most := i.Bounds()
	if least != 1 {
		s += fmt.Sprintf(", min %d", least)
	}
	if most != i.most() {
		s += fmt.Sprintf(", max %d", most)
	}
	return s
}

// alsoCalled names the item's ids, if it has any.
func (i *Item) alsoCalled() string {
	if len(i.IDs) == 0 {
		return ""
	}
	return ", ids " + listedIDs(i.IDs)
}

func listedIDs(ids []string) string {
	if len(ids) == 0 {
		return "none"
	}
	return strings.Join(ids, ", ")
}

func step(was, will int64) string { return fmt.Sprintf("%d → %d (%+d)", was, will, will-was) }

func written(t time.Time) string { return t.Format(time.RFC3339Nano) }

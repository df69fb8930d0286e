package sales

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
)

// manyTimes is how much more of something is probably a slip of the pen.
const manyTimes = 10

// surprises returns what another file does to a sale that is open, and what its operator may not mean.
func surprises(now *edge.Listing, next *sale.Sale, at time.Time) (all []string) {
	if now == nil || now.Status != sale.Open {
		return nil
	}
	old := now.Sale
	switch {
	case !old.StartsAt.After(at) && next.StartsAt.After(at):
		all = append(all, fmt.Sprintf("nothing is sold until %s, to which its start moves", adminapi.SaleTime(next.StartsAt, next.Timezone)))
	case old.EndsAt.After(at) && !next.EndsAt.After(at):
		all = append(all, fmt.Sprintf("it ends at once: its end moves to %s", adminapi.SaleTime(next.EndsAt, next.Timezone)))
	}
	before, after := stockOf(old), stockOf(next)
	for _, cell := range slices.Sorted(maps.Keys(after)) {
		if was, will := before[cell], after[cell]; was > 0 && will/manyTimes >= was {
			all = append(all, fmt.Sprintf("%s has %d units instead of %d", cell, will, was))
		}
	}
	for _, limit := range old.Limits {
		if limit.Shadow {
			continue
		}
		is := slices.IndexFunc(next.Limits, func(l sale.Limit) bool { return l.String() == limit.String() && !l.Shadow })
		switch {
		case is < 0:
			all = append(all, fmt.Sprintf("nothing limits %s any more", limit))
		case next.Limits[is].Max/manyTimes >= limit.Max:
			all = append(all, fmt.Sprintf("the limit of %s is %d instead of %d", limit, next.Limits[is].Max, limit.Max))
		}
	}
	return all
}

// namedCells is how many items a warning names.
const namedCells = 5

// withoutStock warns of items that are new and have no units: they are sold out from the start.
func withoutStock(now *edge.Listing, next *sale.Sale) []string {
	before := map[string]int64{}
	if now != nil {
		before = stockOf(now.Sale)
	}
	var empty []string
	for cell, units := range stockOf(next) {
		if _, known := before[cell]; units == 0 && !known {
			empty = append(empty, cell)
		}
	}
	if len(empty) == 0 {
		return nil
	}
	slices.Sort(empty)
	named, more := strings.Join(empty[:min(len(empty), namedCells)], ", "), ""
	if rest := len(empty) - namedCells; rest > 0 {
		more = fmt.Sprintf(" and %d more", rest)
	}
	return []string{fmt.Sprintf("new in the sale with stock 0: %s%s; buyers hear sold_out until stock is added", named, more)}
}

// unsellable says why units that are added to a sale are not sold; "": they are.
func unsellable(l *edge.Listing) string {
	switch {
	case l.Status == sale.Closed:
		return "is closed for good: nothing sells the units that were added; load another sale to sell them"
	case !l.Now().Before(l.Sale.EndsAt):
		return "has ended: nothing sells the units that were added, unless its file moves `ends_at`"
	}
	return ""
}

// stockOf returns the units of a file, by item and region.
func stockOf(s *sale.Sale) map[string]int64 {
	all := make(map[string]int64)
	for _, item := range s.Items {
		if len(item.Regions) == 0 && !item.IsBundle() {
			all[item.SKU] = item.Stock
		}
		for region, units := range item.Regions {
			all[item.SKU+" in "+region] = units
		}
	}
	return all
}

package sale

import (
	"fmt"
	"slices"
)

// The windows of limits, from the shortest.
var windows = []string{"order", "hour", "day", "week", "month", "sale"}

func (d *document) checkLimits(found *findings) {
	if d.limits.bad || tooMany(found, d.limits.line, "limits", len(d.limits.val), MaxLimits) {
		return
	}
	skus := make(map[string]bool, len(d.items.val))
	for _, e := range d.items.val {
		skus[e.sku.val] = true
	}
	kinds := make(map[string]int, len(d.limits.val))
	for i, e := range d.limits.val {
		if e.bad {
			continue
		}
		path := fmt.Sprintf("limits[%d]", i)
		clean := checkPer(found, e.per, e.union, e.line, path+".per")
		clean = checkWord(found, e.every, e.line, path+".every", windows...) && clean
		clean = checkWord(found, e.count, e.line, path+".count", "units", "orders") && clean
		if need(found, e.max, e.line, path+".max", "say how many") {
			checkRange(found, e.max, path+".max", 1, MaxUnits)
		}
		switch {
		case e.sku.bad:
			clean = false
		case e.sku.set && !skus[e.sku.val]:
			// A missing or broken list of items has been reported already.
			if d.items.set && !d.items.bad {
				found.add(e.sku.line, path+".sku", "no item of this sale has the sku %s", quote(e.sku.val))
			}
			clean = false
		}
		if !clean {
			continue
		}
		if e.every.val == "order" && e.count.val == "orders" {
			found.add(e.count.line, path+".count", "an order is never more than one order: use units, or another window than order")
			continue
		}
		kind := e.build().ID()
		if first, twice := kinds[kind]; twice {
			found.add(e.line, path, "is of the same kind as limits[%d] (per, every, count and sku): keep one of them", first)
			continue
		}
		kinds[kind] = i
	}
}

// checkPer checks identities that are counted: at least one, each known, each once. Several:
// they are written as a list.
func checkPer(found *findings, per field[[]field[string]], several bool, line int, path string) bool {
	use := "use " + either(identityKinds) + ", or a list of them"
	if !need(found, per, line, path, use) {
		return false
	}
	if len(per.val) == 0 {
		found.add(per.line, path, "must have at least one identity: use %s", either(identityKinds))
		return false
	}
	clean := true
	for i, kind := range per.val {
		at := path
		if several {
			at = fmt.Sprintf("%s[%d]", path, i)
		}
		before := slices.IndexFunc(per.val[:i], func(f field[string]) bool { return f.val == kind.val })
		switch {
		case !checkWord(found, kind, line, at, identityKinds...):
			clean = false
		case before >= 0:
			found.add(kind.line, at, "names %s again, after %s[%d]: leave one of them out", kind.val, path, before)
			clean = false
		}
	}
	return clean
}

package sale

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// IsID reports whether text can be the id of a sale: 1 to 64 of a-z, 0-9, dot, underscore and
// hyphen, beginning with a letter or digit.
func IsID(text string) bool { return validID.MatchString(text) }

// IsName reports whether a text can name something in a sale: a SKU, a region, a
// reservation, a ref of the shop. A name has 1 to MaxName printable ASCII characters
// and no space.
func IsName(text string) bool {
	if text == "" || len(text) > MaxName {
		return false
	}
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

var validID = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// check applies every rule that a sale must keep.
func (d *document) check(found *findings) {
	if need(found, d.id, d.line, "id", "give the sale a short name such as double11") && !validID.MatchString(d.id.val) {
		found.add(d.id.line, "id", "must be 1 to %d of a-z, 0-9, dot, underscore and hyphen, and begin with a letter or digit, not %s",
			MaxID, quote(d.id.val))
	}
	d.checkWindow(found)
	d.checkTimezone(found)
	if d.stockFrom.set {
		d.checkStockFrom(found)
	}
	d.checkMoving(found)
	if d.items.set || !d.stockFrom.set {
		if need(found, d.items, d.line, "items", "list what is sold") {
			d.checkItems(found)
		}
	}
	d.checkLimits(found)
	d.checkUnpaid(found)
	d.checkWaitlist(found)
	if d.missing.set {
		checkWord(found, d.missing, d.line, "missing", string(RefuseMissing), string(SkipMissing))
	}
	if m := d.maxHold; m.set && !m.bad && (time.Duration(m.val) < LeastMaxHold || time.Duration(m.val) > MostMaxHold || time.Duration(m.val)%time.Second != 0) {
		found.add(m.line, "max_hold", "must be %s to %s in whole seconds", Span(LeastMaxHold), Span(MostMaxHold))
	}
}

func (d *document) checkWindow(found *findings) {
	whole := true
	for _, t := range []struct {
		name string
		field[time.Time]
	}{{"starts_at", d.startsAt}, {"ends_at", d.endsAt}} {
		if !need(found, t.field, d.line, t.name, "give a time such as 2026-11-11T00:00:00+08:00") {
			whole = false
		} else if err := checkTime(t.val); err != nil {
			found.add(t.line, t.name, "%v", err)
			whole = false
		}
	}
	if whole && !d.startsAt.val.Before(d.endsAt.val) {
		found.add(d.endsAt.line, "ends_at", "must be later than starts_at (%s)", d.startsAt.val.Format(time.RFC3339Nano))
	}
}

func (d *document) checkTimezone(found *findings) {
	zone := d.timezone
	if !zone.set || zone.bad {
		return
	}
	if zone.val == "" || zone.val == "Local" {
		found.add(zone.line, "timezone", "must be an IANA name such as Asia/Shanghai, not %s: every edge must mean the same zone",
			quote(zone.val))
		return
	}
	if _, err := time.LoadLocation(zone.val); err != nil {
		found.add(zone.line, "timezone", "there is no time zone %s: use an IANA name such as Asia/Shanghai", quote(zone.val))
	}
}

func (d *document) checkItems(found *findings) {
	items := d.items.val
	if len(items) == 0 {
		found.add(d.items.line, "items", "must have at least one item")
	}
	if tooMany(found, d.items.line, "items", len(items), MaxItems) {
		return
	}
	names := make(map[string]int, len(items))
	ids := 0
	cells := make(map[string]int, len(items))
	for i := range items {
		e := &items[i]
		if e.bad {
			continue
		}
		path := d.itemPath(i)
		e.checkBounds(found, path)
		known := checkName(found, e.sku, e.line, path+".sku")
		if first, twice := names[e.sku.val]; known && twice {
			found.add(e.sku.line, path+".sku", "is already the %s of %s", items[first].nameKind(e.sku.val), d.itemPath(first))
			known = false
		}
		if known {
			names[e.sku.val] = i
		}
		ids += len(e.ids.val)
		d.checkIDs(found, i, names)
		if e.components.set && !e.stock.set && !e.regions.set {
			continue // its components are checked when all names are known
		}
		if d.stockFrom.set && !d.stockFrom.val.filled && !e.stock.set && !e.regions.set {
			continue // a row may have it
		}
		e.checkStock(found, path, func(region string, line int, field string) {
			if !known {
				return
			}
			cell := Cell(e.sku.val, region)
			if first, twice := cells[cell]; twice {
				found.add(line, field, "its stock would be called %s, as that of %s: rename one of them", quote(cell), d.itemPath(first))
				return
			}
			cells[cell] = i
		})
	}
	for i := range items {
		if !items[i].bad && items[i].components.set {
			d.checkBundle(found, i, names)
		}
	}
	tooMany(found, d.items.line, "the ids of all items", ids, MaxItems)
	if len(cells) > MaxItems {
		found.add(d.items.line, "items", "must have at most %d stock cells, not %d", MaxItems, len(cells))
	}
}

// checkIDs checks the other names of an item. names has those before them, each with its
// item.
func (d *document) checkIDs(found *findings, i int, names map[string]int) {
	e := &d.items.val[i]
	if !e.ids.set || e.ids.bad {
		return
	}
	path := d.itemPath(i) + ".ids"
	if len(e.ids.val) == 0 {
		found.add(e.ids.line, path, "must have at least one id: leave it out where there is none")
	}
	if tooMany(found, e.ids.line, path, len(e.ids.val), MaxItemIDs) {
		return
	}
	for _, id := range e.ids.val {
		if !checkName(found, id, e.ids.line, path) {
			continue
		}
		if first, twice := names[id.val]; twice {
			found.add(id.line, path, "%s is already the %s of %s: a name belongs to one item", quote(id.val), d.items.val[first].nameKind(id.val), d.itemPath(first))
			continue
		}
		names[id.val] = i
	}
}

// nameKind says which name of the item a text is.
func (e *itemEntry) nameKind(name string) string {
	if e.sku.val == name {
		return "sku"
	}
	return "id"
}

// checkStock checks what the item loads and calls claim for every stock cell of it.
func (e *itemEntry) checkStock(found *findings, path string, claim func(region string, line int, field string)) {
	switch {
	case e.components.set:
		found.add(e.components.line, path+".components", "cannot stand beside stock or regions: a bundle has the stock of its components")
	case e.stock.set && e.regions.set:
		found.add(e.regions.line, path+".regions", "cannot stand beside stock: give one of them")
	case e.stock.set:
		checkRange(found, e.stock, path+".stock", 0, MaxUnits)
		claim("", e.stock.line, path+".stock")
	case !e.regions.set:
		found.add(e.line, path, "needs stock (a number of units), regions (units by region) or components (what a bundle is made of)")
	case !e.regions.bad && len(e.regions.val) == 0:
		found.add(e.regions.line, path+".regions", "must have at least one region")
	default:
		for _, region := range e.regions.val {
			field := within(path+".regions", region.name.val)
			checkRange(found, region.units, field, 0, MaxUnits)
			if checkName(found, region.name, e.regions.line, field) {
				claim(region.name.val, region.name.line, field)
			}
		}
	}
}

func (e *itemEntry) checkBounds(found *findings, path string) {
	least := int64(1)
	if e.min.set && checkRange(found, e.min, path+".min", 1, MaxQuantity) {
		least = e.min.val
	}
	if e.max.set && checkRange(found, e.max, path+".max", 1, MaxQuantity) && e.max.val < least {
		found.add(e.max.line, path+".max", "must be at least min (%d), not %d", least, e.max.val)
	}
}

// need reports a missing field. True: there is a value to check.
func need[T any](found *findings, f field[T], line int, path, hint string) bool {
	if !f.set {
		found.add(line, path, "is missing: %s", hint)
	}
	return f.set && !f.bad
}

// checkName checks a SKU or a region: 1 to MaxName printable ASCII characters
// without space, so that it looks the same in every log, shell and URL.
func checkName(found *findings, f field[string], line int, path string) bool {
	if !need(found, f, line, path, "name the item") {
		return false
	}
	if !IsName(f.val) {
		found.add(f.line, path, "must be 1 to %d printable ASCII characters without space, not %s", MaxName, quote(f.val))
		return false
	}
	return true
}

func checkRange(found *findings, f field[int64], path string, least, most int64) bool {
	if f.bad {
		return false
	}
	if f.val < least || f.val > most {
		found.add(f.line, path, "must be %d to %d", least, most)
		return false
	}
	return true
}

// checkWord checks that a field is one of these words.
func checkWord(found *findings, f field[string], line int, path string, words ...string) bool {
	use := "use " + either(words)
	switch {
	case !need(found, f, line, path, use):
		return false
	case slices.Contains(words, f.val):
		return true
	}
	if meant := nearest(f.val, words); meant != "" {
		use = "did you mean " + meant + "?"
	}
	found.add(f.line, path, "%s is unknown: %s", quote(f.val), use)
	return false
}

// either joins words for a message: "a, b or c".
func either(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func tooMany(found *findings, line int, path string, n, most int) bool {
	if n > most {
		found.add(line, path, "must have at most %d entries, not %d", most, n)
	}
	return n > most
}

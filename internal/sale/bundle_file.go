package sale

import (
	"fmt"

	"go.yaml.in/yaml/v4"
)

// componentEntry is a Component as written.
type componentEntry struct {
	line  int
	bad   bool
	sku   field[string]
	units field[int64]
}

var componentFields = []string{"sku", "units"}

func (r *reader) component(n *yaml.Node, path string) componentEntry {
	e := componentEntry{line: n.Line}
	e.bad = !r.mapping(n, path, componentFields, func(name string, v *yaml.Node) {
		switch path := path + "." + name; name {
		case "sku":
			e.sku = r.text(v, path)
		case "units":
			e.units = r.number(v, path)
		}
	})
	return e
}

func describeComponents(components []Component) (f field[[]componentEntry]) {
	for _, c := range components {
		f.set = true
		f.val = append(f.val, componentEntry{sku: ifSet(c.SKU, c.SKU != ""), units: given(c.Units)})
	}
	return f
}

func (e *itemEntry) buildComponents() (out []Component) {
	for _, c := range e.components.val {
		units := int64(1)
		if c.units.set {
			units = c.units.val
		}
		out = append(out, Component{c.sku.val, units})
	}
	return out
}

// checkBundle checks the components of an item. names has the items of the file by all of their names.
func (d *document) checkBundle(found *findings, i int, names map[string]int) {
	e := &d.items.val[i]
	path := d.itemPath(i) + ".components"
	switch {
	case e.components.bad:
		return
	case len(e.components.val) == 0:
		found.add(e.components.line, path, "must have at least one component: leave it out where the item has stock of its own")
		return
	case tooMany(found, e.components.line, path, len(e.components.val), MaxComponents):
		return
	}
	var common []string
	seen := make(map[string]int)
	for at := range e.components.val {
		c := &e.components.val[at]
		item := d.checkComponent(found, c, fmt.Sprintf("%s[%d]", path, at), names, seen, at)
		if item == nil || !item.regions.set || item.regions.bad {
			continue
		}
		regions := make(map[string]bool)
		for _, region := range item.regions.val {
			regions[region.name.val] = true
		}
		if common = inAll(common, regions); len(common) == 0 {
			found.add(c.line, path, "have no region in common: there is no region in which this bundle could be sold")
			return
		}
	}
	e.checkMostUnits(found, d.itemPath(i))
}

// checkComponent returns the item that a component names; nil: it names none.
func (d *document) checkComponent(found *findings, c *componentEntry, path string, names, seen map[string]int, at int) *itemEntry {
	if c.bad || !need(found, c.sku, c.line, path+".sku", "name an item of this sale") {
		return nil
	}
	if c.units.set {
		checkRange(found, c.units, path+".units", 1, MaxQuantity)
	}
	sku := c.sku.val
	if first, twice := seen[sku]; twice {
		found.add(c.sku.line, path+".sku", "names %s again, after components[%d]: give the sum of the units", quote(sku), first)
		return nil
	}
	seen[sku] = at
	place, ok := names[sku]
	switch {
	case !ok:
		found.add(c.sku.line, path+".sku", "no item of this sale has the sku %s", quote(sku))
	case d.items.val[place].sku.val != sku:
		found.add(c.sku.line, path+".sku", "%s is an id of the item %s: name the sku", quote(sku), quote(d.items.val[place].sku.val))
	case d.items.val[place].components.set:
		found.add(c.sku.line, path+".sku", "%s is a bundle itself: name what it is made of", quote(sku))
	default:
		return &d.items.val[place]
	}
	return nil
}

// checkMostUnits checks that min and max stay within what one line may take of each component.
func (e *itemEntry) checkMostUnits(found *findings, path string) {
	most := mostUnits(e.buildComponents())
	if most < 1 || most > MaxQuantity {
		return
	}
	for _, bound := range []struct {
		name string
		field[int64]
	}{{"min", e.min}, {"max", e.max}} {
		if bound.set && !bound.bad && bound.val > MaxQuantity/most {
			found.add(bound.line, path+"."+bound.name, "must be at most %d: an order takes at most %d units of an item, and each bundle takes %d", MaxQuantity/most, MaxQuantity, most)
		}
	}
}

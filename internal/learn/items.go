package learn

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// requestLines finds the items in the order request; nil: it names none.
func (l *learner) requestLines() *linesFrom {
	f, _ := l.linesIn(l.order)
	return f
}

// linesIn returns the lines that a request names, and the prefix of the values that read them.
func (l *learner) linesIn(c *candidate) (f *linesFrom, prefix string) {
	if c.op != nil {
		return findLines(c.op.arguments), "graphql"
	}
	kind, fields := c.body()
	switch kind {
	case kindJSON:
		f, prefix = findLines(fields), "json"
	case kindForm:
		f, prefix = findInForm(fields.(map[string]any)), "form"
	}
	if f == nil {
		f, prefix = findLines(treeOf(c.URL.Query())), "query"
	}
	if f == nil {
		f, prefix = l.itemInPath(c), "path"
	}
	return f, prefix
}

// itemInPath finds an item that is a segment behind a word such as products, and that an earlier answer has
// as one.
func (l *learner) itemInPath(c *candidate) *linesFrom {
	segments := c.segments()
	for i := 1; i < len(segments); i++ {
		before := strings.TrimSuffix(folded(segments[i-1]), "s")
		if slices.Contains([]string{"product", "item", "sku", "variant", "buy", "ticket", "offer", "article", "good"}, before) && c.hasID(segments[i]) && len(l.shownBefore(segments[i])) > 0 {
			return &linesFrom{item: strconv.Itoa(i), lines: []itemLine{{SKU: segments[i], Quantity: 1}}}
		}
	}
	return nil
}

// findItems says which items an order is about: the ones that it names, or all in the cart.
func (l *learner) findItems() error {
	f, prefix := l.linesIn(l.order)
	if f == nil {
		return l.lookUpCart()
	}
	if f.array != "" && !l.hidden.path(f.array) || f.item != "" && !f.parallel && !l.hidden.path(f.item) && prefix != "path" {
		return fmt.Errorf("%s names its items by fields whose names cannot be written here: configure the gate by hand, see docs/configure.md", l.order.Name())
	}
	l.plan.lines = f
	l.plan.add(f.option(prefix), l.itemsBecause(f))
	l.askAboutItems(f, prefix)
	return nil
}

// itemsBecause names the order, and an earlier answer that has the item.
func (l *learner) itemsBecause(f *linesFrom) string {
	if seen := l.shownBefore(f.lines[0].SKU); len(seen) > 0 {
		return because("names the items", l.order.Exchange) + "; " + because("shows the first one", seen[len(seen)-1])
	}
	return because("names the items", l.order.Exchange)
}

// shownBefore returns the requests before the order whose answer has a value.
func (l *learner) shownBefore(value string) (seen []*Exchange) {
	for _, x := range l.recordings[0].Exchanges {
		if x.Entry < l.order.Entry && len(value) > 0 && strings.Contains(string(x.Answer), value) {
			seen = append(seen, x)
		}
	}
	return seen
}

func (l *learner) askAboutItems(f *linesFrom, prefix string) {
	line := f.option(prefix)
	if len(l.shownBefore(f.lines[0].SKU)) == 0 {
		l.question("Is this the item?", "No earlier answer in the recording has the value that the order request names here, so nothing confirms that it is an item.", line)
	}
	switch {
	case f.quantity == "" && !f.keyed:
		l.question("How many units does an order have?", "The order request names no quantity, so each order is one unit of each item. If the shop reads a quantity elsewhere, name it behind the item.", line)
	case f.quantity != "" && !slices.Contains(quantityNames[:3], folded(lastOf(f.quantity))):
		l.question("Is this the quantity?", "The name of the field does not say so: it could be a price.", line)
	}
	if !f.list && !f.keyed && !f.parallel && prefix != "path" {
		l.question("Can one order have several items?", "The recorded order has one line. If the shop takes several, in an array or in further fields, the gate must read all of them.", line)
	}
}

func lastOf(path string) string {
	parts := strings.Split(path, ".")
	return parts[len(parts)-1]
}

// option writes line or lines; prefix is json, form, query, graphql, path or lookup.
func (f *linesFrom) option(prefix string) string {
	value := func(path string) string { return "{" + prefix + "." + path + "}" }
	switch {
	case f.parallel:
		return "lines " + value(f.item) + " " + value(f.quantity)
	case f.keyed:
		return "lines " + value(f.array) + " @key @value"
	case f.list:
		array := "{" + prefix + "}"
		if f.array != "" {
			array = value(f.array)
		}
		return strings.TrimSpace("lines " + array + " " + f.item + " " + f.quantity)
	case f.quantity != "":
		return "line " + value(f.item) + " " + value(f.quantity)
	}
	return "line " + value(f.item)
}

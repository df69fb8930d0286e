package learn

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Names of fields, folded, by which an item and its quantity are known; the best first.
var (
	itemNames = []string{"sku", "variantsku", "productsku", "itemsku", "skuid", "productvariantid", "variantid", "merchandiseid", "variant", "productcode", "itemcode", "articleid",
		"article", "offerid", "ticketid", "ticket", "productid", "itemid", "goodsid", "product", "item", "goods"}
	quantityNames = []string{"quantity", "qty", "count", "amount", "units", "num", "number", "pieces"}
)

// itemLine is an item that was ordered.
type itemLine struct {
	SKU      string
	Quantity int64
	ID       string // another name of it, by which carts are filled; empty: there is none
}

// linesFrom says where the lines of an order are, in a body, an argument or an answer.
type linesFrom struct {
	array    string // dotted path of the array; empty with list: the root
	list     bool   // array and fields; else one line
	item     string // dotted path, within an element if list
	quantity string // empty: there is none
	parallel bool   // a form with lists: item and quantity are their names
	keyed    bool   // a form whose keys are items: array is its name
	lines    []itemLine
	rank     int // how surely: less is better
}

// findLines looks for items in a tree; nil: nothing names one.
func findLines(root any) (best *linesFrom) {
	walk(root, nil, func(path []string, v any) bool {
		var found *linesFrom
		switch v := v.(type) {
		case []any:
			found = inArray(v, strings.Join(path, "."))
		case map[string]any:
			if !slices.ContainsFunc(path, isNumber) {
				found = inObject(v, strings.Join(path, "."))
			}
		}
		if found != nil && (best == nil || found.rank < best.rank) {
			best = found
		}
		return true
	})
	return best
}

func isNumber(s string) bool {
	_, err := strconv.Atoi(s)
	return err == nil
}

// inArray reads an array of objects, all of which have the item.
func inArray(list []any, path string) *linesFrom {
	if len(list) == 0 || len(list) > 50 {
		return nil
	}
	first, _ := list[0].(map[string]any)
	item, quantity, rank := fieldsOf(first, true)
	if item == "" && quantity != "" {
		if _, ok := scalar(first["id"]); ok {
			item, rank = "id", len(itemNames)
		}
	}
	if item == "" || path != "" && !isPath(path) {
		return nil
	}
	f := &linesFrom{array: path, list: true, item: item, quantity: quantity, rank: rank}
	for _, e := range list {
		line, ok := lineOf(e, item, quantity)
		if !ok {
			return nil
		}
		f.lines = append(f.lines, line)
	}
	return f
}

// inObject reads one line of an object's own fields.
func inObject(object map[string]any, path string) *linesFrom {
	item, quantity, rank := fieldsOf(object, false)
	if item == "" {
		return nil
	}
	line, ok := lineOf(object, item, quantity)
	if !ok {
		return nil
	}
	prefix := ""
	if path != "" {
		prefix = path + "."
	}
	f := &linesFrom{item: prefix + item, rank: rank + 1, lines: []itemLine{line}}
	if quantity != "" {
		f.quantity = prefix + quantity
	}
	return f
}

// isPath reports whether a path can be written: without indexes.
func isPath(path string) bool { return !slices.ContainsFunc(strings.Split(path, "."), isNumber) }

// fieldsOf finds the item and the quantity among the fields of an object, or of the objects in it.
func fieldsOf(object map[string]any, nested bool) (item, quantity string, rank int) {
	rank = 2 * len(itemNames)
	consider := func(prefix string, fields map[string]any, more int) {
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			v := fields[name]
			text, ok := scalar(v)
			if !ok || !nameLike.MatchString(name) || text == "true" || text == "false" || len(text) > 128 {
				continue
			}
			if i := slices.Index(itemNames, folded(name)); i >= 0 && i+more < rank {
				item, rank = prefix+name, i+more
			}
		}
	}
	consider("", object, 0)
	if nested {
		for _, name := range slices.Sorted(maps.Keys(object)) {
			v := object[name]
			if inner, ok := v.(map[string]any); ok && slices.Contains([]string{"variant", "product", "productvariant", "item", "merchandise"}, folded(name)) {
				consider(name+".", inner, 1)
				if id, ok := scalar(inner["id"]); ok && id != "" && item == "" {
					item, rank = name+".id", len(itemNames)
				}
			}
		}
	}
	return item, quantityIn(object), rank
}

func quantityIn(object map[string]any) string {
	best := len(quantityNames)
	for name, v := range object {
		if i := slices.Index(quantityNames, folded(name)); i >= 0 && i < best && nameLike.MatchString(name) {
			if n := units(v); n > 0 {
				best = i
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if best < len(quantityNames) && folded(name) == quantityNames[best] {
			return name
		}
	}
	return ""
}

// units reads a quantity; 0: it is none that a buyer would order.
func units(v any) int64 {
	text, _ := scalar(v)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > 1000 {
		return 0
	}
	return n
}

func lineOf(e any, item, quantity string) (line itemLine, ok bool) {
	line.SKU, ok = scalar(at(e, item))
	line.Quantity = 1
	if quantity != "" {
		line.Quantity = units(at(e, quantity))
	}
	return line, ok && line.Quantity > 0
}

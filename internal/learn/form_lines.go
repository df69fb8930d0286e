package learn

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var bracketed = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)\[([^\[\]]*)\](?:\[([A-Za-z0-9_]+)\])?(?:\[([A-Za-z0-9_]+)\])?$`)

// findInForm looks for items in the fields of a form, arrays included.
func findInForm(fields map[string]any) *linesFrom {
	if flat := findLines(fields); flat != nil {
		return flat
	}
	rows := make(map[string]map[string]any) // name → index or key → fields
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		v := fields[name]
		m := bracketed.FindStringSubmatch(name)
		if m == nil {
			continue
		}
		if rows[m[1]] == nil {
			rows[m[1]] = make(map[string]any)
		}
		switch {
		case m[3] == "":
			rows[m[1]][m[2]] = v
		default:
			row, _ := rows[m[1]][m[2]].(map[string]any)
			if row == nil {
				row = make(map[string]any)
				rows[m[1]][m[2]] = row
			}
			if m[4] == "" {
				row[m[3]] = v
			} else {
				row[m[3]] = map[string]any{m[4]: v}
			}
		}
	}
	if f := parallelLists(fields); f != nil {
		return f
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		if f := rowsOf(name, rows[name]); f != nil {
			return f
		}
	}
	return nil
}

// rowsOf reads items[0][sku]=… and quantity[A1]=2.
func rowsOf(name string, row map[string]any) *linesFrom {
	var list []any
	for i := range len(row) {
		if e, ok := row[strconv.Itoa(i)].(map[string]any); ok {
			list = append(list, e)
		}
	}
	if len(list) == len(row) {
		return inArray(list, name)
	}
	f := &linesFrom{array: name, keyed: true, rank: len(itemNames)}
	if !slices.Contains(quantityNames, folded(name)) {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(row)) {
		n := units(row[key])
		if n == 0 || isNumber(key) && len(key) < 3 {
			return nil
		}
		f.lines = append(f.lines, itemLine{SKU: key, Quantity: n})
	}
	return f
}

// parallelLists reads sku[]=A1&quantity[]=2.
func parallelLists(fields map[string]any) *linesFrom {
	f := &linesFrom{parallel: true, rank: len(itemNames)}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !strings.HasSuffix(name, "[]") || !nameLike.MatchString(strings.TrimSuffix(name, "[]")) {
			continue
		}
		if slices.Contains(itemNames, folded(name)) {
			f.item = name
		} else if slices.Contains(quantityNames, folded(name)) {
			f.quantity = name
		}
	}
	items, quantities := listOf(fields[f.item]), listOf(fields[f.quantity])
	if f.item == "" || f.quantity == "" || len(items) != len(quantities) {
		return nil
	}
	for i, item := range items {
		text, _ := scalar(item)
		f.lines = append(f.lines, itemLine{SKU: text, Quantity: units(quantities[i])})
		if text == "" || f.lines[i].Quantity == 0 {
			return nil
		}
	}
	return f
}

func listOf(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{v}
}

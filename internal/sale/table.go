package sale

import (
	"slices"
	"strings"
)

// Table is the result of a query. A value is nil (NULL), an int64, a string, a []byte
// or another type that a driver of database/sql returns.
type Table struct {
	Columns []string
	Rows    [][]any
}

// StockColumns are the columns that a query of stock may have, in any order and case;
// sku and stock are required.
var StockColumns = []string{"sku", "stock", "region", "min", "max"}

// read makes items from the rows, in their order: rows with the same SKU are its regions.
func (t *Table) read(found *findings, line int) []itemEntry {
	at := t.columns(found, line)
	if at == nil {
		return nil
	}
	if len(t.Rows) == 0 {
		found.add(line, "stock_from.query", "gives no rows: there would be nothing to sell")
		return nil
	}
	if tooMany(found, line, "stock_from.query", len(t.Rows), MaxItems) {
		return nil
	}
	r := newRowReader(found, "stock_from", line, at, len(t.Rows))
	r.texts, r.units = QueryText, QueryUnits
	for i, values := range t.Rows {
		r.row(i+1, values)
	}
	return r.list
}

// columns maps columns to positions; nil: one is missing or unknown.
func (t *Table) columns(found *findings, line int) map[string]int {
	at := make(map[string]int, len(t.Columns))
	for i, name := range t.Columns {
		name = strings.ToLower(name)
		if !slices.Contains(StockColumns, name) {
			found.add(line, "stock_from.query", "gives a column %s: there are %s; name it with AS, or leave it out", quote(name), either(StockColumns))
			return nil
		}
		if _, twice := at[name]; twice {
			found.add(line, "stock_from.query", "gives the column %s twice", name)
			return nil
		}
		at[name] = i
	}
	for _, name := range StockColumns[:2] {
		if _, ok := at[name]; !ok {
			found.add(line, "stock_from.query", "gives no column %s: name it with AS", name)
			return nil
		}
	}
	return at
}

// rowReader makes items from rows.
type rowReader struct {
	found  *findings
	source string // of the rows, as messages name it
	line   int    // where the sale's file names it
	at     map[string]int
	list   []itemEntry
	items  map[string]int // sku → its place in list
	cells  map[string]int // sku, NUL, region → its row
	// texts and units read a value.
	texts func(any) (string, error)
	units func(any) (int64, error)
	// stockElsewhere: a row may have no stock.
	stockElsewhere bool
}

func newRowReader(found *findings, source string, line int, at map[string]int, rows int) *rowReader {
	return &rowReader{found: found, source: source, line: line, at: at, items: make(map[string]int, rows), cells: make(map[string]int, rows)}
}

func (r *rowReader) row(n int, values []any) {
	value := func(column string) any {
		if i, ok := r.at[column]; ok {
			return values[i]
		}
		return nil
	}
	sku := r.text(value("sku"), rowPath(r.source, n, "")+".sku")
	path := rowPath(r.source, n, sku.val)
	known := !sku.bad && checkName(r.found, sku, r.line, rowPath(r.source, n, "")+".sku")
	stock := field[int64]{line: r.line}
	if v := value("stock"); v != nil || !r.stockElsewhere {
		stock = r.number(v, path+".stock")
	}
	known = checkRange(r.found, stock, path+".stock", 0, MaxUnits) && known
	region := field[string]{line: r.line}
	if v := value("region"); v != nil {
		region = r.text(v, path+".region")
		known = !region.bad && checkName(r.found, region, r.line, path+".region") && known
		if r.stockElsewhere && value("stock") == nil {
			r.number(nil, path+".stock")
		}
	}
	ids := r.ids(value("ids"), path+".ids")
	least, most := r.optional(value("min"), path+".min"), r.optional(value("max"), path+".max")
	if !known || least.bad || most.bad {
		return
	}
	if first, twice := r.cells[sku.val+"\x00"+region.val]; twice {
		r.found.add(r.line, path, "stands in row %d already: give one row for each sku and region", first)
		return
	}
	r.cells[sku.val+"\x00"+region.val] = n
	i, more := r.items[sku.val]
	if !more {
		r.items[sku.val] = len(r.list)
		e := itemEntry{line: r.line, source: r.source, row: n, sku: sku, ids: ids, min: least, max: most}
		if e.stock = stock; region.set {
			e.stock = field[int64]{}
			e.regions = field[[]regionEntry]{val: []regionEntry{{region, stock}}, line: r.line, set: true}
		}
		r.list = append(r.list, e)
		return
	}
	if e := &r.list[i]; !ids.set || slices.Equal(ids.val, e.ids.val) {
		r.another(e, path, region, stock, least, most)
		return
	}
	r.found.add(r.line, path+".ids", "are others than in row %d of the same sku", r.list[i].row)
}

// another adds another row, a region, to an item.
func (r *rowReader) another(e *itemEntry, path string, region field[string], stock, least, most field[int64]) {
	switch {
	case !region.set || e.stock.set:
		r.found.add(r.line, path, "and row %d are of one sku: give both a region, or one row for the sku", e.row)
	case least != e.min:
		r.found.add(r.line, path+".min", "is another one than in row %d of the same sku", e.row)
	case most != e.max:
		r.found.add(r.line, path+".max", "is another one than in row %d of the same sku", e.row)
	default:
		e.regions.val = append(e.regions.val, regionEntry{region, stock})
	}
}

func (r *rowReader) text(v any, path string) field[string] {
	text, err := r.texts(v)
	if err != nil {
		r.found.add(r.line, path, "%v", err)
	}
	return field[string]{val: text, line: r.line, set: true, bad: err != nil}
}

// ids reads other names of an item, with spaces between them.
func (r *rowReader) ids(v any, path string) field[[]field[string]] {
	if v == nil {
		return field[[]field[string]]{}
	}
	all := field[[]field[string]]{line: r.line, set: true}
	text, _ := v.(string)
	if i := strings.IndexAny(text, ",;|"); i >= 0 {
		r.found.add(r.line, path, "has %s between ids: write a space there", quote(text[i:i+1]))
		all.bad = true
		return all
	}
	for id := range strings.FieldsSeq(text) {
		all.val = append(all.val, field[string]{val: id, line: r.line, set: true})
	}
	return all
}

// optional reads a number that may be missing.
func (r *rowReader) optional(v any, path string) field[int64] {
	if v == nil {
		return field[int64]{line: r.line}
	}
	return r.number(v, path)
}

func (r *rowReader) number(v any, path string) field[int64] {
	n, err := r.units(v)
	if err != nil {
		r.found.add(r.line, path, "%v", err)
	}
	return field[int64]{val: n, line: r.line, set: true, bad: err != nil}
}

package sale

import (
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// StockFrom says which query of a shop's database gives the stock of a sale.
type StockFrom struct {
	// DSN is the address of the database. It may hold a password, or placeholders.
	DSN string
	// Query gives a row for each item, or for each region of it.
	Query string
	// Timeout bounds the query, 1s to 10m. Default: 30s.
	Timeout time.Duration
}

const (
	defaultStockTimeout = Span(30 * time.Second)
	leastStockTimeout   = Span(time.Second)
	mostStockTimeout    = Span(10 * time.Minute)
)

// Sources are asked only where the file names them, and all but Items once the rest of it is valid.
type Sources struct {
	// Items reads the file with the items, by its name as the sale's file has it.
	Items func(name string) ([]byte, error)
	// Query runs the query of stock_from.
	Query func(StockFrom) (*Table, error)
	// Keys reads keys of a shop's Redis, for stock_from and bought_from.
	Keys func(MoveFrom) (*MovedStock, error)
}

// ParseFrom is Parse for a file that may take its stock from elsewhere. The sale has the
// stock as if the file had listed it, without its source.
func ParseFrom(data []byte, from Sources) (*Sale, error) {
	return parse(data, syntaxTree, &from)
}

// stockFrom is StockFrom as written.
type stockFrom struct {
	dsn, query field[string]
	timeout    field[Span]
	// keys are those of a Redis, instead of dsn and query.
	keys, total, ordered, left field[string]
	redis, absent              field[string]
	// filled: the rows are among the items.
	filled bool
}

func (r *reader) stockFrom(n *yaml.Node, path string) field[stockFrom] {
	f := field[stockFrom]{line: n.Line, set: true}
	f.bad = !r.mapping(n, path, stockFromFields, func(name string, v *yaml.Node) {
		switch path := path + "." + name; name {
		case "dsn":
			f.val.dsn = r.text(v, path)
		case "query":
			f.val.query = r.text(v, path)
		case "timeout":
			f.val.timeout = r.span(v, path)
		case "redis":
			f.val.redis = r.text(v, path)
		case "key":
			f.val.keys = r.text(v, path)
		case "total":
			f.val.total = r.text(v, path)
		case "ordered":
			f.val.ordered = r.text(v, path)
		case "left":
			f.val.left = r.text(v, path)
		case "absent":
			f.val.absent = r.text(v, path)
		}
	})
	return f
}

func (d *document) checkStockFrom(found *findings) {
	f := &d.stockFrom
	if f.bad {
		return
	}
	if t := f.val.timeout; t.set && !t.bad && (t.val < leastStockTimeout || t.val > mostStockTimeout) {
		found.add(t.line, "stock_from.timeout", "must be %s to %s", leastStockTimeout, mostStockTimeout)
	}
	if f.val.redis.set {
		d.checkStockKeys(found)
		return
	}
	for name, given := range map[string]field[string]{"key": f.val.keys, "total": f.val.total, "ordered": f.val.ordered, "left": f.val.left, "absent": f.val.absent} {
		if given.set {
			found.add(given.line, "stock_from."+name, "goes with redis: give the address of the shop's Redis, or leave it out")
		}
	}
	if need(found, f.val.dsn, f.line, "stock_from.dsn", "give the address of the shop's database, such as postgres://…, mysql://… or sqlite:/…") && f.val.dsn.val == "" {
		found.add(f.val.dsn.line, "stock_from.dsn", "is empty: give the address of the shop's database, such as postgres://…, mysql://… or sqlite:/…")
	}
	if need(found, f.val.query, f.line, "stock_from.query", "give a query with the columns sku and stock") && strings.TrimSpace(f.val.query.val) == "" {
		found.add(f.val.query.line, "stock_from.query", "is empty: give a query with the columns sku and stock")
	}
}

// timeoutOf is a timeout as written, or its default.
func timeoutOf(f field[Span]) time.Duration {
	if !f.set {
		return time.Duration(defaultStockTimeout)
	}
	return time.Duration(f.val)
}

// fill asks the sources and puts what they say among the items.
func (d *document) fill(found *findings, from *Sources) error {
	if f := &d.stockFrom; f.set && !f.val.redis.set {
		if err := d.fillRows(found, from.Query); err != nil || found.any() {
			return err
		}
		if d.boughtFrom.set {
			if d.check(found); found.any() {
				return nil
			}
		}
	}
	if d.boughtFrom.set || d.stockFrom.val.redis.set {
		return d.move(found, from.Keys)
	}
	return nil
}

// fillRows asks for the rows of a query.
func (d *document) fillRows(found *findings, ask func(StockFrom) (*Table, error)) error {
	f := &d.stockFrom
	t, err := ask(StockFrom{DSN: f.val.dsn.val, Query: f.val.query.val, Timeout: timeoutOf(f.val.timeout)})
	if err != nil {
		return fmt.Errorf("line %d: stock_from: %w", f.line, err)
	}
	f.val.filled = true
	rows := t.read(found, f.val.query.line)
	if !found.any() {
		d.take(found, rows)
	}
	return nil
}

// take merges the rows into the items. A file with items defines what is sold; without
// items, the rows do.
func (d *document) take(found *findings, rows []itemEntry) {
	listed := d.items.set
	if !listed {
		d.items = field[[]itemEntry]{val: rows, line: d.stockFrom.line, set: true}
		return
	}
	items := make(map[string]*itemEntry, len(d.items.val))
	paths := make(map[string]string, len(d.items.val))
	for i := range d.items.val {
		items[d.items.val[i].sku.val] = &d.items.val[i]
		paths[d.items.val[i].sku.val] = d.itemPath(i)
	}
	for i := range rows {
		row := &rows[i]
		item, ok := items[row.sku.val]
		if !ok {
			found.add(row.line, rowPath(row.source, row.row, row.sku.val), "is no item of this file: list it, leave the row out of the query, or leave items out to sell all rows")
			continue
		}
		item.take(found, paths[row.sku.val], row)
	}
	for i := range d.items.val {
		if e := &d.items.val[i]; !e.stock.set && !e.regions.set && !e.components.set {
			found.add(e.line, d.itemPath(i), "needs stock, and no row of stock_from has the sku %s", quote(e.sku.val))
		}
	}
}

// take merges a row into an item of the file. A value that both give is an error.
func (e *itemEntry) take(found *findings, path string, row *itemEntry) {
	twice := func(set bool, line int, name string) {
		if set {
			found.add(line, path+"."+name, "is also given by row %d of stock_from: leave it out here, or leave the row or the column out of the query", row.row)
		}
	}
	twice(e.components.set, e.components.line, "components")
	twice(e.stock.set, e.stock.line, "stock")
	twice(e.regions.set, e.regions.line, "regions")
	twice(e.min.set && row.min.set, e.min.line, "min")
	twice(e.max.set && row.max.set, e.max.line, "max")
	e.stock, e.regions = row.stock, row.regions
	if row.min.set {
		e.min = row.min
	}
	if row.max.set {
		e.max = row.max
	}
}

// itemPath names an item by its place in the file or by its row.
func (d *document) itemPath(i int) string {
	if e := &d.items.val[i]; e.row > 0 {
		return rowPath(e.source, e.row, e.sku.val)
	}
	return fmt.Sprintf("items[%d]", i)
}

// rowPath names a row for a message, with its SKU, because the order of rows may be unknown.
func rowPath(source string, row int, sku string) string {
	if sku == "" {
		return fmt.Sprintf("%s row %d", source, row)
	}
	return fmt.Sprintf("%s row %d (%s)", source, row, quote(sku))
}

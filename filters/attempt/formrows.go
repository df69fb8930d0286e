package attempt

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stockgate/stockgate/filters/route"
	"github.com/stockgate/stockgate/internal/sale"
)

// Frameworks agree on few arrays of forms. Read here are those that PHP, Rack and qs make the same
// lines of, and that Django and others have by the names as they were sent:
//
//	items[0][sku]=A1&items[0][quantity]=2   numbered elements, each field of one once
//	quantity[A1]=2                          elements by their key, which is the SKU
//	sku[]=A1&quantity[]=2                   two lists of the same length
//
// Elements without a number that have fields, items[][sku], are others for PHP than for Rack.

// rowsKind is what an array of a form has.
type rowsKind uint8

const (
	noRows     rowsKind = iota
	numbered            // elements by their index
	keyed               // elements by their SKU
	skus                // the SKUs, one a value
	quantities          // the quantities, one a value
)

const (
	// mostSteps bounds the brackets of a name.
	mostSteps = 8
	// mostIndex is the last index of an element.
	mostIndex = 99
	// mostListed is the last number that qs takes for an index: it counts the elements from 0 then.
	mostListed = 20
)

// formRows says where the elements of a form's array have the fields of a line.
type formRows struct {
	sku, quantity     []string // steps below the element; none: the element itself
	counted           bool     // there is a quantity
	skuList, numbered string   // labels of lists
}

// formRows compiles an array of a form, or two lists.
func (c *compiler) formRows(l *Lines) error {
	if l.Array.column {
		return c.lists(l)
	}
	if l.SKU == "" {
		return errors.New("lines: name the field of an element that holds the SKU, or write `lines {form.quantity} @key @value` for quantity[A1]=2")
	}
	rows, kind := new(formRows), numbered
	if l.SKU == KeyField {
		kind = keyed
	}
	var err error
	if kind == numbered {
		if rows.sku, err = formField(l.SKU); err != nil {
			return err
		}
	}
	if rows.counted = l.Quantity != ""; rows.counted && l.Quantity != ValueField {
		if rows.quantity, err = formField(l.Quantity); err != nil {
			return err
		}
	}
	switch {
	case l.Quantity == ValueField && kind != keyed:
		return fmt.Errorf("lines: %s is a value beside its key: write `lines %s %s %s`", ValueField, "{"+l.Array.String()+"}", KeyField, ValueField)
	case kind == numbered && rows.counted && begins(rows.sku, rows.quantity):
		return fmt.Errorf("lines: %s: SKU and quantity must be fields of their own", l.SKU)
	}
	if err := c.rowsOf(l.Array, kind); err != nil {
		return err
	}
	rd, label := c.reader, l.Array.String()
	rd.formRows, rd.rows, rd.rowSKU = rows, &node{label: label}, &node{label: label + "." + l.SKU}
	if rows.counted {
		rd.rowQuantity = &node{label: label + "." + l.Quantity}
	}
	return nil
}

// lists compiles lists of SKUs and quantities.
func (c *compiler) lists(l *Lines) error {
	if l.SKU != "" {
		return fmt.Errorf("lines: {%s} is a list of SKUs: write the list of quantities behind it, such as {form.quantity[]}; fields of elements without a number, as in items[][sku], are read otherwise by PHP than by Rails: number them, items[0][sku]", l.Array)
	}
	if err := c.rowsOf(l.Array, skus); err != nil {
		return err
	}
	rd, label := c.reader, l.Array.String()
	rows := &formRows{skuList: label}
	rd.formRows, rd.rows, rd.rowSKU = rows, &node{label: label}, &node{label: label}
	if l.Quantity == "" {
		return nil
	}
	of, err := CompileArray(l.Quantity)
	if err != nil {
		return fmt.Errorf("lines: %w", err)
	}
	if of.kind != Form || !of.column {
		return fmt.Errorf("lines: %s: beside the list {%s} the quantities are a list, such as {form.quantity[]}", l.Quantity, label)
	}
	rows.counted, rows.numbered = true, of.String()
	rd.rowQuantity = &node{label: of.String()}
	return c.rowsOf(of, quantities)
}

// rowsOf registers the name of an array or a list.
func (c *compiler) rowsOf(v Value, kind rowsKind) error {
	known := len(c.reader.params)
	p, err := c.name(v.name, v.String())
	if err != nil {
		return fmt.Errorf("lines: %w", err)
	}
	if len(c.reader.params) == known {
		return fmt.Errorf("lines: {%s} is read by another value too", p.label)
	}
	p.rows = kind
	c.reader.needs |= NeedForm
	return nil
}

// formField reads the path of a field inside an element.
func formField(p string) ([]string, error) {
	if strings.ContainsAny(p, "{}@") {
		return nil, fmt.Errorf("lines: %s: write the field of an element, such as sku, without braces", p)
	}
	path, err := parsePath(p)
	if err != nil {
		return nil, fmt.Errorf("lines: %s: %w", p, err)
	}
	steps := make([]string, len(path))
	for i, seg := range path {
		if seg.index >= 0 || !isStep(seg.name) || len(path) > mostSteps-2 {
			return nil, fmt.Errorf("lines: %s: a field of a form is letters, digits, _, - and dots between steps", p)
		}
		steps[i] = seg.name
	}
	return steps, nil
}

// row takes one value of an array of a form.
func (ps *params) row(p *param, name, value string) fault {
	var room [mostSteps]string
	steps := stepsBelow(room[:0], name, p.name)
	if steps == nil {
		return fault{p.label, "the name appears in another spelling in the body"}
	}
	if route.ReachesPrototype(name) {
		return fault{"the body", prototypeWhat}
	}
	switch p.rows {
	case skus, quantities:
		return ps.listed(p, steps, value)
	case keyed:
		return ps.keyed(p, steps, value)
	}
	return ps.numbered(p, steps, value)
}

// stepsBelow appends the steps of a name in brackets below its array; nil: not every server reads
// the same ones.
func stepsBelow(dst []string, name, array string) []string {
	rest, ok := strings.CutPrefix(name, array)
	if !ok || rest == "" {
		return nil
	}
	for rest != "" {
		end := strings.IndexByte(rest, ']')
		if rest[0] != '[' || end < 0 || len(dst) == mostSteps || !isStep(rest[1:end]) && (end != 1 || len(rest) != 2) {
			return nil
		}
		dst = append(dst, rest[1:end])
		rest = rest[end+1:]
	}
	return dst
}

// isStep tells whether all servers read a text between brackets as it is.
func isStep(s string) bool {
	for i := range len(s) {
		if !isUnreserved(s[i]) || strings.IndexByte("~!*'()", s[i]) >= 0 {
			return false
		}
	}
	return s != ""
}

// listed takes one value of a list.
func (ps *params) listed(p *param, steps []string, value string) fault {
	if len(steps) != 1 || steps[0] != "" {
		return fault{p.label, "the values of this list have no keys: send " + p.name + "[]"}
	}
	field := rowSKU
	if p.rows == quantities {
		field = rowQuantity
	}
	sc := ps.scratch
	for i := field; ; i += rowLen {
		if i >= len(sc.rows) {
			if f := ps.addRow(p, ""); f.bad() {
				return f
			}
		}
		if sc.rows[i].state == absent {
			sc.rows[i] = found{present, value}
			return fault{}
		}
	}
}

// keyed takes a value of an element whose key is its SKU.
func (ps *params) keyed(p *param, steps []string, value string) fault {
	if steps[0] == "" {
		return fault{p.label, "its elements need keys, as in " + p.name + "[A1]"}
	}
	if n, err := strconv.Atoi(steps[0]); err == nil && n >= 0 && n <= mostListed {
		return fault{p.label, "a key from 0 to 20 is a place in a list to some servers"}
	}
	row, f := ps.rowOf(p, steps[0])
	if f.bad() {
		return f
	}
	row[rowSKU] = found{present, steps[0]}
	if !ps.rows.counted {
		return fault{}
	}
	return put(p, &row[rowQuantity], steps[1:], ps.rows.quantity, value)
}

// numbered takes a value of an element that has an index.
func (ps *params) numbered(p *param, steps []string, value string) fault {
	n, err := strconv.Atoi(steps[0])
	if err != nil || n < 0 || n > mostIndex || steps[0] != strconv.Itoa(n) {
		return fault{p.label, "its elements need numbers from 0 to 99, as in " + p.name + "[0]"}
	}
	if len(steps) == 1 {
		return fault{p.label, "its elements have no fields"}
	}
	row, f := ps.rowOf(p, steps[0])
	if f.bad() {
		return f
	}
	if f := put(p, &row[rowSKU], steps[1:], ps.rows.sku, value); f.bad() || !ps.rows.counted {
		return f
	}
	return put(p, &row[rowQuantity], steps[1:], ps.rows.quantity, value)
}

// rowOf finds the row of an element, or begins one.
func (ps *params) rowOf(p *param, key string) ([]found, fault) {
	sc := ps.scratch
	i := slices.Index(sc.keys, key)
	if i < 0 {
		if f := ps.addRow(p, key); f.bad() {
			return nil, f
		}
		i = len(sc.keys) - 1
	}
	return sc.rows[i*rowLen : (i+1)*rowLen], fault{}
}

func (ps *params) addRow(p *param, key string) fault {
	sc := ps.scratch
	if len(sc.rows) == rowLen*sale.MaxLines {
		return fault{p.label, "it has more than 50 elements"}
	}
	sc.rows, sc.keys = append(sc.rows, found{}, found{}), append(sc.keys, key)
	return fault{}
}

// put keeps the value of a name, if it is the field; the names of others must not lead to it or below it.
func put(p *param, into *found, steps, field []string, value string) fault {
	switch {
	case !begins(steps, field):
		return fault{}
	case !slices.Equal(steps, field):
		return fault{p.label, "a field of it appears in another form"}
	case into.state != absent:
		return fault{p.label, "the name appears twice"}
	}
	*into = found{present, value}
	return fault{}
}

// begins tells whether one of two paths begins with the other, for a server that ignores case.
func begins(a, b []string) bool {
	for i := range min(len(a), len(b)) {
		if !route.SameFold(a[i], route.Fold(b[i])) {
			return false
		}
	}
	return true
}

// endRows checks what only the whole form shows.
func (ps *params) endRows() fault {
	if ps.rows == nil || ps.rows.skuList == "" || !ps.rows.counted {
		return fault{}
	}
	for rows := ps.scratch.rows; len(rows) > 0; rows = rows[rowLen:] {
		if rows[rowSKU].state != rows[rowQuantity].state {
			return fault{ps.rows.numbered, "it has not as many values as " + ps.rows.skuList}
		}
	}
	return fault{}
}

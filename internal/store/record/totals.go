package record

import (
	"strconv"
	"strings"
	"time"
)

// Totals are what reservations and changes of stock add up to. What a reservation counts in each of its
// states is here alone: units of cells, purchase limits and counters of unpaid holds.
type Totals struct {
	// Cells are the units of each cell, by its name, without SKU and Region. Available follows: see Balance.
	Cells map[string]*Cell
	// Limits are the counters of the purchase limits, by their fields; nil: they are not counted.
	Limits map[string]Count
	// Unpaid are how many unpaid holds each counter of them has; nil: they are not counted.
	Unpaid map[string]int64
	// Now: limits whose window is over by then are not counted. Zero: all are.
	Now time.Time
}

// Count is what a purchase limit has counted.
type Count struct {
	// Charged is the whole count, Pending the part of it that belongs to unsettled holds.
	Charged, Pending int64
}

// NewTotals begins totals of everything.
func NewTotals() *Totals {
	return &Totals{Cells: make(map[string]*Cell), Limits: make(map[string]Count), Unpaid: make(map[string]int64)}
}

// NewStock begins totals of the cells alone.
func NewStock() *Totals { return &Totals{Cells: make(map[string]*Cell)} }

// Count adds what a reservation counts in its state, so many times: -1 takes it off.
func (t *Totals) Count(r *Record, times int64) {
	column := r.State.Column()
	if !column.Taken() {
		return // it has given everything back
	}
	for _, l := range r.Lines {
		*t.Cell(l.Cell).Units(column) += times * l.Units
	}
	for _, l := range r.Returned {
		*t.Cell(l.Cell).Units(column) -= times * l.Units
	}
	if t.Limits != nil {
		t.countCharges(r, times)
	}
	if t.Unpaid != nil && r.State == Held {
		for field := range strings.FieldsSeq(r.Unpaid) {
			if t.Unpaid[field] += times; t.Unpaid[field] == 0 {
				delete(t.Unpaid, field)
			}
		}
	}
}

func (t *Totals) countCharges(r *Record, times int64) {
	for rest := r.Charges; rest != ""; {
		var field, amount string
		field, rest, _ = strings.Cut(rest, " ")
		amount, rest, _ = strings.Cut(rest, " ")
		n, err := strconv.ParseInt(amount, 10, 64)
		if err != nil || WindowOver(field, t.Now) {
			continue
		}
		c := t.Limits[field]
		c.Charged += times * n
		if r.State != Confirmed {
			c.Pending += times * n
		}
		if t.Limits[field] = c; c == (Count{}) {
			delete(t.Limits, field)
		}
	}
}

// AddStock adds units to the stock of cells; a negative number takes them away.
func (t *Totals) AddStock(lines []CellUnits) {
	for _, l := range lines {
		t.Cell(l.Cell).Stock += l.Units
	}
}

// Cell returns the units of a cell, which begins with none.
func (t *Totals) Cell(name string) *Cell {
	c, ok := t.Cells[name]
	if !ok {
		c = new(Cell)
		t.Cells[name] = c
	}
	return c
}

// Balance sets the available units: what is left of the stock.
func (c *Cell) Balance() { c.Available = c.Stock - c.Held - c.InDoubt - c.Confirmed }

// WindowOver reports whether the window of a purchase limit is over, by the field that counts it: its
// counter is no longer read, and may be gone.
func WindowOver(field string, now time.Time) bool {
	_, rest, _ := strings.Cut(field, "|")
	window, _, _ := strings.Cut(rest, "|")
	ends, err := strconv.ParseInt(window, 10, 64)
	return err == nil && ends <= now.UnixMilli()
}

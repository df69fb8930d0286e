package stampede

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stockgate/stockgate/record"
	"github.com/stockgate/stockgate/sale"
)

// Tolerance says which violations to accept because the shop was told to misbehave.
type Tolerance struct {
	// InDoubt: units may be in doubt at the end, for the operator to resolve.
	InDoubt bool
	// Phantom: units may be confirmed without an order, by a shop that says yes
	// and writes nothing.
	Phantom bool
}

// Verdict is the result of Check.
type CheckResult struct {
	// Orders is how many orders of the sale the shop has, Ordered the units in
	// them, Stock what there was to sell.
	Orders  int   `json:"orders"`
	Ordered int64 `json:"ordered"`
	Stock   int64 `json:"stock"`
	// Oversold is the units that were promised and do not exist.
	Oversold int64 `json:"oversold"`
	// Violations has a sentence for each promise that was broken, and is empty
	// if everything agrees.
	Violations []string `json:"violations"`
}

// mostOfAKind is how many violations of one rule are spelt out.
const mostOfAKind = 5

// Check finds contradictions between the three accounts and the promises: no more is
// sold than there is, and orders, confirmed reservations and successful answers match.
func Check(e Evidence, t Tolerance) CheckResult {
	o := newOracle(e, t)
	for _, rule := range []func(){
		o.balance, o.oversold, o.undersold, o.ordersAreReservations, o.unitsAreOrders,
		o.answersAreOrders, o.refusedHaveNothing, o.soldOutWasTrue, o.limits,
	} {
		o.complaints = 0
		rule()
		if more := o.complaints - mostOfAKind; more > 0 {
			o.verdict.Violations = append(o.verdict.Violations, fmt.Sprintf("… and %d more like the last one", more))
		}
	}
	return o.verdict
}

// oracle holds the evidence in the forms that the rules need.
type oracle struct {
	Evidence
	may     Tolerance
	cells   map[string]record.Cell // the stock, by cell
	orders  []Order                // those of the sale
	byID    map[string][]Order     // the same, by reservation
	ordered map[string]int64       // their units, by stock cell

	verdict    CheckResult
	complaints int // of the present rule
}

func newOracle(e Evidence, t Tolerance) *oracle {
	o := &oracle{
		Evidence: e, may: t,
		cells: map[string]record.Cell{}, byID: map[string][]Order{}, ordered: map[string]int64{},
	}
	o.verdict.Violations = []string{}
	for _, c := range e.Stock.Items {
		o.cells[sale.Cell(c.SKU, c.Region)] = c
		o.verdict.Stock += c.Stock
	}
	for _, order := range e.Orders {
		units := o.units(order.Lines)
		if len(units) == 0 {
			continue
		}
		o.orders = append(o.orders, order)
		o.verdict.Orders++
		o.byID[order.Reservation] = append(o.byID[order.Reservation], order)
		for cell, n := range units {
			o.ordered[cell] += n
			o.verdict.Ordered += n
		}
	}
	return o
}

// complain notes a violation of the present rule.
func (o *oracle) complain(format string, args ...any) {
	if o.complaints++; o.complaints <= mostOfAKind {
		o.verdict.Violations = append(o.verdict.Violations, fmt.Sprintf(format, args...))
	}
}

// cell is the stock that a line draws on: of an item whose stock is not split,
// the region does not matter. "": the sale has none.
func (o *oracle) cell(l sale.Line) string {
	for _, name := range []string{l.Cell(), l.SKU} {
		if _, ok := o.cells[name]; ok {
			return name
		}
	}
	return ""
}

// units counts what lines take of the sale's cells.
func (o *oracle) units(lines []sale.Line) map[string]int64 {
	units := map[string]int64{}
	for _, l := range lines {
		if cell := o.cell(l); cell != "" {
			units[cell] += l.Quantity
		}
	}
	return units
}

// describe puts lines into words.
func describe(lines []sale.Line) string {
	words := make([]string, len(lines))
	for i, l := range lines {
		words[i] = fmt.Sprintf("%d × %s", l.Quantity, l.Cell())
	}
	return strings.Join(words, " + ")
}

// names are the cells in a fixed order.
func (o *oracle) names() []string { return slices.Sorted(maps.Keys(o.cells)) }

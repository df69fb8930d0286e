package stampede

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
)

// Tolerance says which violations to accept because the shop was told to misbehave, or
// because the caller reports them otherwise.
type Tolerance struct {
	// InDoubt: units may be in doubt at the end, for the operator to resolve.
	InDoubt bool
	// Phantom: units may be confirmed without an order, by a shop that says yes
	// and writes nothing.
	Phantom bool
	// Held: units may be held at the end, such as by buyers who pay later.
	Held bool
}

// The promises, as a verdict names them.
const (
	NoOversell    = "no oversell"
	NothingLost   = "no unit missing"
	YesIsAnOrder  = "every yes is an order and a sold unit"
	LimitsHold    = "limits hold"
	JournalAgrees = "journal and stock agree"
)

// What became of a promise.
const (
	Kept      = "kept"
	Broken    = "broken"
	Unchecked = "unchecked"
)

// NoAnswer says why a promise about answers cannot be checked.
const NoAnswer = "no request was answered"

// Promise is what became of one promise.
type Promise struct {
	Name string `json:"promise"`
	// State is Kept, Broken or Unchecked.
	State string `json:"state"`
	// Why says what an unchecked promise lacks.
	Why string `json:"why,omitempty"`
	// Violations are those of this promise.
	Violations []string `json:"violations"`
}

// CheckResult is the result of Check.
type CheckResult struct {
	// Orders is how many orders of the sale the shop has, Ordered the units in
	// them without those that came back, Stock what there was to sell.
	Orders  int   `json:"orders"`
	Ordered int64 `json:"ordered"`
	Stock   int64 `json:"stock"`
	// Oversold is the units that were promised and do not exist.
	Oversold int64 `json:"oversold"`
	// Violations has a sentence for each promise that was broken, and is empty
	// if everything agrees.
	Violations []string `json:"violations"`
	// Promises are the same by promise.
	Promises []Promise `json:"-"`
}

// mostOfAKind is how many violations of one rule are spelt out.
const mostOfAKind = 5

// Check finds contradictions between the three accounts and the promises: no more is
// sold than there is, and orders, confirmed reservations and successful answers match.
func Check(e Evidence, t Tolerance) CheckResult {
	o := newOracle(e, t)
	violations := map[string][]string{}
	for _, rule := range []struct {
		promise string
		check   func()
	}{
		{NothingLost, o.balance},
		{NoOversell, o.oversold},
		{NothingLost, o.undersold},
		{NoOversell, o.ordersAreReservations},
		{NothingLost, o.unitsAreOrders},
		{YesIsAnOrder, o.answersAreOrders},
		{YesIsAnOrder, o.refusedHaveNothing},
		{NothingLost, o.soldOutWasTrue},
		{LimitsHold, o.limits},
		{LimitsHold, o.charges},
		{JournalAgrees, o.journalAgrees},
	} {
		o.complaints = 0
		before := len(o.verdict.Violations)
		rule.check()
		if more := o.complaints - mostOfAKind; more > 0 {
			o.verdict.Violations = append(o.verdict.Violations, fmt.Sprintf("… and %d more like the last one", more))
		}
		violations[rule.promise] = append(violations[rule.promise], o.verdict.Violations[before:]...)
	}
	for _, name := range []string{NoOversell, NothingLost, YesIsAnOrder, LimitsHold, JournalAgrees} {
		p := Promise{Name: name, State: Kept, Violations: append([]string{}, violations[name]...)}
		if len(p.Violations) > 0 {
			p.State = Broken
		} else if p.Why = o.lacks(name); p.Why != "" {
			p.State = Unchecked
		}
		o.verdict.Promises = append(o.verdict.Promises, p)
	}
	return o.verdict
}

// lacks says what is missing to check a promise; empty: nothing.
func (o *oracle) lacks(promise string) string {
	switch {
	case promise == YesIsAnOrder && o.Tally == nil:
		return "what buyers were told is not known"
	case promise == YesIsAnOrder && o.Tally.Answered() == 0:
		return NoAnswer
	case promise == LimitsHold && o.MaxPerBuyer == 0 && !o.Journal.whole():
		return "the journal does not begin with the sale's first movement, and no ledger has those before"
	case promise == JournalAgrees && !o.Journal.whole():
		return "the journal does not begin with the sale's first movement, and no ledger has those before"
	}
	return ""
}

// oracle holds the evidence in the forms that the rules need.
type oracle struct {
	Evidence
	may     Tolerance
	cells   map[string]record.Cell // the stock, by cell
	orders  []Order                // those of the sale
	byID    map[string][]Order     // the same, by reservation
	ordered map[string]int64       // their units that did not come back, by stock cell

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
		for cell, n := range o.sold(order) {
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
		for _, part := range o.parts(l) {
			if cell := o.cell(part); cell != "" {
				units[cell] += part.Quantity
			}
		}
	}
	return units
}

// parts are the components of a line that names a bundle; another one is its own part.
func (o *oracle) parts(l sale.Line) []sale.Line {
	for _, b := range o.Stock.Bundles {
		if b.SKU != l.SKU || l.Region != "" && b.Region != "" && b.Region != l.Region {
			continue
		}
		parts := slices.Clone(b.Components)
		for i := range parts {
			parts[i].Quantity *= l.Quantity
		}
		return parts
	}
	return []sale.Line{l}
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

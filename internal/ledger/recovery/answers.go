package recovery

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// adjusted is what Redis must remember of an adjustment.
type adjusted struct {
	adjustment
	stock int64 // after it
}

// adjustments computes what each adjustment answered, backwards from the current stock.
func (b *batch) adjustments() map[string]adjusted {
	if b.stocks != nil {
		return b.stocks
	}
	b.stocks = make(map[string]adjusted)
	after := make(map[string]int64)
	for name, c := range b.history.totals.Cells {
		after[name] = c.Stock
	}
	for _, a := range slices.Backward(b.history.adjusted) {
		if a.id != "" {
			b.stocks[a.id] = adjusted{a, after[a.cell]}
		}
		if b.history.stockKnown {
			after[a.cell] -= a.delta
		}
	}
	return b.stocks
}

func (b *batch) judgeAdjustment(n reservation.Named, has reservation.KeyValue) *finding {
	a, told := b.adjustments()[n.Name]
	switch {
	case !told && (!has.Found || !b.history.whole):
		return nil
	case !told:
		return b.differs(n, has, nothing, fmt.Sprintf("redis has an adjustment %s of which %s knows nothing: a new one of this id would not be made", n.Name, b.report.source()),
			"forget it", "was "+valueWord(has))
	}
	want := fmt.Sprintf("%s %d %d", a.cell, a.delta, a.stock)
	unsure := !b.history.stockKnown
	if has.Found && (has.Text == want || unsure && strings.HasPrefix(has.Text, fmt.Sprintf("%s %d ", a.cell, a.delta))) {
		return nil
	}
	is := "does not remember"
	if has.Found {
		is = "remembers wrongly"
	}
	v := b.differs(n, has, value(want), fmt.Sprintf("redis %s the adjustment %s (%+d units of %s): asked for again, it would be made twice or refused", is, n.Name, a.delta, a.cell),
		"remember it", "was "+valueWord(has))
	if unsure {
		v.Repairable, v.Difference.Repair = false, "none: do not ask for this adjustment again"
	}
	return v
}

func (b *batch) judgeReturn(n reservation.Named, has reservation.KeyValue) *finding {
	id, name, _ := strings.Cut(n.Name, "|")
	list := b.history.returned[id]
	i := slices.IndexFunc(list, func(r *returnEntry) bool { return r.id == name })
	if i < 0 {
		if !has.Found || !b.history.whole {
			return nil
		}
		return b.differs(n, has, nothing, fmt.Sprintf("redis has a return %s of reservation %s of which %s knows nothing", short(name), short(id), b.report.source()),
			"forget it", "was "+valueWord(has))
	}
	one := list[i]
	restock := map[bool]string{true: "1", false: "0"}[one.restock]
	answer := b.answered(id, list, i)
	want := restock + " " + record.UnitsText(one.lines) + "\t" + answer
	if has.Text == want {
		return nil
	}
	is := "does not remember"
	if has.Found {
		is = "remembers wrongly"
	}
	return b.differs(n, has, value(want),
		fmt.Sprintf("redis %s the return %s of reservation %s: asked for again, it would be made twice or refused", is, short(name), id),
		"remember it", "was "+valueWord(has))
}

// answered returns the units that had come back after the i-th return, in the order of
// the reservation's lines.
func (b *batch) answered(id string, list []*returnEntry, i int) string {
	t := b.history.reservations[id]
	if t == nil {
		return ""
	}
	sum := map[string]int64{}
	for _, l := range t.Returned {
		sum[l.Cell] += l.Units
	}
	for _, later := range list[i+1:] {
		for _, l := range later.lines {
			sum[l.Cell] -= l.Units
		}
	}
	var out []record.CellUnits
	for _, l := range t.Lines {
		if sum[l.Cell] > 0 {
			out = append(out, record.CellUnits{Cell: l.Cell, Units: sum[l.Cell]})
			delete(sum, l.Cell)
		}
	}
	return record.UnitsText(out)
}

// parseCell reads a cell as Redis keeps it.
func parseCell(name, text string) (c ledger.Cell, ok bool) {
	units, err := record.ParseCell(text)
	return ledger.CellOf(name, &units), err == nil
}

func packCell(c ledger.Cell) string {
	return fmt.Sprintf("%d %d %d %d %d", c.Stock, c.Available, c.Held, c.InDoubt, c.Confirmed)
}

// cellText says where the units of a cell are.
func cellText(c ledger.Cell) string {
	return fmt.Sprintf("stock %d = %d available + %d held + %d in doubt + %d confirmed", c.Stock, c.Available, c.Held, c.InDoubt, c.Confirmed)
}

// scoreOf reads a score in ms.
func scoreOf(v reservation.KeyValue) (time.Time, bool) {
	f, err := strconv.ParseFloat(v.Text, 64)
	if !v.Found || err != nil {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(f)), true
}

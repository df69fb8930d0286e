package record_test

import (
	"maps"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/store/record"
)

// A reservation counts units, limits and counters of unpaid holds by its state, and what was counted can be
// taken off again.
func TestTotals(t *testing.T) {
	r := record.Record{
		Lines: []record.CellUnits{{Cell: "a", Units: 3}, {Cell: "b", Units: 1}}, Charges: "units|-|ann 4 orders|100|ann 1", Unpaid: "buyer|ann ip|x",
	}
	both := func(pending int64) map[string]record.Count {
		return map[string]record.Count{"units|-|ann": {Charged: 4, Pending: 4 * pending}, "orders|100|ann": {Charged: 1, Pending: pending}}
	}
	for state, want := range map[record.State]struct {
		cell    record.Cell
		returns int64
		limits  map[string]record.Count
		unpaid  map[string]int64
	}{
		record.Held:      {cell: record.Cell{Held: 3, Available: 7}, limits: both(1), unpaid: map[string]int64{"buyer|ann": 1, "ip|x": 1}},
		record.InDoubt:   {cell: record.Cell{InDoubt: 3, Available: 7}, limits: both(1)},
		record.Confirmed: {cell: record.Cell{Confirmed: 1, Available: 9}, returns: 2, limits: both(0)},
		record.Released:  {cell: record.Cell{Available: 10}},
		record.Expired:   {cell: record.Cell{Available: 10}},
		record.Unbacked:  {cell: record.Cell{Available: 10}},
		record.Tombstone: {cell: record.Cell{Available: 10}},
	} {
		totals := record.NewTotals()
		totals.AddStock([]record.CellUnits{{Cell: "a", Units: 10}})
		one := r
		one.State = state
		if want.returns > 0 {
			one.Returned = []record.CellUnits{{Cell: "a", Units: want.returns}}
		}
		totals.Count(&one, 1)
		cell := *totals.Cell("a")
		cell.Balance()
		want.cell.Stock = 10
		if cell != want.cell || !maps.Equal(totals.Limits, want.limits) || !maps.Equal(totals.Unpaid, want.unpaid) {
			t.Errorf("%s: %+v, %v, %v", state, cell, totals.Limits, totals.Unpaid)
		}
		totals.Count(&one, -1)
		if cell = *totals.Cell("a"); cell != (record.Cell{Stock: 10}) || len(totals.Limits)+len(totals.Unpaid) > 0 {
			t.Errorf("%s taken off: %+v, %v, %v", state, cell, totals.Limits, totals.Unpaid)
		}
	}
	over := record.NewTotals()
	over.Now = time.UnixMilli(100)
	r.State = record.Held
	if over.Count(&r, 1); len(over.Limits) != 1 || over.Limits["units|-|ann"].Charged != 4 {
		t.Errorf("with a window that is over the limits are %v", over.Limits)
	}
}

package stampede

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// Journal is what the movements of a sale say: its stock and its reservations.
type Journal struct {
	// Missing is how many movements before the first one are not known.
	Missing int64
	// Before is the number of the last movement before the crowd came: it did not make the
	// reservations that began until then. Set it before Add.
	Before int64

	cells   map[string]ledger.Cell
	records map[string]*record.Record
	older   map[string]bool // reservations that began until Before
}

// Add takes the next movements.
func (j *Journal) Add(movements []journal.Movement) error {
	changes, err := ledger.Fold(movements)
	if err != nil {
		return err
	}
	if j.cells == nil {
		j.cells, j.records = map[string]ledger.Cell{}, map[string]*record.Record{}
		j.older = map[string]bool{}
	}
	for i := range movements {
		if m := &movements[i]; m.Kind == string(record.Held) && m.Seq <= j.Before {
			j.older[m.ID] = true
		}
	}
	for _, c := range changes.Cells {
		sum := j.cells[c.Name]
		j.cells[c.Name] = ledger.Cell{
			Name: c.Name, Stock: sum.Stock + c.Stock, Available: sum.Available + c.Available,
			Held: sum.Held + c.Held, InDoubt: sum.InDoubt + c.InDoubt, Confirmed: sum.Confirmed + c.Confirmed,
		}
	}
	for _, r := range changes.Whole {
		j.records[r.ID] = &r.Record
	}
	for _, m := range changes.Moved {
		if r := j.records[m.ID]; r != nil { // otherwise it began before the first movement
			r.State = m.State
		}
	}
	return nil
}

// whole reports whether the journal is known from its beginning.
func (j *Journal) whole() bool { return j != nil && j.Missing == 0 }

// isOlder reports whether a reservation is known to have begun before the crowd came.
func (j *Journal) isOlder(id string) bool { return j != nil && j.older[id] }

// fill adds the reservations.
func (j *Journal) fill(into map[string]reservation.Record) {
	for id, r := range j.records {
		into[id] = reservation.Record{ID: id, State: r.State, Lines: lines(r.Lines), Returned: lines(r.Returned), Buyer: r.Buyer, Ref: r.Ref}
	}
}

func lines(units []record.CellUnits) []sale.Line {
	out := make([]sale.Line, len(units))
	for i, l := range units {
		sku, region, _ := strings.Cut(l.Cell, "@")
		out[i] = sale.Line{SKU: sku, Region: region, Quantity: l.Units}
	}
	return out
}

// journalAgrees: the movements lead to the stock that the sale has.
func (o *oracle) journalAgrees() {
	if !o.Journal.whole() {
		return
	}
	names := o.names()
	for name := range o.Journal.cells {
		if _, known := o.cells[name]; !known {
			names = append(names, name)
		}
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		says, c := o.Journal.cells[name], o.cells[name]
		has := ledger.Cell{Name: says.Name, Stock: c.Stock, Available: c.Available, Held: c.Held, InDoubt: c.InDoubt, Confirmed: c.Confirmed}
		if says != has {
			o.complain("the movements of %s lead to stock %d, available %d, held %d, in doubt %d, confirmed %d; the sale has %d, %d, %d, %d, %d", name,
				says.Stock, says.Available, says.Held, says.InDoubt, says.Confirmed, c.Stock, c.Available, c.Held, c.InDoubt, c.Confirmed)
		}
	}
}

// charges: what the reservations of one identity count in one window is within each limit.
// Returned units give a part back: counters with one are left out.
func (o *oracle) charges() {
	if o.Journal == nil {
		return
	}
	sums, skip := map[string]int64{}, map[string]bool{}
	for _, r := range o.Journal.records {
		words := strings.Fields(r.Charges)
		for i := 0; i+1 < len(words); i += 2 {
			amount, err := strconv.ParseInt(words[i+1], 10, 64)
			skip[words[i]] = skip[words[i]] || err != nil || len(r.Returned) > 0
			switch r.State {
			case record.Held, record.InDoubt, record.Confirmed:
				sums[words[i]] += amount
			}
		}
	}
	for _, limit := range o.Stock.Limits {
		for _, counter := range slices.Sorted(maps.Keys(sums)) {
			if strings.HasPrefix(counter, limit.ID()+"|") && sums[counter] > limit.Max && !skip[counter] {
				o.complain("the reservations of one identity count %d, and the limit is %d %s", sums[counter], limit.Max, limit)
			}
		}
	}
}

package stampede_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/stampede"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// A sale of nine units of a, with one reservation r of two. What came back of it, and what the
// shop sold beyond it, are in the books; the shop's list has the order as it was, or as it is now.
func TestOrdersThatChanged(t *testing.T) {
	for _, c := range []struct {
		name           string
		returned, more int64
		moreState      record.State
		confirmed      int64 // in the books
		order          int64 // what the shop says; 0: the reservation's id alone; -1: it lists no such order
		broken, says   string
	}{
		{name: "one returned, as it was", returned: 1, confirmed: 1, order: 2},
		{name: "one returned, as it is", returned: 1, confirmed: 1, order: 1},
		{name: "one returned, the id alone", returned: 1, confirmed: 1, order: 0},
		{name: "one returned, for too many", returned: 1, confirmed: 1, order: 3, broken: stampede.NoOversell, says: "order o is for 3 × a, and its reservation r for 2 × a, of which 1 × a came back"},
		{name: "one returned, and not in the books", returned: 1, confirmed: 2, order: 2, broken: stampede.NothingLost, says: "1 units of a are confirmed without an order"},
		{name: "one returned, twice in the books", returned: 1, confirmed: 0, order: 1, broken: stampede.NothingLost, says: "the shop has orders for 1 confirmed units of a, the sale has 0"},
		{name: "all returned, as it was", returned: 2, confirmed: 0, order: 2},
		{name: "all returned, the id alone", returned: 2, confirmed: 0, order: 0},
		{name: "all returned, gone from the list", returned: 2, confirmed: 0, order: -1},
		{name: "none returned, gone from the list", confirmed: 2, order: -1, broken: stampede.YesIsAnOrder, says: "the shop has no such order"},
		{name: "none returned, for fewer", confirmed: 2, order: 1, broken: stampede.NoOversell, says: "order o is for 1 × a, and its reservation r for 2 × a"},
		{name: "one more sold", more: 1, moreState: record.Confirmed, confirmed: 3, order: 3},
		{name: "one more sold, the id alone", more: 1, moreState: record.Confirmed, confirmed: 3, order: 0},
		{name: "one more sold, for two more", more: 1, moreState: record.Confirmed, confirmed: 3, order: 4, broken: stampede.NoOversell, says: "and its reservation r for 2 × a + 1 × a"},
		{name: "one more sold, and not in the order", more: 1, moreState: record.Confirmed, confirmed: 3, order: 2, broken: stampede.NothingLost, says: "1 units of a are confirmed without an order"},
		{name: "one more, and one returned", returned: 1, more: 1, moreState: record.Confirmed, confirmed: 2, order: 2},
		{name: "one more sold, unbacked", more: 1, moreState: record.Unbacked, confirmed: 2, order: 3, broken: stampede.NoOversell, says: "is unbacked: its units may be sold again"},
		{name: "one more sold, and released", more: 1, moreState: record.Released, confirmed: 2, order: 3},
		{name: "one more sold, and released, as it is", more: 1, moreState: record.Released, confirmed: 2, order: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			more := reservation.MoreOf("r")
			records := map[string]*reservation.Record{"r": {ID: "r", Sale: "s", State: record.Confirmed, Lines: line("a", 2)}}
			if c.returned > 0 {
				records["r"].Returned = line("a", c.returned)
			}
			if c.more > 0 {
				records[more] = &reservation.Record{ID: more, Sale: "s", State: c.moreState, Lines: line("a", c.more)}
			}
			orders := []stampede.Order{{OrderNo: "o", Reservation: "r", Buyer: "p"}}
			if c.order > 0 {
				orders[0].Lines = line("a", c.order)
			}
			if c.order < 0 {
				orders = nil
			}
			stock := &reservation.SaleStock{ID: "s", Balanced: true, Items: []record.Cell{{SKU: "a", Stock: 9, Available: 9 - c.confirmed, Confirmed: c.confirmed}}}
			e, err := stampede.Sources{
				Stock:  func(context.Context) (*reservation.SaleStock, error) { return stock, nil },
				Orders: func(context.Context) ([]stampede.Order, error) { return orders, nil },
				Record: func(_ context.Context, id string) (*reservation.Record, error) {
					if r := records[id]; r != nil {
						return r, nil
					}
					return nil, reservation.ErrNotFound
				},
			}.Collect(t.Context(), &stampede.Tally{Requests: 1, Answers: []stampede.Answer{{Buyer: "p", Lines: line("a", 2), Status: 201, Reservation: "r", Accepted: true}}})
			if err != nil {
				t.Fatal(err)
			}
			v := stampede.Check(e, stampede.Tolerance{})
			all := strings.Join(v.Violations, "\n")
			if c.broken == "" && all != "" || c.broken != "" && (states(v)[c.broken] != stampede.Broken || !strings.Contains(all, c.says)) {
				t.Errorf("%q, it should say %q", all, c.says)
			}
		})
	}
}

// A unit that came back and was sold to another buyer is sold once, though the first order still
// has it; and a buyer who returned one may buy again.
func TestReturnedUnitsAreSoldAgain(t *testing.T) {
	e := honest()
	r := e.Records["r1"]
	r.Returned = r.Lines
	e.Records["r1"] = r
	e.Records["r6"] = reservation.Record{ID: "r6", Sale: "s", State: record.Confirmed, Lines: line("a", 1)}
	e.Orders = append(e.Orders, stampede.Order{OrderNo: "o6", Reservation: "r6", Buyer: "p1", Lines: line("a", 1)})
	if v := stampede.Check(e, stampede.Tolerance{}); len(v.Violations) != 0 || v.Ordered != 5 {
		t.Errorf("%d ordered: %q", v.Ordered, v.Violations)
	}
}

// What the journal says came back, and what was sold beyond a hold, counts as what is read singly.
func TestJournalTellsWhatChanged(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	units := func(n int64) []record.CellUnits { return []record.CellUnits{{Cell: "a", Units: n}} }
	whole := func(state record.State, lines, returned []record.CellUnits) *record.Record {
		return &record.Record{State: state, Created: at, Changed: at, Deadline: at, Exp: at, Mode: record.ModeResponse, Buyer: "h", Lines: lines, Returned: returned}
	}
	more := reservation.MoreOf("r2")
	j := new(stampede.Journal)
	err := j.Add([]journal.Movement{
		{Seq: 1, Kind: "loaded", Time: at, ID: "1", Lines: units(9)},
		{Seq: 2, Kind: "held", Time: at, ID: "r1", Buyer: "h", Lines: units(2), Record: whole(record.Held, units(2), nil)},
		{Seq: 3, Kind: "confirmed", Time: at, ID: "r1", Was: record.Held, Buyer: "h", Lines: units(2)},
		{Seq: 4, Kind: "returned", Time: at, ID: "r1", Buyer: "h", Lines: units(1), Record: whole(record.Confirmed, units(2), units(1))},
		{Seq: 5, Kind: "held", Time: at, ID: "r2", Buyer: "h", Lines: units(2), Record: whole(record.Held, units(2), nil)},
		{Seq: 6, Kind: "confirmed", Time: at, ID: "r2", Was: record.Held, Buyer: "h", Lines: units(2)},
		{Seq: 7, Kind: "recreated", Time: at, ID: more, Buyer: "h", Lines: units(1), Record: whole(record.Confirmed, units(1), nil)},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, lines := range map[string][2][]sale.Line{
		"ids alone": {}, "as they were": {line("a", 2), line("a", 3)}, "as they are": {line("a", 1), line("a", 3)},
	} {
		e, err := stampede.Sources{
			Stock: func(context.Context) (*reservation.SaleStock, error) {
				return &reservation.SaleStock{ID: "s", Balanced: true, Items: []record.Cell{{SKU: "a", Stock: 9, Available: 5, Confirmed: 4}}}, nil
			},
			Journal: func(context.Context) (*stampede.Journal, error) { return j, nil },
			Orders: func(context.Context) ([]stampede.Order, error) {
				return []stampede.Order{{OrderNo: "o1", Reservation: "r1", Lines: lines[0]}, {OrderNo: "o2", Reservation: "r2", Lines: lines[1]}}, nil
			},
			Record: func(_ context.Context, id string) (*reservation.Record, error) {
				t.Errorf("%s: %s is read, and the journal is whole", name, id)
				return nil, reservation.ErrNotFound
			},
		}.Collect(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if v := stampede.Check(e, stampede.Tolerance{}); len(v.Violations) != 0 {
			t.Errorf("%s: %q", name, v.Violations)
		}
	}
}

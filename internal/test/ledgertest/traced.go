package ledgertest

import (
	"slices"
	"testing"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/record"
)

// traced: a person is found by the buyer of a reservation, by what it is charged to and by the counters of unpaid
// holds that it is in, in archived sales too; and not by a hash that is a part of another one.
func traced(t *testing.T, open func() ledger.Ledger) {
	l := ready(t, open)
	line := []record.CellUnits{{Cell: "a", Units: 1}}
	held := func(seq int64, id, buyer, charges, unpaid string) journal.Movement {
		return journal.Movement{Seq: seq, Kind: "held", ID: id, Buyer: buyer, Lines: line, Record: &record.Record{State: record.Held, Buyer: buyer, Lines: line, Charges: charges, Unpaid: unpaid}}
	}
	for _, sale := range []string{"s", "t"} {
		claim(t, l, sale, "A")
		all := []journal.Movement{
			{Seq: 1, Kind: "loaded", ID: "file", Lines: []record.CellUnits{{Cell: "a", Units: 9}}},
			held(2, "r1", "ann", "buyer:sale:units|-|ann 1 phone:day:units|5|123 1", "phone|123"),
			held(3, "r2", "bob", "buyer:sale:units|-|bob 1", "phone|123"),
			held(4, "r3", "anne", "", ""),
			{Seq: 5, Kind: "confirmed", ID: "r1", Was: record.Held, Buyer: "ann", Lines: line},
		}
		if err := l.Append(Soon(t), sale, "A", &ledger.Batch{Epoch: 1, Movements: all}); err != nil {
			t.Fatal(err)
		}
	}
	at := ledger.Position{Epoch: 1, Seq: 5}
	if err := l.Archive(Soon(t), "t", "A", ledger.Position{Epoch: 1, Seq: 4}, "t@1"); err != nil {
		t.Fatal(err)
	}
	if now, err := l.Position(Soon(t), "t"); now != at || err != nil {
		t.Errorf("archived at an earlier position, the sale is at %+v, want %+v: %v", now, at, err)
	}
	if err := l.Archive(Soon(t), "t", "A", at, "t@1"); err != nil {
		t.Fatal(err)
	}
	for hash, want := range map[string][2]int64{"ann": {1, 2}, "bob": {1, 1}, "123": {2, 3}, "anne": {1, 1}, "12": {}, "": {}} {
		rows, err := l.Trace(Soon(t), hash)
		if err != nil {
			t.Fatal(err)
		}
		var wanted []ledger.TracedRows
		if want[0] > 0 {
			wanted = []ledger.TracedRows{{Sale: "s", Reservations: want[0], Movements: want[1]}, {Sale: "t@1", Reservations: want[0], Movements: want[1]}}
		}
		if !slices.Equal(rows, wanted) {
			t.Errorf("%q has %+v, want %+v", hash, rows, wanted)
		}
	}
}

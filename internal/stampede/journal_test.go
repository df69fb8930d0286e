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

// movements sell two units of a to one buyer in two orders, and release a third.
func movements() []journal.Movement {
	at := time.Unix(1_700_000_000, 0)
	limit := sale.Limit{Per: sale.Identities("buyer"), Every: "sale", Max: 2, Count: "units"}
	held := func(seq int64, id string) journal.Movement {
		return journal.Movement{Seq: seq, Kind: "held", Time: at, ID: id, Buyer: "h", Lines: []record.CellUnits{{Cell: "a", Units: 1}},
			Record: &record.Record{State: record.Held, Created: at, Changed: at, Deadline: at, Exp: at, Mode: record.ModeResponse, Buyer: "h",
				Lines: []record.CellUnits{{Cell: "a", Units: 1}}, Charges: limit.ID() + "|-|h 1"}}
	}
	ends := func(seq int64, kind, id string) journal.Movement {
		return journal.Movement{Seq: seq, Kind: kind, Time: at, ID: id, Was: record.Held, Buyer: "h", Lines: []record.CellUnits{{Cell: "a", Units: 1}}}
	}
	return []journal.Movement{
		{Seq: 1, Kind: "loaded", Time: at, ID: "1", Lines: []record.CellUnits{{Cell: "a", Units: 3}}},
		held(2, "r1"), held(3, "r2"), ends(4, "confirmed", "r1"), held(5, "r3"), ends(6, "released", "r3"), ends(7, "confirmed", "r2"),
	}
}

func books(t *testing.T, all []journal.Movement) stampede.Evidence {
	t.Helper()
	j := new(stampede.Journal)
	for len(all) > 0 { // in pages
		n := min(3, len(all))
		if err := j.Add(all[:n]); err != nil {
			t.Fatal(err)
		}
		all = all[n:]
	}
	stock := &reservation.SaleStock{ID: "s", Balanced: true, Items: []record.Cell{{SKU: "a", Stock: 3, Available: 1, Confirmed: 2}},
		Limits: []sale.Limit{{Per: sale.Identities("buyer"), Every: "sale", Max: 2, Count: "units"}}}
	e, err := stampede.Sources{
		Stock:   func(context.Context) (*reservation.SaleStock, error) { return stock, nil },
		Journal: func(context.Context) (*stampede.Journal, error) { return j, nil },
		Record:  func(_ context.Context, id string) (*reservation.Record, error) { return nil, reservation.ErrNotFound },
	}.Collect(t.Context(), &stampede.Tally{Requests: 2, Answers: []stampede.Answer{
		{Status: 201, Reservation: "r1", Accepted: true}, {Status: 201, Reservation: "r2", Accepted: true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// states are the promises of a check, as "promise: state".
func states(v stampede.CheckResult) map[string]string {
	all := map[string]string{}
	for _, p := range v.Promises {
		all[p.Name] = p.State
	}
	return all
}

func TestBooksAlone(t *testing.T) {
	good := stampede.Check(books(t, movements()), stampede.Tolerance{})
	for promise, state := range states(good) {
		if state != stampede.Kept {
			t.Errorf("%s is %s: %v", promise, state, good.Promises)
		}
	}
	if len(good.Promises) != 5 || len(good.Violations) != 0 {
		t.Errorf("%+v", good)
	}
	for name, c := range map[string]struct {
		breaks  func(*stampede.Evidence)
		promise string
		says    string
	}{
		"stock and journal differ": {func(e *stampede.Evidence) { e.Stock.Items[0].Confirmed, e.Stock.Items[0].Available = 1, 2 },
			stampede.JournalAgrees, "the movements of a lead to stock 3, available 1, held 0, in doubt 0, confirmed 2; the sale has 3, 2, 0, 0, 1"},
		"a cell without movements": {func(e *stampede.Evidence) {
			e.Stock.Items = append(e.Stock.Items, record.Cell{SKU: "b", Stock: 1, Available: 1})
		},
			stampede.JournalAgrees, "the movements of b lead to stock 0"},
		"over the limit": {func(e *stampede.Evidence) { e.Stock.Limits[0].Max = 1 },
			stampede.LimitsHold, "the reservations of one identity count 2, and the limit is 1 units per buyer and sale"},
		"a yes for what was released": {func(e *stampede.Evidence) { e.Tally.Answers[0].Reservation = "r3" },
			stampede.YesIsAnOrder, "a buyer was told yes (reservation r3), and the reservation is released: no unit is sold"},
		"a yes for what never was": {func(e *stampede.Evidence) { e.Tally.Answers[0].Reservation = "r9" },
			stampede.YesIsAnOrder, "r9, which does not exist"},
		"a yes past the gate": {func(e *stampede.Evidence) { e.Tally.Answers[0].Reservation = "" },
			stampede.YesIsAnOrder, "a buyer was told yes without a reservation"},
		"oversold": {func(e *stampede.Evidence) { e.Stock.Items[0].Stock, e.Stock.Items[0].Available = 1, -1 },
			stampede.NoOversell, "oversold in Redis"},
		"a missing unit": {func(e *stampede.Evidence) { e.Stock.Items[0].Stock = 4 },
			stampede.NothingLost, "the cells of a do not balance"},
	} {
		e := books(t, movements())
		c.breaks(&e)
		v := stampede.Check(e, stampede.Tolerance{})
		if got := states(v)[c.promise]; got != stampede.Broken || !strings.Contains(strings.Join(v.Violations, "\n"), c.says) {
			t.Errorf("%s: %s is %s: %q", name, c.promise, got, v.Violations)
		}
	}
}

// A promise is not called kept where nothing shows it.
func TestWhatIsUncheckedSaysSo(t *testing.T) {
	e := books(t, movements())
	e.Tally, e.Journal.Missing = nil, 2
	v := stampede.Check(e, stampede.Tolerance{})
	got := states(v)
	for _, promise := range []string{stampede.YesIsAnOrder, stampede.LimitsHold, stampede.JournalAgrees} {
		if got[promise] != stampede.Unchecked {
			t.Errorf("%s is %s", promise, got[promise])
		}
	}
	if v.Promises[4].Why == "" || got[stampede.NoOversell] != stampede.Kept {
		t.Errorf("%+v", v.Promises)
	}
}

func TestOrdersAgainstTheJournal(t *testing.T) {
	e := books(t, movements())
	e.NoOrders, e.Nameless = false, true
	e.Orders = []stampede.Order{{OrderNo: "o1", Reservation: "r1", Buyer: "x", Lines: line("a", 1)}, {OrderNo: "o3", Reservation: "r3", Lines: line("a", 1)}}
	v := stampede.Check(e, stampede.Tolerance{InDoubt: true, Held: true})
	text := strings.Join(v.Violations, "\n")
	for _, says := range []string{"order o3 is for the reservation r3, which is released: its units may be sold again", "reservation r2), and the shop has no such order", "1 units of a are confirmed without an order"} {
		if !strings.Contains(text, says) {
			t.Errorf("expected %q in:\n%s", says, text)
		}
	}
	if strings.Contains(text, "the order is that of") {
		t.Errorf("names are compared that are not known:\n%s", text)
	}
}

// A buyer of an earlier rehearsal who is refused now has that order.
func TestOrdersOfBeforeTheCrowd(t *testing.T) {
	for before, broken := range map[int64]bool{0: true, 1: true, 2: false} {
		j := &stampede.Journal{Before: before}
		if err := j.Add(movements()); err != nil {
			t.Fatal(err)
		}
		e := books(t, movements())
		e.Journal, e.NoOrders = j, false
		e.Orders = []stampede.Order{{OrderNo: "o1", Reservation: "r1", Buyer: "ann", Lines: line("a", 1)}, {OrderNo: "o2", Reservation: "r2", Buyer: "bob", Lines: line("a", 1)}}
		e.Tally = &stampede.Tally{TurnedAway: map[string]bool{"ann": true}}
		v := stampede.Check(e, stampede.Tolerance{})
		if got := strings.Contains(strings.Join(v.Violations, "\n"), "the gate refused ann every time, and yet they have the order o1"); got != broken {
			t.Errorf("before %d: %q", before, v.Violations)
		}
	}
}

package stampede_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/stampede"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

func line(cell string, quantity int64) []sale.Line {
	sku, region, _ := strings.Cut(cell, "@")
	return []sale.Line{{SKU: sku, Quantity: quantity, Region: region}}
}

// honest is a sale of three units of a and two of b in the north, all of which
// are sold to five buyers, while a sixth was refused.
func honest() stampede.Evidence {
	e := stampede.Evidence{
		Stock: reservation.SaleStock{
			ID: "s", Balanced: true,
			Items: []record.Cell{
				{SKU: "a", Stock: 3, Confirmed: 3},
				{SKU: "b", Region: "north", Stock: 2, Confirmed: 2},
			},
		},
		Records:     map[string]reservation.Record{},
		Tally:       &stampede.Tally{Requests: 6, Accepted: 5, TurnedAway: map[string]bool{"p6": true}, SoldOut: []stampede.Basket{stampede.Buy("a", 1)}},
		MaxPerBuyer: 1,
		MustSell:    5,
	}
	for i, cell := range []string{"a", "a", "a", "b@north", "b@north"} {
		n, lines := i+1, line(cell, 1)
		id := fmt.Sprintf("r%d", n)
		buyer := fmt.Sprintf("p%d", n)
		e.Orders = append(e.Orders, stampede.Order{OrderNo: fmt.Sprintf("o%d", n), Reservation: id, Buyer: buyer, Lines: lines})
		e.Records[id] = reservation.Record{ID: id, Sale: "s", State: record.Confirmed, Lines: lines}
		e.Tally.Answers = append(e.Tally.Answers, stampede.Answer{Buyer: buyer, Lines: lines, Status: 201, Reservation: id, Accepted: true})
	}
	// another buyer's order, of another sale
	e.Orders = append(e.Orders, stampede.Order{OrderNo: "o9", Reservation: "r9", Buyer: "p6", Lines: line("z", 5)})
	return e
}

func TestHonestPartiesAgree(t *testing.T) {
	v := stampede.Check(honest(), stampede.Tolerance{})
	if len(v.Violations) != 0 {
		t.Errorf("violations of an honest sale: %q", v.Violations)
	}
	if v.Ordered != 5 || v.Stock != 5 || v.Oversold != 0 {
		t.Errorf("ordered %d, stock %d, oversold %d; expected 5, 5, 0", v.Ordered, v.Stock, v.Oversold)
	}
}

// Orders and answers may name bundles; reservations and the stock have their components.
func TestOrdersOfBundles(t *testing.T) {
	bundled := func(reserved int64) stampede.Evidence {
		e := honest()
		e.MaxPerBuyer, e.MustSell = 0, 0
		e.Stock.Items[0] = record.Cell{SKU: "a", Stock: 8, Confirmed: 2 + reserved, Available: 6 - reserved}
		e.Stock.Bundles = []reservation.BundleStock{{SKU: "six", Components: line("a", 6)}, {SKU: "pair", Region: "north", Components: line("b@north", 2)}}
		e.Orders[0].Lines = line("six", 1)
		e.Tally.Answers[0].Lines = line("six", 1)
		r := e.Records["r1"]
		r.Lines = line("a", reserved)
		e.Records["r1"] = r
		return e
	}
	if v := stampede.Check(bundled(6), stampede.Tolerance{}); len(v.Violations) != 0 || v.Ordered != 10 {
		t.Errorf("%d units are ordered, violations %q", v.Ordered, v.Violations)
	}
	v := stampede.Check(bundled(5), stampede.Tolerance{})
	if all := strings.Join(v.Violations, "; "); !strings.Contains(all, "order o1 is for 1 × six, and its reservation r1 for 5 × a") {
		t.Errorf("a bundle without a unit: %s", all)
	}
}

func setState(e *stampede.Evidence, id string, state record.State) {
	r := e.Records[id]
	r.State = state
	e.Records[id] = r
}

// TestEveryViolationIsFound breaks one thing at a time.
func TestEveryViolationIsFound(t *testing.T) {
	for name, test := range map[string]struct {
		breaks   func(*stampede.Evidence)
		says     string
		oversold int64
	}{
		"oversold in the shop": {func(e *stampede.Evidence) {
			e.Orders = append(e.Orders, stampede.Order{OrderNo: "o7", Reservation: "r7", Buyer: "p7", Lines: line("a", 2)})
			e.Records["r7"] = reservation.Record{ID: "r7", State: record.Confirmed, Lines: line("a", 2)}
		}, "oversold in the shop: 5 units of a are ordered, and there are 3", 2},
		"oversold in Redis": {func(e *stampede.Evidence) {
			e.Stock.Items[0].Confirmed, e.Stock.Items[0].Available = 4, -1
		}, "oversold in Redis: 4 units of a", 1},
		"oversold by what is held": {func(e *stampede.Evidence) {
			e.Stock.Items[1].Held = 3
		}, "oversold in Redis: 5 units of b@north", 3},
		"one region sells the other's units": {func(e *stampede.Evidence) {
			e.Stock.Items = append(e.Stock.Items, record.Cell{SKU: "b", Region: "south", Stock: 5, Available: 5})
			e.Orders[0].Lines = line("b@north", 1)
		}, "oversold in the shop: 3 units of b@north are ordered, and there are 2", 1},
		"an order past the gate": {func(e *stampede.Evidence) {
			e.Orders[1].Reservation = ""
		}, "order o2 has no reservation", 0},
		"two orders for one reservation": {func(e *stampede.Evidence) {
			e.Orders[1].Reservation = "r1"
		}, "orders o1 and o2 are for one reservation, r1", 0},
		"an order for a reservation that never was": {func(e *stampede.Evidence) {
			delete(e.Records, "r1")
		}, "order o1 is for the reservation r1, which does not exist", 0},
		"an order whose units went back": {func(e *stampede.Evidence) {
			setState(e, "r1", record.Released)
		}, "order o1 is for the reservation r1, which is released", 0},
		"an order without stock": {func(e *stampede.Evidence) {
			e.Stock.Unbacked = 1
		}, "the shop took 1 orders whose units had gone elsewhere", 0},
		"an order for more than was reserved": {func(e *stampede.Evidence) {
			e.Orders[0].Lines = line("a", 2)
		}, "order o1 is for 2 × a, and its reservation r1 for 1 × a", 1},
		"a lost order": {func(e *stampede.Evidence) {
			e.Orders = e.Orders[1:]
		}, "p1 was told yes (reservation r1), and the shop has no such order", 0},
		"a phantom confirm": {func(e *stampede.Evidence) {
			e.Orders, e.Tally.Answers = e.Orders[1:], e.Tally.Answers[1:]
		}, "1 units of a are confirmed without an order: the sale says 3, the shop's orders 2", 0},
		"an order that the sale does not have": {func(e *stampede.Evidence) {
			e.Stock.Items[0].Confirmed, e.Stock.Items[0].Available = 2, 1
		}, "the shop has orders for 3 confirmed units of a, the sale has 2", 0},
		"a yes without a reservation": {func(e *stampede.Evidence) {
			e.Tally.Answers[0].Reservation = ""
		}, "p1 was told yes without a reservation", 0},
		"another's order": {func(e *stampede.Evidence) {
			e.Orders[0].Buyer = "p8"
		}, "p1 was told yes with the reservation r1, and the order is that of p8", 0},
		"a yes for something else": {func(e *stampede.Evidence) {
			e.Tally.Answers[0].Lines = line("a", 2)
		}, "p1 was told yes for 2 × a, and the order is for 1 × a", 0},
		"an order of a buyer who was refused": {func(e *stampede.Evidence) {
			e.Tally.TurnedAway["p1"] = true
		}, "the gate refused p1 every time, and yet they have the order o1", 0},
		"held at the end": {func(e *stampede.Evidence) {
			e.Stock.Items[0].Stock, e.Stock.Items[0].Held = 4, 1
		}, "1 units of a are still held", 0},
		"in doubt without a reason": {func(e *stampede.Evidence) {
			e.Stock.Items[0].Confirmed, e.Stock.Items[0].InDoubt = 2, 1
			setState(e, "r1", record.InDoubt)
		}, "1 units of a are in doubt", 0},
		"an order in doubt that the sale does not have": {func(e *stampede.Evidence) {
			setState(e, "r1", record.InDoubt)
		}, "the shop has orders for 1 units of a in doubt, the sale has 0", 0},
		"unbalanced": {func(e *stampede.Evidence) {
			e.Stock.Items[0].Stock = 4
		}, "the cells of a do not balance: stock 4, available 0, held 0, in doubt 0, confirmed 3", 0},
		"unbalanced by their own word": {func(e *stampede.Evidence) {
			e.Stock.Balanced = false
		}, "the admin API says that the sale does not balance", 0},
		"a sale without items": {func(e *stampede.Evidence) {
			e.Stock.Items = nil
		}, "lists no items", 0},
		"sold out with units left": {func(e *stampede.Evidence) {
			e.Stock.Items[0].Stock, e.Stock.Items[0].Available = 4, 1
		}, "a buyer was told that 1 × a is sold out, and it is available at the end", 0},
		"units left behind": {func(e *stampede.Evidence) {
			e.MustSell = 6
		}, "5 units are sold, and 6 were wanted and in stock", 0},
		"more than a buyer may have": {func(e *stampede.Evidence) {
			e.Orders[1].Buyer, e.Tally.Answers[1].Buyer = "p1", "p1"
		}, "p1 has 2 units, and one buyer may have 1", 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := honest()
			test.breaks(&e)
			v := stampede.Check(e, stampede.Tolerance{})
			if !strings.Contains(strings.Join(v.Violations, "\n"), test.says) {
				t.Errorf("expected %q among %q", test.says, v.Violations)
			}
			if v.Oversold != test.oversold {
				t.Errorf("oversold by %d, expected %d", v.Oversold, test.oversold)
			}
		})
	}
}

func TestToleranceForgivesOnlyWhatItNames(t *testing.T) {
	doubt := honest()
	doubt.Stock.Items[0].Confirmed, doubt.Stock.Items[0].InDoubt = 2, 1
	setState(&doubt, "r1", record.InDoubt)
	doubt.Tally.Answers = doubt.Tally.Answers[1:] // they got an error
	phantom := honest()
	phantom.Orders, phantom.Tally.Answers, phantom.MustSell = phantom.Orders[1:], phantom.Tally.Answers[1:], 4
	for _, test := range []struct {
		name     string
		evidence stampede.Evidence
		may      stampede.Tolerance
		forgiven bool
	}{
		{"doubt", doubt, stampede.Tolerance{}, false},
		{"doubt", doubt, stampede.Tolerance{Phantom: true}, false},
		{"doubt", doubt, stampede.Tolerance{InDoubt: true}, true},
		{"phantom", phantom, stampede.Tolerance{}, false},
		{"phantom", phantom, stampede.Tolerance{InDoubt: true}, false},
		{"phantom", phantom, stampede.Tolerance{Phantom: true}, true},
	} {
		if v := stampede.Check(test.evidence, test.may); (len(v.Violations) == 0) != test.forgiven {
			t.Errorf("%s with %+v: %q", test.name, test.may, v.Violations)
		}
	}
}

// TestSoldOutInOneLineIsEnough: an order of several lines is sold out when one is.
func TestSoldOutInOneLineIsEnough(t *testing.T) {
	e := honest()
	e.Stock.Items = append(e.Stock.Items, record.Cell{SKU: "c", Stock: 9, Available: 9})
	e.Tally.SoldOut = []stampede.Basket{{Lines: append(line("a", 1), line("c", 1)...)}, stampede.Buy("z", 1)}
	if v := stampede.Check(e, stampede.Tolerance{}); len(v.Violations) != 0 {
		t.Errorf("violations: %q", v.Violations)
	}
}

func TestManyViolationsAreSummedUp(t *testing.T) {
	e := honest()
	e.Stock.Items[0].Stock = 1000
	for i := range 500 {
		e.Orders = append(e.Orders, stampede.Order{OrderNo: fmt.Sprint("x", i), Buyer: fmt.Sprint("x", i), Lines: line("a", 1)})
	}
	v := stampede.Check(e, stampede.Tolerance{})
	if text := strings.Join(v.Violations, "\n"); len(v.Violations) > 20 || !strings.Contains(text, "… and 495 more") {
		t.Errorf("%d violations:\n%s", len(v.Violations), text)
	}
}

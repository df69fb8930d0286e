package reservation_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

func units(sku string, n int64) sale.Line { return sale.Line{SKU: sku, Quantity: n} }

func north(n int64) sale.Line { return sale.Line{SKU: "b", Region: "north", Quantity: n} }

// Returns come in parts, once each, and never more than was confirmed.
func TestReturns(t *testing.T) {
	type step struct {
		id    string
		lines []sale.Line
		keep  bool // the units do not go back on sale
		want  []sale.Line
		err   error
		cell  [5]int64 // of "a": stock, available, held, in doubt, confirmed
	}
	tooMany := func(line sale.Line, left int64) error { return &reservation.TooManyError{Line: line, Left: left} }
	tests := map[string][]step{
		"in parts": {
			{id: "1", lines: []sale.Line{units("a", 1)}, want: []sale.Line{units("a", 1)}, cell: [5]int64{9, 7, 0, 0, 2}},
			{id: "2", lines: []sale.Line{units("a", 1), north(1)}, want: []sale.Line{units("a", 2), north(1)}, cell: [5]int64{9, 8, 0, 0, 1}},
			{id: "3", want: []sale.Line{units("a", 3), north(2)}, cell: [5]int64{9, 9, 0, 0, 0}},
			{id: "4", err: tooMany(sale.Line{}, 0), cell: [5]int64{9, 9, 0, 0, 0}},
			{id: "5", lines: []sale.Line{units("a", 1)}, err: tooMany(units("a", 1), 0), cell: [5]int64{9, 9, 0, 0, 0}},
		},
		"the same again": {
			{id: "1", lines: []sale.Line{units("a", 1), north(1)}, want: []sale.Line{units("a", 1), north(1)}, cell: [5]int64{9, 7, 0, 0, 2}},
			{id: "2", lines: []sale.Line{units("a", 1)}, want: []sale.Line{units("a", 2), north(1)}, cell: [5]int64{9, 8, 0, 0, 1}},
			{id: "1", lines: []sale.Line{north(1), units("a", 1)}, want: []sale.Line{units("a", 1), north(1)}, cell: [5]int64{9, 8, 0, 0, 1}},
			{id: "1", lines: []sale.Line{units("a", 1)}, err: reservation.ErrReused, cell: [5]int64{9, 8, 0, 0, 1}},
			{id: "1", err: reservation.ErrReused, cell: [5]int64{9, 8, 0, 0, 1}},
			{id: "2", lines: []sale.Line{units("a", 1)}, keep: true, err: reservation.ErrReused, cell: [5]int64{9, 8, 0, 0, 1}},
			{id: "3", want: []sale.Line{units("a", 3), north(2)}, cell: [5]int64{9, 9, 0, 0, 0}},
			{id: "3", want: []sale.Line{units("a", 3), north(2)}, cell: [5]int64{9, 9, 0, 0, 0}},
		},
		"more than there is": {
			{id: "1", lines: []sale.Line{north(1), units("a", 4)}, err: tooMany(units("a", 4), 3), cell: [5]int64{9, 6, 0, 0, 3}},
			{id: "1", lines: []sale.Line{units("a", 2), units("a", 2)}, err: tooMany(units("a", 2), 3), cell: [5]int64{9, 6, 0, 0, 3}},
			{id: "1", lines: []sale.Line{units("nothing", 1)}, err: tooMany(units("nothing", 1), 0), cell: [5]int64{9, 6, 0, 0, 3}},
			// a refusal is not recorded
			{id: "1", lines: []sale.Line{units("a", 2), units("a", 1)}, want: []sale.Line{units("a", 3)}, cell: [5]int64{9, 9, 0, 0, 0}},
		},
		"units that are spoilt": {
			{id: "1", lines: []sale.Line{units("a", 2)}, keep: true, want: []sale.Line{units("a", 2)}, cell: [5]int64{7, 6, 0, 0, 1}},
			{id: "1", lines: []sale.Line{units("a", 2)}, keep: true, want: []sale.Line{units("a", 2)}, cell: [5]int64{7, 6, 0, 0, 1}},
			{id: "2", want: []sale.Line{units("a", 3), north(2)}, cell: [5]int64{7, 7, 0, 0, 0}},
		},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			eachClock(t, 9, func(t *testing.T, c *clocked) {
				c.reserve("r1", ofLines(units("a", 3), north(2)), withRef("order-1"))
				c.must("confirmed")(c.Confirm(stocktest.Soon(t), "s", "r1", reservation.SourceAnswer, ""))
				for i, s := range steps {
					got, err := c.Return(stocktest.Soon(t), "s", "r1", reservation.Return{ID: s.id, Restock: !s.keep, Lines: s.lines, Cause: "why"})
					if fmt.Sprint(err) != fmt.Sprint(s.err) {
						t.Fatalf("step %d: the error is %v, want %v", i+1, err, s.err)
					}
					if err == nil && !slices.Equal(got, s.want) {
						t.Errorf("step %d: returned are %v, want %v", i+1, got, s.want)
					}
					if cell := c.cell(); cell != s.cell {
						t.Errorf("step %d: the units are %v, want %v", i+1, cell, s.cell)
					}
					stocktest.Balanced(t, c.server.client, c.Store, "s")
				}
				if r, err := c.Reservation(stocktest.Soon(t), "r1"); err != nil || r.State != record.Confirmed || len(r.Lines) != 2 || r.Cause != "" {
					t.Errorf("the record is %+v, %v", r, err)
				}
				if b := c.bound("r2", withRef("order-1")); b == nil || b.State != record.Confirmed {
					t.Errorf("its ref belongs to %v", b)
				}
			})
		})
	}
}

// What came back costs nothing any more: of a limit on units as many, of one on
// orders when nothing is left of what it concerns.
// An item that got all of its units back is taken off sale. The rest of the orders that had it can
// still come back.
func TestReturnOfTheRestWithoutAnItem(t *testing.T) {
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		c.reserve("r1", ofLines(units("a", 1), north(1)))
		c.must("confirmed")(c.Confirm(stocktest.Soon(t), "s", "r1", reservation.SourceShop, ""))
		if _, err := c.Return(stocktest.Soon(t), "s", "r1", reservation.Return{ID: "1", Restock: true, Lines: []sale.Line{units("a", 1)}}); err != nil {
			t.Fatal(err)
		}
		file := stocktest.OpenSale("s", 9)
		file.Items = slices.DeleteFunc(file.Items, func(i sale.Item) bool { return i.SKU == "a" })
		if _, err := c.Apply(stocktest.Soon(t), file, reservation.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
		back, err := c.Return(stocktest.Soon(t), "s", "r1", reservation.Return{ID: "2", Restock: true})
		if want := []sale.Line{units("a", 1), north(1)}; err != nil || !slices.Equal(back, want) {
			t.Errorf("all that was returned is %v, %v, want %v", back, err, want)
		}
		stocktest.Balanced(t, c.server.client, c.Store, "s")
	})
}

func TestReturnsGiveLimitsBack(t *testing.T) {
	// as reservations are charged: limit|window|identity
	charges := map[string]int64{
		"buyer:sale:units|-|x": 7, "buyer:sale:units:c|-|x": 1, "buyer:sale:orders|-|x": 1, "buyer:sale:units:a|-|x": 2, "buyer:day:orders:a|9999999999999|x": 1,
		"buyer:sale:units:b|-|x": 3, "buyer:sale:orders:b|-|x": 1, "buyer+phone:sale:units:c%40d|-|x": 1, "phone:sale:orders:c%40d|-|x": 1,
		"unknown|-|x": 5,
	}
	steps := []struct {
		lines []sale.Line
		left  map[string]string // how the counters are; missing: they are gone
	}{
		{[]sale.Line{north(1)}, map[string]string{
			"buyer:sale:units|-|x": "6 0", "buyer:sale:units:c|-|x": "1 0", "buyer:sale:orders|-|x": "1 0", "buyer:sale:units:a|-|x": "2 0", "buyer:day:orders:a|9999999999999|x": "1 0",
			"buyer:sale:units:b|-|x": "2 0", "buyer:sale:orders:b|-|x": "1 0", "buyer+phone:sale:units:c%40d|-|x": "1 0", "phone:sale:orders:c%40d|-|x": "1 0", "unknown|-|x": "5 0",
		}},
		{[]sale.Line{{SKU: "b", Region: "south", Quantity: 1}, units("c@d", 1)}, map[string]string{
			"buyer:sale:units|-|x": "4 0", "buyer:sale:units:c|-|x": "1 0", "buyer:sale:orders|-|x": "1 0", "buyer:sale:units:a|-|x": "2 0", "buyer:day:orders:a|9999999999999|x": "1 0",
			"buyer:sale:units:b|-|x": "1 0", "buyer:sale:orders:b|-|x": "1 0", "unknown|-|x": "5 0",
		}},
		{[]sale.Line{north(1), units("a", 1)}, map[string]string{
			"buyer:sale:units|-|x": "2 0", "buyer:sale:units:c|-|x": "1 0", "buyer:sale:orders|-|x": "1 0", "buyer:sale:units:a|-|x": "1 0", "buyer:day:orders:a|9999999999999|x": "1 0",
			"unknown|-|x": "5 0",
		}},
		{nil, map[string]string{"unknown|-|x": "5 0"}},
	}
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		file := stocktest.OpenSale("s", 9)
		// "c@d" is an item of its own, not "c" in the region d
		file.Items = append(file.Items, sale.Item{SKU: "c@d", Stock: 5}, sale.Item{SKU: "c", Stock: 5})
		if _, err := c.Apply(stocktest.Soon(t), file, reservation.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
		c.reserve("r1", ofLines(units("a", 2), north(2), sale.Line{SKU: "b", Region: "south", Quantity: 1}, units("c@d", 1), units("c", 1)), func(cl *reservation.ReserveRequest) {
			for field, amount := range charges {
				cl.Charges = append(cl.Charges, reservation.Charge{Limit: &sale.Limit{Max: 100}, Field: field, Amount: amount, To: sale.EndOfTime})
			}
		})
		c.must("confirmed")(c.Confirm(stocktest.Soon(t), "s", "r1", reservation.SourceShop, ""))
		for i, s := range steps {
			if _, err := c.Return(stocktest.Soon(t), "s", "r1", reservation.Return{ID: fmt.Sprint(i), Restock: i%2 == 0, Lines: s.lines}); err != nil {
				t.Fatalf("step %d: %v", i+1, err)
			}
			got := stocktest.Balanced(t, c.server.client, c.Store, "s").Limits
			if fmt.Sprint(got) != fmt.Sprint(s.left) {
				t.Errorf("step %d: the limits are\n%v, want\n%v", i+1, got, s.left)
			}
		}
	})
}

// The journal has every unit of it, with the id of the return.
func TestReturnsAreJournalled(t *testing.T) {
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		c.reserve("r1", ofLines(units("a", 3)))
		c.must("confirmed")(c.Confirm(stocktest.Soon(t), "s", "r1", reservation.SourceAnswer, ""))
		n := c.seq()
		for _, r := range []reservation.Return{
			{ID: "one", Restock: true, Lines: []sale.Line{units("a", 1)}, Cause: "too small"}, {ID: "two", Cause: "broken"}, {ID: "two", Cause: "broken"},
		} {
			if _, err := c.Return(stocktest.Soon(t), "s", "r1", r); err != nil {
				t.Fatal(err)
			}
		}
		for field, want := range map[string][]string{
			"id":    {"returned r1", "returned r1", "adjusted two"},
			"lines": {"returned a 1", "returned a 2", "adjusted a -2"},
			"cause": {"returned one too small", "returned two broken", "adjusted r1 broken"},
			"buyer": {"returned Ann", "returned Ann", "adjusted "},
			"was":   {"returned confirmed", "returned confirmed", "adjusted "},
		} {
			if got := c.told(field, n); !slices.Equal(got, want) {
				t.Errorf("%s: the journal has %q, want %q", field, got, want)
			}
		}
		record := stocktest.Balanced(t, c.server.client, c.Store, "s").Records["r1"]
		if got := c.told("record", n); !strings.HasSuffix(got[0], "\ta 1\t\t\t") || got[1] != "returned "+record || got[2] != "adjusted " {
			t.Errorf("the journal has %q, want at last %q", got, record)
		}
	})
}

// Only what is confirmed can come back, and what makes no sense is not even sent.
func TestReturnsOfOthers(t *testing.T) {
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		for _, id := range []string{"held", "in_doubt", "released"} {
			c.reserve(id)
		}
		c.must("in_doubt")(c.Doubt(stocktest.Soon(t), "s", "in_doubt", ""))
		c.must("released")(c.Release(stocktest.Soon(t), "s", "released", reservation.SourceShop, ""))
		c.must("tombstone")(c.Release(stocktest.Soon(t), "s", "never", reservation.SourceUnsent, ""))
		for _, id := range []string{"held", "in_doubt", "released"} {
			_, err := c.Return(stocktest.Soon(t), "s", id, reservation.Return{ID: "1", Restock: true})
			if conflict, ok := errors.AsType[*reservation.ConflictError](err); !ok || string(conflict.State) != id {
				t.Errorf("%s: %v", id, err)
			}
		}
		for _, id := range []string{"never", "unknown"} {
			if _, err := c.Return(stocktest.Soon(t), "s", id, reservation.Return{ID: "1"}); !errors.Is(err, reservation.ErrNotFound) {
				t.Errorf("%s: %v", id, err)
			}
		}
		if _, err := c.Return(stocktest.Soon(t), "nowhere", "held", reservation.Return{ID: "1"}); !errors.Is(err, shard.ErrNoSale) {
			t.Errorf("in no sale: %v", err)
		}
		for name, r := range map[string]reservation.Return{
			"no id": {}, "two words": {ID: "a b"}, "no units": {ID: "1", Lines: []sale.Line{units("a", 0)}}, "negative": {ID: "1", Lines: []sale.Line{units("a", 2), units("a", -1)}},
		} {
			if _, err := c.Return(stocktest.Soon(t), "s", "held", r); err == nil || errors.Is(err, shard.ErrUnavailable) || errors.As(err, new(*reservation.ConflictError)) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// Two returns of one call see each other.
func TestReturnsWithinOneCall(t *testing.T) {
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		c.reserve("r1", ofLines(units("a", 3)))
		give := func(id string, n int) reservation.Operation {
			return reservation.Operation{Name: "return", Args: []any{"r1", id, 1, "", 1, "a", n}}
		}
		confirm := reservation.Operation{Name: "confirm", Args: []any{"r1", "shop", "", ""}}
		_, replies, err := c.Call(stocktest.Soon(t), "s", give("1", 1), confirm, give("1", 2), give("1", 2), give("1", 1), give("2", 2), give("2", 1))
		if err != nil {
			t.Fatal(err)
		}
		want := "[[conflict held] [ok confirmed] [ok a 2] [ok a 2] [key_reused] [too_many 1 1] [ok a 3]]"
		if got := fmt.Sprint(replies); got != want {
			t.Errorf("the answers are %s, want %s", got, want)
		}
	})
}

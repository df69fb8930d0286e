package reservation_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// A file is applied as the difference to the last one: units that were added
// otherwise stay on top, and lowering is all or nothing.
func TestApply(t *testing.T) {
	tests := map[string]struct {
		change func(*sale.Sale)
		want   string // cells afterwards, or part of the error
	}{
		"the same":           {func(*sale.Sale) {}, "a 9/1 b@north 5/0 b@south 5/0"},
		"more":               {stock(9), "a 13/1 b@north 5/0 b@south 5/0"},
		"less":               {stock(1), "a 5/1 b@north 5/0 b@south 5/0"},
		"nothing is left":    {stock(0), "a 4/1 b@north 5/0 b@south 5/0"},
		"a region more":      {func(s *sale.Sale) { s.Items[1].Regions["west"] = 2 }, "a 9/1 b@north 5/0 b@south 5/0 b@west 2/0"},
		"a region less":      {func(s *sale.Sale) { delete(s.Items[1].Regions, "north") }, "a 9/1 b@south 5/0"},
		"an item less":       {func(s *sale.Sale) { s.Items = s.Items[:1] }, "a 9/1"},
		"regions to stock":   {func(s *sale.Sale) { s.Items[1] = sale.Item{SKU: "b", Stock: 3} }, "a 9/1 b 3/0"},
		"an item that sells": {func(s *sale.Sale) { s.Items = s.Items[1:] }, "refused: a: the item cannot go, 1 of its units are held or sold"},
		"a lot more":         {stock(sale.MaxUnits), "beyond the bound of 1000000000000"},
		"a new limit":        {func(s *sale.Sale) { s.Limits = []sale.Limit{stocktest.PerBuyer(1)} }, "--force"},
	}
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				if err := b.Client().FlushAll(stocktest.Soon(t)).Err(); err != nil {
					t.Fatal(err)
				}
				e := stocktest.Selling(t, stocktest.Options(b), 5)
				if _, err := e.Store.Adjust(stocktest.Soon(t), "s", "j1", "a", 4, "me"); err != nil {
					t.Fatal(err)
				}
				stocktest.MustHold(t, e, "r1", "Ann", 1)
				l, _ := e.Catalogue().Sale("s")
				file := *l.Sale
				file.Items = slices.Clone(file.Items)
				file.Items[1].Regions = map[string]int64{"north": 5, "south": 5}
				test.change(&file)
				before := stocktest.Balanced(t, b.Client(), e.Store, "s")

				dry, dryErr := e.ApplyUnlessLost(stocktest.Soon(t), &file, reservation.ApplyOptions{DryRun: true})
				if err := stocktest.Balanced(t, b.Client(), e.Store, "s").Differs(before); err != nil {
					t.Errorf("a dry run has changed something: %v", err)
				}
				done, err := e.ApplyUnlessLost(stocktest.Soon(t), &file, reservation.ApplyOptions{By: "me"})
				if fmt.Sprint(err) != fmt.Sprint(dryErr) {
					t.Errorf("a dry run says %v, then %v", dryErr, err)
				}
				if err != nil {
					if !errors.Is(err, shard.ErrRefused) || !strings.Contains(err.Error(), test.want) {
						t.Errorf("refused with %v, want %q", err, test.want)
					}
					if err := stocktest.Balanced(t, b.Client(), e.Store, "s").Differs(before); err != nil {
						t.Errorf("the refused file has changed something: %v", err)
					}
					return
				}
				if got := cells(t, e.Store); got != test.want {
					t.Errorf("the cells are %s, want %s", got, test.want)
				}
				if !slices.Equal(dry.Changes, done.Changes) || done.Same != (name == "the same") {
					t.Errorf("a dry run says %v, then %v (same: %v)", dry.Changes, done.Changes, done.Same)
				}
				if again, err := e.ApplyUnlessLost(stocktest.Soon(t), &file, reservation.ApplyOptions{}); err != nil || !again.Same || again.Version != done.Version {
					t.Errorf("the same file again: %+v, %v", again, err)
				}
				stocktest.Balanced(t, b.Client(), e.Store, "s")
			})
		}
	})
}

// An item of which `stock add` has taken units away cannot go, and the refusal says what to do.
func TestAnItemWithFewerUnitsCannotGo(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e := stocktest.Selling(t, stocktest.Options(b), 5)
		if _, err := e.Store.Adjust(stocktest.Soon(t), "s", "j1", "a", -1, "me"); err != nil {
			t.Fatal(err)
		}
		l, _ := e.Catalogue().Sale("s")
		without := *l.Sale
		without.Items = without.Items[1:]
		file, err := sale.New(without)
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.ApplyUnlessLost(stocktest.Soon(t), file, reservation.ApplyOptions{})
		if want := "a: the item cannot go, only 4 of the 5 units of the file are available"; !errors.Is(err, shard.ErrRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("refused with %v, want %q", err, want)
		}
		if _, err := e.Store.Adjust(stocktest.Soon(t), "s", "j2", "a", 1, "me"); err != nil {
			t.Fatal(err)
		}
		if _, err = e.ApplyUnlessLost(stocktest.Soon(t), file, reservation.ApplyOptions{}); err != nil {
			t.Error(err)
		}
	})
}

func stock(units int64) func(*sale.Sale) { return func(s *sale.Sale) { s.Items[0].Stock = units } }

// cells is "cell stock/unavailable …" of the sale "s".
func cells(t *testing.T, s *reservation.Store) string {
	t.Helper()
	b, err := s.SaleStock(stocktest.Soon(t), "s")
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, c := range b.Items {
		words = append(words, fmt.Sprintf("%s %d/%d", sale.Cell(c.SKU, c.Region), c.Stock, c.Stock-c.Available))
	}
	return strings.Join(words, " ")
}

// A change that cannot be undone is refused, with the reason.
func TestManageRefuses(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e := stocktest.Selling(t, stocktest.Options(b), 5)
		ctx := stocktest.Soon(t)
		stocktest.MustHold(t, e, "r1", "Ann", 1)
		if _, err := e.Store.Adjust(ctx, "s", "j1", "a", 1, "me"); err != nil {
			t.Fatal(err)
		}
		adjust := func(sale, id, cell string, delta int64) error {
			_, err := e.Store.Adjust(ctx, sale, id, cell, delta, "me")
			return err
		}
		for want, err := range map[string]error{
			"has been used":       adjust("s", "j1", "a", 2),
			"the sale has no c":   adjust("s", "j2", "c", 1),
			"only 5 units":        adjust("s", "j2", "a", -6),
			"6 units and":         adjust("s", "j2", "a", sale.MaxUnits),
			"beyond the bound":    adjust("s", "j2", "a", sale.MaxUnits+1),
			"cannot become draft": e.Store.SetStatus(ctx, "s", sale.Draft, "me"),
			"cannot become gone":  e.Store.SetStatus(ctx, "s", "gone", "me"),
			"cannot be listed":    second(stocktest.Holds(ctx, e.Store, "s", record.Confirmed, 1)),
		} {
			if !errors.Is(err, shard.ErrRefused) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
		for what, err := range map[string]error{
			"adjust": adjust("none", "j1", "a", 1), "status": e.Store.SetStatus(ctx, "none", sale.Open, "me"), "stock": second(e.Store.SaleStock(ctx, "none")),
		} {
			if !errors.Is(err, shard.ErrNoSale) {
				t.Errorf("%s of no sale: %v", what, err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

// What is held is listed, oldest first, with everything about it.
func TestHolds(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e := stocktest.Selling(t, stocktest.Options(b), 3)
		ctx := stocktest.Soon(t)
		l, _ := e.Catalogue().Sale("s")
		lines := []sale.Line{{SKU: "a", Quantity: 2}, {SKU: "b", Region: "north", Quantity: 1}}
		h, refusal, err := e.Hold(ctx, "r1", l, &sale.Attempt{Buyer: "Ann", Lines: lines}, lines, stocktest.HoldOptions)
		if err != nil || refusal != nil {
			t.Fatal(refusal, err)
		}
		if h.Deadline.Sub(h.Created) != stocktest.HoldOptions.HoldFor || h.Deadline.Sub(h.Exp) != stocktest.HoldOptions.Margin || h.Epoch == 0 {
			t.Errorf("the hold is %+v", h)
		}
		const odd = "two\twords\r\nof \"others\""
		if _, err := e.DoubtEventually(ctx, "s", "r1", odd); err != nil {
			t.Fatal(err)
		}
		found, err := stocktest.Holds(ctx, e.Store, "s", record.InDoubt, 10)
		if err != nil || len(found) != 1 {
			t.Fatalf("in doubt are %+v, %v", found, err)
		}
		r := found[0]
		if r.ID != "r1" || r.Sale != "s" || r.State != record.InDoubt || r.Cause != "two words  of \"others\"" || !slices.Equal(r.Lines, lines) ||
			r.Mode != record.ModeResponse || !r.Deadline.Equal(h.Deadline) || !r.Exp.Equal(h.Exp) || !r.Created.Equal(h.Created) || strings.Contains(r.Buyer, "Ann") {
			t.Errorf("it is %+v, held as %+v", r, h)
		}
		for i := range 3 {
			if _, err := e.Store.Confirm(ctx, "s", "r1", reservation.SourceShop, odd); err != nil {
				t.Errorf("confirm %d: %v", i+1, err)
			}
		}
		if got, err := e.Store.Reservation(ctx, "r1"); err != nil || got.State != record.Confirmed {
			t.Errorf("it is %+v, %v", got, err)
		}
		if found, err := stocktest.Holds(ctx, e.Store, "s", record.InDoubt, 10); err != nil || len(found) != 0 {
			t.Errorf("in doubt are %+v, %v", found, err)
		}
		if _, err := e.Store.Reservation(ctx, "none"); !errors.Is(err, reservation.ErrNotFound) {
			t.Errorf("an unknown one: %v", err)
		}
		stock, err := e.Store.SaleStock(ctx, "s")
		if err != nil || !stock.Balanced || !stock.OldestInDoubt.IsZero() || stock.Status != sale.Open {
			t.Errorf("the stock is %+v, %v", stock, err)
		}
		if ids, err := e.Store.Journal().Sales(ctx); err != nil || !slices.Equal(ids, []string{"s"}) {
			t.Errorf("the sales are %v, %v", ids, err)
		}
	})
}

// More items than one journal entry and one command inside a script hold.
func TestLargeSale(t *testing.T) {
	s := redistest.Start(t)
	e := stocktest.Ready(t, stocktest.Options(s))
	file := &sale.Sale{ID: "s", StartsAt: time.Unix(0, 0), EndsAt: time.Now().AddDate(1, 0, 0).Truncate(time.Second), Timezone: "UTC"}
	const items = 4_321
	for i := range items {
		file.Items = append(file.Items, sale.Item{SKU: fmt.Sprint("sku", i), Stock: sale.MaxUnits})
	}
	file.Items[7].SKU = "a"
	stocktest.Load(t, e.Store, file)
	if err := e.Refresh(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	stocktest.MustHold(t, e, "r1", "Ann", 3)
	stocktest.Balanced(t, s.Client(), e.Store, "s")
	if stock, err := e.Store.SaleStock(stocktest.Soon(t), "s"); err != nil || !stock.Balanced || len(stock.Items) != items {
		t.Errorf("the stock has %d cells, %v", len(stock.Items), err)
	}
	cells := make(map[string]record.Cell)
	o, err := e.Store.Overview(stocktest.Soon(t), "s", func(name string, c record.Cell) { cells[name] = c })
	want := record.Cell{SKU: "*", Stock: items * sale.MaxUnits, Available: items*sale.MaxUnits - 3, Held: 3}
	if err != nil || o.Sum != want || !o.Balanced || len(cells) != items || cells["a"].Held != 3 {
		t.Errorf("%d cells, a %+v, in sum %+v, %v", len(cells), cells["a"], o, err)
	}
	for _, name := range []string{"sku1", "sku2"} {
		if err := s.Client().HSet(stocktest.Soon(t), "stockgate:{s.0}:cells", name, "10 4 3 2 1").Err(); err != nil {
			t.Fatal(err)
		}
	}
	o, err = e.Store.Overview(stocktest.Soon(t), "s", func(string, record.Cell) {})
	want = record.Cell{SKU: "*", Stock: (items-2)*sale.MaxUnits + 20, Available: (items-2)*sale.MaxUnits - 3 + 8, Held: 3 + 6, InDoubt: 4, Confirmed: 2}
	if err != nil || o.Sum != want || !o.Balanced {
		t.Errorf("in sum %+v, %v", o, err)
	}
	// one that does not add up, and one that cannot be read
	for text, balanced := range map[string]bool{"5 1 1 1 1": false, "5 2 1 1 1": true, "5 2 1 1": false, "5 2 1 1 1 ": false, "5 2 1 1 1 0": false, "x": false, "": false} {
		if err := s.Client().HSet(stocktest.Soon(t), "stockgate:{s.0}:cells", "a", text).Err(); err != nil {
			t.Fatal(err)
		}
		o, err := e.Store.Overview(stocktest.Soon(t), "s", func(string, record.Cell) {})
		if readable := strings.Count(text, " ") == 4 && text[len(text)-1] != ' '; (err == nil) != readable || readable && o.Balanced != balanced {
			t.Errorf("%q: %+v, %v", text, o, err)
		}
	}
	if _, err := e.Store.Overview(stocktest.Soon(t), "none", nil); !errors.Is(err, shard.ErrNoSale) {
		t.Errorf("of no sale: %v", err)
	}
}

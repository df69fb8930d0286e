package reservation_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// A tally is of one moment, also while the sale moves: the journal up to its number
// gives the same, and so does the sum of what was returned.
func TestTallyIsOfOneMoment(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e := stocktest.Selling(t, stocktest.Options(b), 1000)
		const orders = 60
		var selling sync.WaitGroup
		selling.Go(func() {
			for i := range orders {
				id := fmt.Sprint("r", i)
				if _, no, err := stocktest.Hold(stocktest.Soon(t), e, id, id, 2); no != nil || err != nil {
					t.Errorf("%v %v", no, err)
					return
				}
				if _, err := e.Store.Confirm(stocktest.Soon(t), "s", id, reservation.SourceShop, ""); err != nil {
					t.Error(err)
				}
				if i%2 == 0 {
					back := reservation.Return{ID: "x", Restock: i%4 == 0, Lines: []sale.Line{{SKU: "a", Quantity: 1}}}
					if _, err := e.Store.Return(stocktest.Soon(t), "s", id, back); err != nil {
						t.Error(err)
					}
				}
			}
		})
		done := make(chan struct{})
		go func() { selling.Wait(); close(done) }()
		counted := 0
		for last := false; !last; {
			select {
			case <-done:
				last = true // once more when all is quiet
			default:
			}
			tally, err := e.Store.Tally(stocktest.Soon(t), "s")
			if errors.Is(err, shard.ErrRefused) && !last {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			counted++
			checkTally(t, e.Store, tally)
		}
		tally, err := e.Store.Tally(stocktest.Soon(t), "s")
		if err != nil || tally.Final || tally.Sum().Returned != orders/2 || tally.Sum().Adjusted != -orders/4 || counted == 0 {
			t.Errorf("%+v after %d tallies, error %v", tally, counted, err)
		}
		if err := e.Store.SetStatus(stocktest.Soon(t), "s", sale.Closed, "test"); err != nil {
			t.Fatal(err)
		}
		if tally, err = e.Store.Tally(stocktest.Soon(t), "s"); err != nil || !tally.Final {
			t.Errorf("%+v %v", tally, err)
		}
		if _, err := e.Store.Tally(stocktest.Soon(t), "none"); !errors.Is(err, shard.ErrNoSale) {
			t.Errorf("%v", err)
		}
	})
}

// checkTally compares the cell "a" of a tally with the journal up to its number.
func checkTally(t *testing.T, s *reservation.Store, tally *reservation.Tally) {
	t.Helper()
	journal, err := s.Journal().Movements(stocktest.Soon(t), "s", 0, int(tally.Seq))
	if err != nil {
		t.Fatal(err)
	}
	var want reservation.Tallied
	for _, m := range journal {
		for _, l := range m.Lines {
			if l.Cell != "a" {
				continue
			}
			switch m.Kind {
			case "loaded":
				want.Stock, want.Available = want.Stock+l.Units, want.Available+l.Units
			case "adjusted":
				want.Stock, want.Available, want.Adjusted = want.Stock+l.Units, want.Available+l.Units, want.Adjusted+l.Units
			case "held":
				want.Available, want.Held = want.Available-l.Units, want.Held+l.Units
			case "confirmed":
				want.Held, want.Confirmed = want.Held-l.Units, want.Confirmed+l.Units
			case "returned":
				want.Confirmed, want.Available, want.Returned = want.Confirmed-l.Units, want.Available+l.Units, want.Returned+l.Units
			}
		}
	}
	want.SKU = "a"
	if tally.Items[0] != want || !tally.Balanced {
		t.Errorf("at %d the tally is %+v, the journal says %+v", tally.Seq, tally.Items[0], want)
	}
}

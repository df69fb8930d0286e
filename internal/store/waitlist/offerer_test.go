package waitlist_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/waitlist"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

func TestMain(m *testing.M) { stocktest.Main(m) }

// An offer that could not be made, because the sale has changed, is made to the same people, and not to those who came later.
func TestOffersThatFailAreMadeInOrder(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e := stocktest.Ready(t, stocktest.Options(b))
		file := stocktest.OpenSale("s", 2)
		file.Waitlist = &sale.Waitlist{Offer: sale.Span(time.Hour), Max: 10}
		stocktest.Load(t, e.Store, file)
		stocktest.Look(t, e)
		stocktest.MustHold(t, e, "r1", "Ann", 2)
		desk := waitlist.NewDesk(e.Store)
		defer desk.Close()
		for _, buyer := range []string{"first", "second", "third", "fourth"} {
			_, no, err := desk.Enter(stocktest.Soon(t), &waitlist.Entrant{Sale: "s", Cell: "a", Quantity: 1, Buyer: buyer, Most: 10})
			if no != nil || err != nil {
				t.Fatal(no, err)
			}
		}
		listing, _ := e.Catalogue().Sale("s")
		list, err := waitlist.Load(stocktest.Soon(t), e.Store.Shard().Data("s"), waitlist.ByArrival)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Store.Release(stocktest.Soon(t), "s", "r1", reservation.SourceShop, "test"); err != nil {
			t.Fatal(err)
		}
		var asked atomic.Int64
		wake, done := make(chan struct{}, 1), make(chan struct{})
		ctx, stop := context.WithCancel(stocktest.Soon(t))
		k := waitlist.Offerer{Store: e.Store, Desk: desk, Wake: wake, Log: zap.NewNop(), Sales: func(yield func(waitlist.Sale) bool) {
			yield(waitlist.Sale{ID: "s", List: list, Offer: time.Hour, Least: func(string) int64 { return 1 }, Request: func(entry *waitlist.Entry) (*reservation.ReserveRequest, *sale.Refusal) {
				version := listing.Version
				if asked.Add(1) <= 2 { // in the first call
					version--
				}
				return &reservation.ReserveRequest{Sale: "s", Version: version, Buyer: entry.Buyer, Lines: stocktest.UnitsOfA(1), HoldFor: time.Hour}, nil
			}})
		}}
		go func() { defer close(done); k.Run(ctx) }()
		offered := func() (numbers []int64) {
			all, _, err := waitlist.ReadAll(stocktest.Soon(t), e.Store.Shard().Data("s"))
			if err != nil {
				t.Fatal(err)
			}
			for _, entry := range all {
				if entry.Offered {
					numbers = append(numbers, entry.Number)
				}
			}
			return numbers
		}
		stocktest.Eventually(t, "two offers", func() bool {
			select {
			case wake <- struct{}{}:
			default:
			}
			return len(offered()) == 2
		})
		stop()
		<-done
		if got := offered(); got[0] != 1 || got[1] != 2 {
			t.Errorf("units are offered to the entries %v, want the first two", got)
		}
	})
}

// While Redis makes no offers of a sale the log says so once, not with each try.
func TestFailingOffersAreLoggedOnce(t *testing.T) {
	server := redistest.Start(t)
	e, redis := stocktest.Ready(t, stocktest.Options(server)), server.Client()
	file := stocktest.OpenSale("s", 1)
	file.Waitlist = &sale.Waitlist{Offer: sale.Span(time.Hour), Max: 10}
	stocktest.Load(t, e.Store, file)
	stocktest.Look(t, e)
	stocktest.MustHold(t, e, "r1", "Ann", 1)
	desk := waitlist.NewDesk(e.Store)
	defer desk.Close()
	if _, no, err := desk.Enter(stocktest.Soon(t), &waitlist.Entrant{Sale: "s", Cell: "a", Quantity: 1, Buyer: "first", Most: 10}); no != nil || err != nil {
		t.Fatal(no, err)
	}
	list, err := waitlist.Load(stocktest.Soon(t), e.Store.Shard().Data("s"), waitlist.ByArrival)
	if err != nil {
		t.Fatal(err)
	}
	core, logged := observer.New(zap.WarnLevel)
	wake, done, enough := make(chan struct{}), make(chan struct{}), make(chan struct{})
	ctx, stop := context.WithCancel(stocktest.Soon(t))
	rounds := 0
	k := waitlist.Offerer{Store: e.Store, Desk: desk, Wake: wake, Log: zap.New(core), Sales: func(yield func(waitlist.Sale) bool) {
		cell := "damaged"
		switch rounds++; rounds {
		case 4: // it works again, for once
			cell = "1 0 1 0 0"
		case 7:
			close(enough)
		}
		if err := redis.HSet(stocktest.Soon(t), "stockgate:{other.0}:cells", "a", cell).Err(); err != nil {
			t.Error(err)
		}
		yield(waitlist.Sale{ID: "other", List: list, Offer: time.Hour, Least: func(string) int64 { return 1 }})
	}}
	go func() { defer close(done); k.Run(ctx) }()
	for over := false; !over; {
		select {
		case wake <- struct{}{}:
		case <-enough:
			over = true
		}
	}
	stop()
	<-done
	if got := logged.Len(); got != 2 {
		t.Errorf("%d lines of %d tries, want 2: %v", got, rounds, logged.All())
	}
}

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"sync/atomic"
	"testing"

	"github.com/stockgate/stockgate/internal/shop"
	"github.com/stockgate/stockgate/internal/stampede"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/draw"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// moodyAnswers is a shop whose answers to the probe cannot be relied on either: every
// other one is an error, a hang or a lost connection.
func moodyAnswers(s http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.URL.Path != "/orders" {
			switch rand.IntN(10) {
			case 0, 1, 2:
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			case 3:
				<-r.Context().Done()
				return
			case 4:
				panic(http.ErrAbortHandler)
			}
		}
		s.ServeHTTP(w, r)
	})
}

// restart starts an edge again that was killed.
func (e *edge) restart(s site) {
	e.t.Helper()
	if err := os.Remove(e.admin); err != nil && !errors.Is(err, os.ErrNotExist) {
		e.t.Fatal(err)
	}
	e.start(s)
}

// witnesses are shop and Redis, for the oracle of a stampede.
func witnesses(e *edge, s *shop.Shop, sale string) stampede.Sources {
	read := func(path string, into any) (int, error) {
		r, err := e.control.Get("http://localhost/stockgate/" + path)
		if err != nil {
			return 0, err
		}
		defer r.Body.Close()
		if r.StatusCode != http.StatusOK {
			return r.StatusCode, fmt.Errorf("GET %s: %s", path, r.Status)
		}
		return r.StatusCode, json.NewDecoder(r.Body).Decode(into)
	}
	return stampede.Sources{
		Orders: func(ctx context.Context) (orders []stampede.Order, err error) {
			written, err := s.Orders(ctx)
			for _, o := range written {
				orders = append(orders, stampede.Order{OrderNo: o.OrderNo, Reservation: o.Reservation, Buyer: o.Buyer, Lines: o.Lines})
			}
			return orders, err
		},
		Stock: func(context.Context) (*reservation.SaleStock, error) {
			b := new(reservation.SaleStock)
			_, err := read("sales/"+sale, b)
			return b, err
		},
		Record: func(_ context.Context, id string) (*reservation.Record, error) {
			r := new(reservation.Record)
			status, err := read("reservations/"+id, r)
			if status == http.StatusNotFound {
				err = reservation.ErrNotFound
			}
			return r, err
		},
		Settle: patience,
	}
}

// judge lets the oracle compare shop, Redis and buyers; it tolerates nothing.
func judge(t *testing.T, from stampede.Sources, tally *stampede.Tally) stampede.Evidence {
	t.Helper()
	evidence, err := from.Collect(context.Background(), tally)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range stampede.Check(evidence, stampede.Tolerance{}).Violations {
		t.Error(v)
	}
	return evidence
}

// A shop that takes orders, refuses them, fails before and after, hangs and drops the
// connection, whose word on its orders is no better, and edges that are killed again
// and again: with the probe every order in the shop becomes a confirmed reservation,
// and every other unit comes back on sale.
func TestEverythingEndsWellInAMayhem(t *testing.T) {
	t.Parallel()
	stock, kills := draw.Times(100, 200), draw.Times(4, 6)
	server := redistest.Start(t)
	first, second := newEdge(t, ""), newEdge(t, "")
	second.storage = first.storage
	edges := []*edge{first, second}
	s, _ := startShop(t, first)
	front := serve(t, moodyAnswers(s))
	same := site{redis: redisAt(server.Addr()), shop: front,
		gate: roomy + "hold_for 3s\nforward_timeout 1s\n" + probing(front)}
	for _, e := range edges {
		e.start(same)
	}
	first.sell("mayhem", fmt.Sprintf(`  - {sku: "7", stock: %d}`, stock))
	second.untilSelling("mayhem")
	if err := s.SetMisbehaviour("delay=20ms:0.5,delay-after=50ms:0.5,status=400:0.15,500-after:0.1,drop-after:0.1,redirect:0.05," +
		"status=500:0.05,drop-before:0.05,panic:0.05,hang:0.05"); err != nil {
		t.Fatal(err)
	}
	door := balance(t, edges...)
	crowd := stampede.Crowd{
		URL: "http://" + door + "/api/order", Buyers: stock + stock*2/5, Prefix: "early-", Concurrency: 80, Rate: 40,
		Baskets: []stampede.Basket{stampede.Buy("7", 1)}, DoubleClick: 10,
	}
	var over atomic.Bool
	tallies := make(chan *stampede.Tally, 1)
	go func() {
		tally, err := crowd.Run(context.Background())
		if err != nil {
			t.Error(err)
		}
		over.Store(true)
		tallies <- tally
	}()
	// Each dies in the middle of orders.
	for n := range kills {
		seen := s.Counts().Attempts
		eventually(t, "more orders reach the shop", func() bool { return s.Counts().Attempts >= seen+15 || over.Load() })
		edges[n%2].kill()
		edges[n%2].restart(same)
	}
	tally := <-tallies

	// The edge that asks may have been killed each time, and half of the answers say nothing: on a slow machine most of them do.
	var b saleStock
	within(t, 4*patience, func() bool {
		b = first.stock("mayhem")
		left := b.only(t)
		return left[1] == 0 && left[2] == 0
	}, func() string { return fmt.Sprintf("nothing is held or in doubt any more: %v", b) })
	evidence := judge(t, witnesses(first, s, "mayhem"), tally)
	if have := b.only(t); have[3] != int64(len(evidence.Orders)) || have[0] != int64(stock)-have[3] {
		t.Errorf("the shop has %d orders, the stock is %v", len(evidence.Orders), b)
	}
	t.Logf("%d requests, %d orders, %v, failed %v", tally.Requests, len(evidence.Orders), tally.Statuses, tally.Failed)

	// The shop is well again, and has time, and all that is left is sold.
	if err := s.SetMisbehaviour("none"); err != nil {
		t.Fatal(err)
	}
	same.gate = roomy + probing(front)
	for _, e := range edges {
		e.mustReload(same)
		e.untilSelling("mayhem")
	}
	crowd.Prefix, crowd.Buyers, crowd.Rate = "late-", stock, 0
	late, err := crowd.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	from := witnesses(first, s, "mayhem")
	from.MustSell = int64(stock)
	judge(t, from, late)
	first.untilExpected("mayhem", 0, 0, 0, int64(stock))
}

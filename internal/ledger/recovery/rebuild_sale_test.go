package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/recovery"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// store is a shop behind several edges: what it sells, by the tokens that it was shown.
type store struct {
	t      *testing.T
	edges  []*edge.Edge
	mu     sync.Mutex
	orders map[string]*reservation.Evidence
}

func openShop(t *testing.T, server *redistest.Server, edges int, stock int64) *store {
	t.Helper()
	s := &store{t: t, orders: map[string]*reservation.Evidence{}}
	for range edges {
		opened, err := reservation.Open(shard.Options{Addresses: []string{server.Addr()}, Timeout: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		e := edge.New(opened, edge.Options{Keys: []shard.SigningKey{{KID: "k", JWK: "{}"}}})
		t.Cleanup(func() {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			if err := e.Stop(ctx); err != nil {
				t.Error(err)
			}
		})
		s.edges = append(s.edges, e)
	}
	now := time.Now().Truncate(time.Second)
	file := &sale.Sale{
		ID: "s", StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour), Timezone: "UTC", Items: []sale.Item{{SKU: "a", Stock: stock}},
		Limits: []sale.Limit{{Per: "buyer", Every: "sale", Max: 2, Count: "units"}},
	}
	if _, err := s.edges[0].ApplyUnlessLost(ledgertest.Soon(t), file, reservation.ApplyOptions{By: "test"}); err != nil {
		t.Fatal(err)
	}
	if err := s.edges[0].Store.SetStatus(ledgertest.Soon(t), "s", sale.Open, "test"); err != nil {
		t.Fatal(err)
	}
	for _, e := range s.edges {
		e.Start()
		s.untilSelling(e)
	}
	return s
}

func (s *store) untilSelling(e *edge.Edge) {
	s.t.Helper()
	ledgertest.Eventually(s.t, "the edge sells", func() bool {
		l, ok := e.Catalogue().Sale("s")
		return ok && e.Ready() == nil && l.RefusalAt(time.Now()) == nil
	})
}

func (s *store) sold() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.orders)
}

// buy is one attempt at an edge, as a gate does it. The shop takes every order.
func (s *store) buy(e *edge.Edge, id, buyer, key string) (*sale.Refusal, error) {
	l, ok := e.Catalogue().Sale("s")
	if !ok {
		return sale.Refuse(sale.UnknownSale), nil
	}
	lines := []sale.Line{{SKU: "a", Quantity: 1}}
	if no, ask := e.Remembered(l, nil, lines); no != nil {
		ask.End()
		if isNew, err := e.SurelyNew(l, &sale.Attempt{Buyer: buyer, Key: key, Ref: "order-" + key}); isNew || err != nil {
			return no, err
		}
	}
	a := &sale.Attempt{Sale: "s", Buyer: buyer, Lines: lines, Key: key, Print: "p", Ref: "order-" + key}
	h, no, err := e.Hold(ledgertest.Soon(s.t), id, l, a, lines, edge.HoldOptions{HoldFor: time.Hour, Margin: time.Minute, Mode: record.ModeResponse, Gate: "main"})
	if no != nil || err != nil {
		return no, err
	}
	s.mu.Lock()
	s.orders[id] = &reservation.Evidence{Sale: "s", ID: id, Buyer: buyer, Epoch: h.Epoch, Created: h.Created, Exp: h.Exp, Ref: h.Ref, Lines: h.Lines}
	s.mu.Unlock()
	_, err = e.ConfirmEventually(ledgertest.Soon(s.t), "s", id, "status_201")
	return nil, err
}

// Redis loses everything in mid-sale, and the ledger has not had the last of it. The
// operator rebuilds the sale, the shop's orders are confirmed by their tokens, and the
// sale goes on at all edges: nothing is sold twice, every limit, key and ref holds, and
// every unit can be sold.
func TestRebuildInMidSale(t *testing.T) {
	const stock, buyers = 300, 200
	server := redistest.Start(t)
	s := openShop(t, server, 3, stock)
	l := ledgertest.OpenFile(t, filepath.Join(t.TempDir(), "ledger.db"))
	ctx, cancel := context.WithCancel(context.Background())
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		ledger.NewDrainer(s.edges[0].Store.Journal(), s.edges[0].Store, l, ledgertest.NewCounts().Log(), ledgertest.NewCounts()).Run(ctx)
	}()
	defer func() { cancel(); <-drained }()

	crowd := func(wave string, most int, until func(no *sale.Refusal) bool) (wait func()) {
		var all sync.WaitGroup
		for i := range buyers {
			all.Go(func() {
				for n, bought, end := 0, 0, ledgertest.Soon(t); bought < most && end.Err() == nil; n++ {
					e, key := s.edges[(i+n)%len(s.edges)], fmt.Sprintf("%s-%d-%d", wave, i, n)
					no, err := s.buy(e, "r-"+key, fmt.Sprintf("buyer %d", i), key)
					if err != nil && !errors.Is(err, shard.ErrUnavailable) && !errors.Is(err, reservation.ErrNotFound) {
						t.Errorf("%s: %v", key, err)
						return
					}
					if no == nil && err == nil {
						bought++
					}
					if no != nil && until(no) {
						return
					}
				}
			})
		}
		return all.Wait
	}
	lost := make(chan struct{})
	isLost := func() bool {
		select {
		case <-lost:
			return true
		default:
			return false
		}
	}
	wait := crowd("first", 1, func(*sale.Refusal) bool { return isLost() })
	ledgertest.Eventually(t, "the ledger follows", func() bool {
		at, err := l.Position(ledgertest.Soon(t), "s")
		return err == nil && at.Seq > 40
	})
	ledgertest.Flush(t, server)
	close(lost)
	wait()
	first := s.sold()

	out, err := recovery.Rebuild(ledgertest.Soon(t), l, s.edges[1].Store, "s", recovery.RebuildOptions{By: "operator"})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d orders; %+v", first, out)
	for _, e := range s.edges { // buyers are told that it is paused, at every edge
		ledgertest.Eventually(t, "the edge knows that it is paused", func() bool {
			l, ok := e.Catalogue().Sale("s")
			return ok && l.RefusalAt(time.Now()) != nil && l.RefusalAt(time.Now()).Reason == "paused"
		})
	}
	for id, ev := range s.orders {
		if state, err := s.edges[2].ConfirmWith(ledgertest.Soon(t), ev, "the shop has it"); state != record.Confirmed || err != nil {
			t.Errorf("%s with its token: %s, %v", id, state, err)
		}
	}
	if err := s.edges[0].Store.SetStatus(ledgertest.Soon(t), "s", sale.Open, "operator"); err != nil {
		t.Fatal(err)
	}
	for _, e := range s.edges {
		s.untilSelling(e)
	}
	for id, ev := range s.orders { // a buyer who repeats a purchase gets their order
		_, err := s.buy(s.edges[0], id+" again", ev.Buyer, id[len("r-"):])
		if b, ok := errors.AsType[*reservation.AlreadyBound](err); !ok || b.ID != id || b.State != record.Confirmed {
			t.Errorf("%s once more: %v", id, err)
		}
		break
	}
	crowd("second", 9, func(no *sale.Refusal) bool { return no.Reason == "limit_reached" || no.Reason == "sold_out" })()

	per := map[string]int{}
	for _, ev := range s.orders {
		per[ev.Buyer]++
	}
	for buyer, n := range per {
		if n > 2 {
			t.Errorf("%s has %d units", buyer, n)
		}
	}
	if n := s.sold(); n != stock {
		t.Errorf("%d orders of %d units, and more were wanted", n, stock)
	}
	b, err := s.edges[0].Store.SaleStock(ledgertest.Soon(t), "s")
	if err != nil || !b.Balanced || b.Items[0].Confirmed != int64(s.sold()) {
		t.Errorf("the shop has %d orders, the stock is %+v, error %v", s.sold(), b, err)
	}
	ledgertest.Eventually(t, "the ledger has everything", func() bool {
		h, err := s.edges[0].Store.Journal().Head(ledgertest.Soon(t), "s")
		at, err2 := l.Position(ledgertest.Soon(t), "s")
		return err == nil && err2 == nil && at == ledger.Position{Epoch: h.Epoch, Seq: h.Last}
	})
}

package drive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

const (
	saleID = "drive"
	item   = "a"
)

// edges reserves as the gate does, with everything on: a purchase limit, a hold with its
// deadline, an idempotency key, the journal.
func edges(ctx context.Context, p Plan) (reserveFunc, func() error, error) {
	n := 1
	if p.Way == OneByOne {
		n = p.AtOnce
	}
	var all []*edge.Edge
	end := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		var err error
		for _, e := range all {
			err = errors.Join(err, e.Stop(ctx))
		}
		return err
	}
	for range n {
		// what is measured is not how soon it gives up
		store, err := reservation.Open(shard.Options{Addresses: []string{p.Redis}, Timeout: 10 * time.Second})
		if err != nil {
			return nil, end, errors.Join(err, end())
		}
		key := shard.SigningKey{KID: "drive", JWK: `{"kid":"drive"}`, Seal: [32]byte{1}}
		all = append(all, edge.New(store, edge.Options{Keys: []shard.SigningKey{key}}))
		if len(all) == 1 {
			if err := openSale(ctx, store); err != nil {
				return nil, end, errors.Join(err, end())
			}
		}
	}
	for _, e := range all {
		if err := e.Refresh(ctx); err != nil {
			return nil, end, errors.Join(err, end())
		}
		e.Start()
	}
	return func(ctx context.Context, w int, n int64) error {
		return hold(ctx, all[w%len(all)], n, p.Way == Confirmed)
	}, end, nil
}

func openSale(ctx context.Context, store *reservation.Store) error {
	now := time.Now().Truncate(time.Second)
	s, err := sale.New(sale.Sale{
		ID: saleID, StartsAt: now.Add(-time.Hour), EndsAt: now.Add(24 * time.Hour),
		Items:  []sale.Item{{SKU: item, Stock: units}},
		Limits: []sale.Limit{{Per: "buyer", Every: "sale", Count: "units", Max: 2}},
	})
	if err != nil {
		return err
	}
	if _, err := store.Apply(ctx, s, reservation.ApplyOptions{By: "bench"}); err != nil {
		return err
	}
	return store.SetStatus(ctx, saleID, sale.Open, "bench")
}

// hold makes one reservation, and confirms it.
func hold(ctx context.Context, e *edge.Edge, n int64, confirm bool) error {
	l, ok := e.Catalogue().Sale(saleID)
	if !ok {
		return errors.New("the sale is not in the catalogue")
	}
	a := &sale.Attempt{Buyer: buyer(n), Lines: []sale.Line{{SKU: item, Quantity: 1}}, Key: buyer(n), Print: "the same"}
	lines, refusal := l.Sale.Resolve(a)
	if refusal != nil {
		return fmt.Errorf("refused: %s", refusal.Reason)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	options := edge.HoldOptions{HoldFor: 30 * time.Second, Margin: 5 * time.Second, Mode: record.ModeResponse, KeyTTL: 24 * time.Hour}
	h, refusal, err := e.Hold(ctx, id.String(), l, a, lines, options)
	if err != nil {
		return err
	} else if refusal != nil {
		return fmt.Errorf("refused: %s", refusal.Reason)
	}
	if !confirm {
		return nil
	}
	state, err := e.ConfirmEventually(ctx, saleID, h.ID, "200")
	if err == nil && state != record.Confirmed {
		err = fmt.Errorf("a confirmed reservation is %s", state)
	}
	return err
}

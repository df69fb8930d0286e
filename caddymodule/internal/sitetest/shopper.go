package sitetest

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// Shopper reserves and settles in the site's Redis, as a gate does.
type Shopper struct {
	t *testing.T
	*reservation.Store
}

// NewShopper connects to the site's Redis.
func NewShopper(t *testing.T, server *redistest.Server) Shopper {
	t.Helper()
	store, err := reservation.Open(shard.Options{Addresses: []string{server.Addr()}, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return Shopper{t, store}
}

// NewStoreShopper connects to the server of a store.
func NewStoreShopper(t *testing.T, dir string) Shopper {
	t.Helper()
	password, err := os.ReadFile(filepath.Join(dir, "password"))
	if err != nil {
		t.Fatal(err)
	}
	store, err := reservation.Open(shard.Options{
		Addresses: []string{"store:6379"}, Timeout: time.Minute, Username: "stockgate", Password: strings.TrimSpace(string(password)),
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, "redis.sock"))
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return Shopper{t, store}
}

// Hold holds units under an id.
func (p Shopper) Hold(id, sku string, units int64, holdFor time.Duration) {
	p.t.Helper()
	p.HoldAs(record.ModeResponse, id, sku, units, holdFor)
}

// HoldAs is Hold for a gate with that outcome mode.
func (p Shopper) HoldAs(mode record.Mode, id, sku string, units int64, holdFor time.Duration) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	b, err := p.SaleStock(ctx, "double11")
	if err != nil {
		p.t.Fatal(err)
	}
	_, refusal, err := p.Reserve(ctx, &reservation.ReserveRequest{
		ID: id, Sale: "double11", Version: b.Version, Buyer: "b",
		Lines:   []sale.Line{{SKU: sku, Quantity: units}},
		HoldFor: holdFor, Mode: mode,
	})
	if refusal != nil || err != nil {
		p.t.Fatalf("reserve %s: %v %v", id, refusal, err)
	}
}

// Queue is a queue with so many orders at the shop at a time.
func Queue(atOnce int64) *reservation.QueueOptions {
	return &reservation.QueueOptions{
		Pace: reservation.Pace{AtOnce: atOnce}, Most: 1000, Memory: 1 << 20, Longest: time.Hour, Edge: "shopper", Gate: "gate", Order: []byte("an order"),
	}
}

// Order holds one unit of plain for an order that comes to a queue, and reports whether it waits.
func (p Shopper) Order(id string, q *reservation.QueueOptions) (waits bool) {
	p.t.Helper()
	return p.OrderOf(id, "plain", q)
}

// OrderOf is Order for one unit of that item.
func (p Shopper) OrderOf(id, sku string, q *reservation.QueueOptions) (waits bool) {
	p.t.Helper()
	b, err := p.SaleStock(p.t.Context(), "double11")
	if err != nil {
		p.t.Fatal(err)
	}
	hold, refusal, err := p.Reserve(p.t.Context(), &reservation.ReserveRequest{
		ID: id, Sale: "double11", Version: b.Version, Buyer: "b", Lines: []sale.Line{{SKU: sku, Quantity: 1}},
		HoldFor: time.Hour, Mode: record.ModeResponse, Queue: q,
	})
	if refusal != nil || err != nil {
		p.t.Fatalf("order %s: %v %v", id, refusal, err)
	}
	return hold.State == record.Waiting
}

// Must wraps a call that settles a reservation and must succeed.
func (p Shopper) Must(state record.State, err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatalf("%s: %v", state, err)
	}
}

// Doubts makes holds in doubt with these causes, in this order.
func (p Shopper) Doubts(holdFor time.Duration, causes map[string]string, ids ...string) {
	p.t.Helper()
	for _, id := range ids {
		p.Hold(id, "plain", 1, holdFor)
		p.Must(p.Doubt(p.t.Context(), "double11", id, causes[id]))
	}
}

// HoldRef holds one unit for an order with a ref of the shop.
func (p Shopper) HoldRef(id, ref, sku string) {
	p.t.Helper()
	b, err := p.SaleStock(p.t.Context(), "double11")
	if err != nil {
		p.t.Fatal(err)
	}
	_, refusal, err := p.Reserve(p.t.Context(), &reservation.ReserveRequest{
		ID: id, Sale: "double11", Version: b.Version, Buyer: "b", Ref: ref,
		Lines: []sale.Line{{SKU: sku, Quantity: 1}}, HoldFor: time.Hour, Mode: record.ModeResponse,
	})
	if refusal != nil || err != nil {
		p.t.Fatalf("reserve %s: %v %v", id, refusal, err)
	}
}

// LetExpire makes a reservation that expires before the shop answers.
func (p Shopper) LetExpire(id, sku string) {
	p.t.Helper()
	p.HoldAs(record.ModeBackend, id, sku, 1, time.Millisecond)
	for {
		if _, err := p.Expire(p.t.Context(), "double11"); err != nil {
			p.t.Fatal(err)
		}
		r, err := p.ReservationIn(p.t.Context(), "double11", id)
		if err != nil {
			p.t.Fatal(err)
		}
		if r.State == record.Expired {
			return
		}
	}
}

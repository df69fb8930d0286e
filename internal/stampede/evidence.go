package stampede

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stockgate/stockgate/internal/loop"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// Order is an order as the shop has written it.
type Order struct {
	OrderNo     string `json:"order_no"`
	Reservation string `json:"reservation,omitempty"`
	// Ref is the shop's own name of the order, by which its reservation is found where Reservation is empty.
	Ref   string      `json:"ref,omitempty"`
	Buyer string      `json:"buyer"`
	Lines []sale.Line `json:"lines"`
}

// Evidence has the three accounts of one sale.
type Evidence struct {
	// Orders are the shop's; those that have no line in the sale do not count.
	Orders []Order
	// Stock is the sale's in Redis.
	Stock reservation.SaleStock
	// Records are the reservations that orders and answers name, by id.
	Records map[string]reservation.Record
	// Tally is what the buyers were told; nil: that is not known.
	Tally *Tally
	// Journal is what the movements of the sale say; nil: they were not read.
	Journal *Journal
	// NoOrders: the shop's orders are not known, Nameless: they do not name the buyers as the
	// crowd does.
	NoOrders, Nameless bool
	// MaxPerBuyer is how many units of the sale one buyer may have; 0: any number.
	MaxPerBuyer int64
	// MustSell is how many units the shop must have sold in the end, because so
	// many were wanted and it refused no buyer.
	MustSell int64
}

// Sources says where to collect evidence.
type Sources struct {
	// Orders lists the orders in the shop; nil: they are not known.
	Orders func(context.Context) ([]Order, error)
	// Journal reads the movements of the sale, and with them its reservations; nil: Record reads
	// those that are named.
	Journal func(context.Context) (*Journal, error)
	// Stock reads the sale's stock.
	Stock func(context.Context) (*reservation.SaleStock, error)
	// Record reads a reservation; reservation.ErrNotFound: there is none.
	Record func(ctx context.Context, id string) (*reservation.Record, error)
	// MaxPerBuyer and MustSell go into the evidence as they are.
	MaxPerBuyer, MustSell int64
	// Settle is how long what is still held may take to be resolved. Default: 10 s.
	Settle time.Duration
}

const (
	defaultSettle = 10 * time.Second
	settleEvery   = 50 * time.Millisecond
)

// Collect waits until nothing is held any more, at most Settle, and gathers the
// evidence. Whether something is held then is for Check to say. t may be nil.
func (s Sources) Collect(ctx context.Context, t *Tally) (Evidence, error) {
	e := Evidence{Tally: t, MaxPerBuyer: s.MaxPerBuyer, MustSell: s.MustSell, Records: map[string]reservation.Record{}, NoOrders: s.Orders == nil}
	stock, err := s.settled(ctx, &e)
	if err != nil {
		return e, fmt.Errorf("reading the sale: %w", err)
	}
	e.Stock = *stock
	if e.Journal != nil {
		e.Journal.fill(e.Records)
	}
	if s.Orders != nil {
		if e.Orders, err = s.Orders(ctx); err != nil {
			return e, fmt.Errorf("reading the shop's orders: %w", err)
		}
	}
	if err := e.findRefs(); err != nil {
		return e, err
	}
	for i, o := range e.Orders {
		if err := s.record(ctx, &e, o.Reservation); err != nil {
			return e, err
		}
		if err := s.more(ctx, &e, &e.Orders[i]); err != nil {
			return e, err
		}
		if len(o.Lines) == 0 { // a list of ids: they are of this sale if it knows them
			e.Orders[i].Lines = linesOf(e.Records, o.Reservation)
		}
	}
	if t == nil {
		return e, nil
	}
	for _, a := range t.Answers {
		if err := s.record(ctx, &e, a.Reservation); err != nil {
			return e, err
		}
	}
	return e, nil
}

// more reads the reservation of what the shop sold beyond a hold, where the order may have one: a
// journal that is whole has it already.
func (s Sources) more(ctx context.Context, e *Evidence, order *Order) error {
	r := e.Records[order.Reservation]
	if len(r.Lines) == 0 || e.Journal.whole() {
		return nil
	}
	beyond := map[string]int64{} // what is left of the hold
	for _, l := range order.Lines {
		beyond[l.SKU] += l.Quantity
	}
	for _, l := range r.Lines {
		beyond[l.SKU] -= l.Quantity
	}
	for _, l := range r.Returned {
		beyond[l.SKU] += l.Quantity
	}
	for _, n := range beyond {
		if n > 0 || len(order.Lines) == 0 {
			return s.record(ctx, e, reservation.MoreOf(order.Reservation))
		}
	}
	return nil
}

func (s Sources) record(ctx context.Context, e *Evidence, id string) error {
	if _, known := e.Records[id]; known || id == "" || s.Record == nil {
		return nil
	}
	r, err := s.Record(ctx, id)
	switch {
	case errors.Is(err, reservation.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("reading reservation %s: %w", id, err)
	}
	e.Records[id] = *r
	return nil
}

// settled reads the sale until nothing is held any more, and the journal between two reads
// that agree: what still moves cannot be compared.
func (s Sources) settled(ctx context.Context, e *Evidence) (*reservation.SaleStock, error) {
	if s.Settle == 0 {
		s.Settle = defaultSettle
	}
	deadline := time.Now().Add(s.Settle)
	for {
		stock, err := s.Stock(ctx)
		if err != nil {
			return nil, err
		}
		held := int64(0)
		for _, c := range stock.Items {
			held += c.Held
		}
		over := !time.Now().Before(deadline)
		if held == 0 || over {
			still, err := s.still(ctx, e, stock)
			if err != nil || still || over {
				return stock, err
			}
		}
		if !loop.Rest(ctx, settleEvery, nil) {
			return nil, context.Cause(ctx)
		}
	}
}

// still reads the journal, and reports whether the stock is the same afterwards.
func (s Sources) still(ctx context.Context, e *Evidence, before *reservation.SaleStock) (bool, error) {
	if s.Journal == nil {
		return true, nil
	}
	var err error
	if e.Journal, err = s.Journal(ctx); err != nil {
		return false, err
	}
	after, err := s.Stock(ctx)
	if err != nil {
		return false, err
	}
	return slices.Equal(before.Items, after.Items), nil
}

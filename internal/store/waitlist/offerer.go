package waitlist

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/loop"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/lease"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// lookEvery is how often an Offerer looks for units that came back, if nothing wakes it.
const lookEvery = 250 * time.Millisecond

// NoWaitlist is why people leave the list of a sale that has none any more.
const NoWaitlist = "no_waitlist"

// Sale is a sale of which an Offerer makes offers.
type Sale struct {
	ID   string
	List *List
	// Offer is how long units are held for a person; 0: the sale has no waiting list any more, and those who
	// are on it are taken off.
	Offer time.Duration
	// Least is how many units of a cell an order must have: fewer are not offered.
	Least func(cell string) int64
	// Request is what holds units for an entry. The refusal says why it cannot: a limit of one order.
	Request func(e *Entry) (*reservation.ReserveRequest, *sale.Refusal)
}

// Offerer makes offers: one edge at a time for each sale. Others follow in the journal what it does.
type Offerer struct {
	Store *reservation.Store
	Desk  *Desk
	// Sales are those that the edge knows with people on their lists.
	Sales func(yield func(Sale) bool)
	// Wake ends a pause: units may have come back, or a person waits for some that are there.
	Wake <-chan struct{}
	Log  *zap.Logger

	later   map[string]map[int64]time.Time // by sale and entry, until when it is left alone
	leases  map[string]*lease.Lease
	failing map[string]bool // sales of which the log says that no offers are made
	ending  sync.WaitGroup  // of leases
}

// Run makes offers until ctx ends.
func (k *Offerer) Run(ctx context.Context) {
	k.later, k.leases, k.failing = make(map[string]map[int64]time.Time), make(map[string]*lease.Lease), make(map[string]bool)
	loop.Every(ctx, lookEvery, k.Wake, func() {
		for s := range k.Sales {
			err := k.look(ctx, s)
			if err == nil {
				delete(k.failing, s.ID)
			} else if ctx.Err() == nil && !k.failing[s.ID] {
				k.failing[s.ID] = true
				k.Log.Warn("no offers are made to people who wait; it is tried again", zap.String("sale", s.ID), zap.Error(err))
			}
		}
	})
	for _, l := range k.leases {
		l.GiveUp()
	}
	k.ending.Wait()
}

// hasLease reports whether this edge makes the offers of a sale. A second one would do no harm: scripts decide.
func (k *Offerer) hasLease(ctx context.Context, saleID string) bool {
	if l := k.leases[saleID]; l != nil {
		if l.StillHeld() {
			return true
		}
		l.GiveUp()
		delete(k.leases, saleID)
	}
	ctx, cancel := context.WithCancel(ctx)
	cancel() // once: the edge that makes the offers now goes on
	k.ending.Add(1)
	l, err := lease.Acquire(ctx, k.Store.Shard(), "waitlist:"+saleID, k.ending.Done)
	if err != nil {
		return false
	}
	k.leases[saleID] = l
	return true
}

// look makes offers of the units of a sale that are there and awaited.
func (k *Offerer) look(ctx context.Context, s Sale) error {
	if s.Offer == 0 { // until all are off, no other buyer gets the units for which they wait
		return k.takeOff(ctx, s, s.List.Entries(""), NoWaitlist)
	}
	cells := s.List.Cells()
	if len(cells) == 0 || s.List.OffersPaused() || !k.hasLease(ctx, s.ID) {
		return nil
	}
	units, err := k.Store.Available(ctx, s.ID, cells)
	if err != nil {
		return err
	}
	for _, cell := range cells {
		free, there := units[cell]
		if !there { // its item has gone from the sale file
			err = k.takeOff(ctx, s, s.List.Entries(cell), string(sale.UnknownItem))
		} else {
			err = k.offer(ctx, s, cell, free)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// offer offers units of a cell to those whose turn it is.
func (k *Offerer) offer(ctx context.Context, s Sale, cell string, units int64) error {
	for units > 0 && ctx.Err() == nil {
		next := s.List.Next(cell, units, s.Least(cell), offersAtOnce, func(e *Entry) bool { return time.Now().Before(k.later[s.ID][e.Number]) })
		if len(next) == 0 {
			return nil
		}
		var numbers []int64
		var requests []*reservation.ReserveRequest
		for i := range next {
			e := &next[i]
			k.leaveAlone(s.ID, e.Number) // until the journal tells what became of it
			r, no := s.Request(e)
			if no != nil {
				if err := k.unable(ctx, s, e, no); err != nil {
					return err
				}
				continue
			}
			numbers, requests = append(numbers, e.Number), append(requests, r)
		}
		taken, err := k.make(ctx, s, next, numbers, requests)
		if err != nil {
			return err
		}
		if taken < 0 { // the sale makes none now
			return nil
		}
		units -= taken
	}
	return nil
}

// make makes some offers. It returns how many units they have; below 0: none can be made now.
func (k *Offerer) make(ctx context.Context, s Sale, next []Entry, numbers []int64, requests []*reservation.ReserveRequest) (int64, error) {
	if len(requests) == 0 {
		return 0, nil
	}
	made, err := k.Store.Offer(ctx, s.ID, numbers, requests)
	if err != nil {
		k.askAgain(s.ID, numbers) // the same again has no other effect
		return 0, err
	}
	byNumber := make(map[int64]*Entry, len(next))
	for i := range next {
		byNumber[next[i].Number] = &next[i]
	}
	taken := int64(0)
	for i, o := range made {
		switch e := byNumber[numbers[i]]; {
		case o.Gone:
		case o.Err != nil: // the sale has changed, or it is another day for a limit
			k.askAgain(s.ID, numbers[i:])
			return -1, nil
		case o.Refusal == nil:
			taken += e.Quantity
		default:
			if stops(o.Refusal.Reason) {
				k.askAgain(s.ID, numbers[i:])
				return -1, nil
			}
			if err := k.unable(ctx, s, e, o.Refusal); err != nil {
				return 0, err
			}
		}
	}
	return taken, nil
}

// stops reports whether a refusal is one of the sale or its stock, and not of the person.
func stops(r sale.Reason) bool {
	switch r {
	case sale.LimitReached, sale.Pending, sale.TooManyUnpaid, sale.NoBuyer, sale.Malformed:
		return false
	}
	return true
}

// unable takes a person off the list who may not buy any more, and leaves alone one who may not buy now.
func (k *Offerer) unable(ctx context.Context, s Sale, e *Entry, no *sale.Refusal) error {
	if no.Reason == sale.Pending || no.Reason == sale.TooManyUnpaid {
		k.later[s.ID][e.Number] = time.Now().Add(retryAfter)
		return nil
	}
	_, err := k.Desk.Leave(ctx, s.ID, e.Number, e.Buyer, string(no.Reason))
	return err
}

// leaveAlone keeps the Offerer from asking for the same entry again before it can know the answer.
func (k *Offerer) leaveAlone(saleID string, number int64) {
	later := k.later[saleID]
	if later == nil {
		later = make(map[int64]time.Time)
		k.later[saleID] = later
	}
	now := time.Now()
	if len(later) > 4*offersAtOnce {
		for n, until := range later {
			if now.After(until) {
				delete(later, n)
			}
		}
	}
	later[number] = now.Add(time.Second)
}

// askAgain ends what leaveAlone has begun for some entries that may have no offer: people who came later must not get
// what they wait for.
func (k *Offerer) askAgain(saleID string, numbers []int64) {
	for _, n := range numbers {
		delete(k.later[saleID], n)
	}
}

// takeOff takes people off the list, and says why.
func (k *Offerer) takeOff(ctx context.Context, s Sale, people []Entry, why string) error {
	if !k.hasLease(ctx, s.ID) {
		return nil
	}
	for some := range slices.Chunk(people, offersAtOnce) {
		ops := make([]shard.Operation, len(some))
		for i := range some {
			ops[i] = some[i].Leaves(why)
		}
		if _, err := k.Store.RunPromised(ctx, s.ID, ops...); err != nil {
			return err
		}
	}
	return nil
}

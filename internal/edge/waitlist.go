package edge

import (
	"context"
	"errors"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/combine"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/store/waitlist"
)

// ErrNoWaitlist says that a sale has no waiting list.
var ErrNoWaitlist = errors.New("the sale has no waiting list")

// refuseTurn has the refusals of items for which others wait, without an allocation for each attempt.
var refuseTurn = sale.Refuse(sale.NotYourTurn)

// ErrOneItem says that an attempt to enter is not about one item, and ErrBundle that it is about a bundle.
var (
	ErrOneItem = errors.New("one item at a time can be waited for")
	ErrBundle  = errors.New("a bundle cannot be waited for: wait for one of its items")
)

// list is the waiting list of a sale, as far as this edge knows it; nil: there is none, or it is not known.
func (l *Listing) list() *waitlist.List {
	if f := l.view(); f != nil && f.fresh(f.now()) {
		return f.waits
	}
	return nil
}

// turn judges from memory whether others wait for what an attempt asks. listed: the person is on the list, or is not
// known, and may have an offer, so that only Redis decides. A refusal is shared.
func (e *Edge) turn(f *followed, a *sale.Attempt, lines []sale.Line) (no *sale.Refusal, listed bool) {
	if f.sale.Waitlist == nil || f.waits.IsEmpty() {
		return nil, false
	}
	secret := e.secret.Load()
	if secret == nil || a.Buyer == "" { // a check that does not read who buys must stop no person with an offer
		return nil, true
	}
	who := person{secret: secret, attempt: a}
	if f.waits.Has(who.buyer()) {
		return nil, true
	}
	for _, kind := range f.kinds {
		if hash := who.identity(kind); hash != "" && f.waits.Has(hash) {
			return nil, true
		}
	}
	if !f.fresh(f.now()) {
		return nil, false // Redis decides
	}
	for i := range lines {
		if f.waits.Awaited(&lines[i]) {
			return refuseTurn, false
		}
	}
	return nil, false
}

// firstOf is the refusal of an attempt that one of both refuses: what is sold out is so for those who wait too.
func firstOf(gone, turn *sale.Refusal) *sale.Refusal {
	if turn == nil || gone != nil && gone.Reason == sale.SoldOut {
		return gone
	}
	return turn
}

// accepts is how an attempt is reserved by a person who may have an offer: the identities that lua/accept.lua looks
// for. False: the person has none.
func (e *Edge) accepts(l *Listing, who *person, lines []sale.Line) (identities string, ok bool) {
	f := l.view()
	switch {
	case l.Sale.Waitlist == nil && (f == nil || f.waits.IsEmpty()):
		return "", false
	case l.Sale.Waitlist == nil: // people are being taken off the list: an offer that is open yet can be accepted
	case f != nil:
		if _, listed := e.turn(f, who.attempt, lines); !listed {
			return "", false
		}
	}
	return waitlist.IdentitiesText(l.Sale.KnownBy(), who.identity), true
}

// Enter puts a person on the waiting list of a sale for one item, or says why not. lines are the attempt's, as the sale
// resolved them.
func (e *Edge) Enter(parent context.Context, l *Listing, a *sale.Attempt, lines []sale.Line) (waitlist.Entered, *sale.Refusal, error) {
	switch {
	case l.Sale.Waitlist == nil:
		return waitlist.Entered{}, nil, ErrNoWaitlist
	case l.Sale.BundlesIn(a) != nil:
		return waitlist.Entered{}, nil, ErrBundle
	case len(lines) != 1:
		return waitlist.Entered{}, nil, ErrOneItem
	}
	secret := e.secret.Load()
	if secret == nil {
		return waitlist.Entered{}, nil, shard.ErrStarting
	}
	who := person{secret: secret, attempt: a}
	charged, _, no := charges(l, &who, lines, l.Now())
	if no != nil { // an identity is missing, or one order may not have so many
		return waitlist.Entered{}, no, nil
	}
	for i := range charged {
		if limit := charged[i].Limit; charged[i].Amount > limit.Max && !limit.Shadow { // no offer of so many can be made
			return waitlist.Entered{}, &sale.Refusal{Reason: sale.LimitReached, Limit: limit}, nil
		}
	}
	entered, no, err := e.desk.Enter(combine.Within(parent, e.shard.Timeout()), &waitlist.Entrant{
		Sale: l.Sale.ID, Cell: lines[0].Cell(), Quantity: lines[0].Quantity, Buyer: who.buyer(),
		Identities: waitlist.IdentitiesText(l.Sale.KnownBy(), who.identity), Most: l.Sale.Waitlist.Max,
	})
	if err == nil && no == nil {
		e.wakeOfferer()
	}
	return entered, no, err
}

// BuyerHash is the hash by which a buyer is known; empty: the edge does not know the secret yet.
func (e *Edge) BuyerHash(a *sale.Attempt) string {
	secret := e.secret.Load()
	if secret == nil {
		return ""
	}
	who := person{secret: secret, attempt: a}
	return who.buyer()
}

func (e *Edge) wakeOfferer() {
	select {
	case e.unitsBack <- struct{}{}:
	default:
	}
}

// makeOffers makes offers until ctx ends.
func (e *Edge) makeOffers(ctx context.Context) {
	k := waitlist.Offerer{Store: e.Store, Desk: e.desk, Sales: e.awaited, Wake: e.unitsBack, Log: e.log}
	k.Run(ctx)
}

// awaited calls yield for the sales that have people on their lists.
func (e *Edge) awaited(yield func(waitlist.Sale) bool) {
	secret := e.secret.Load()
	if secret == nil {
		return
	}
	for l := range e.Catalogue().All {
		list := l.list()
		if list == nil {
			continue
		}
		if people, _ := list.Size(); people == 0 {
			continue
		}
		s := waitlist.Sale{ID: l.Sale.ID, List: list, Least: l.leastOf, Request: func(entry *waitlist.Entry) (*reservation.ReserveRequest, *sale.Refusal) { return e.offerTo(l, entry) }}
		if l.Sale.Waitlist != nil {
			s.Offer = time.Duration(l.Sale.Waitlist.Offer)
		}
		if !yield(s) {
			return
		}
	}
}

// leastOf is how many units of a cell an order must have.
func (l *Listing) leastOf(cell string) int64 {
	line, _ := l.Sale.LineOf(cell)
	if item, ok := l.Sale.Item(line.SKU); ok {
		least, _ := item.Bounds()
		return least
	}
	return 1
}

// offerTo is the request that holds units for an entry.
func (e *Edge) offerTo(l *Listing, entry *waitlist.Entry) (*reservation.ReserveRequest, *sale.Refusal) {
	line, ok := l.Sale.LineOf(entry.Cell)
	if !ok {
		return nil, sale.Refuse(sale.UnknownItem)
	}
	line.Quantity = entry.Quantity
	lines := []sale.Line{line}
	// a limit may name an identity since the person has entered: it counts the order
	who := person{attempt: new(sale.Attempt), partly: true}
	kinds := l.Sale.KnownBy()
	for i, kind := range kinds {
		who.known[i].kind, who.known[i].hash = kind, entry.Identity(kind)
	}
	last := &who.known[len(kinds)]
	last.kind, last.hash = "buyer", entry.Buyer
	charged, _, no := charges(l, &who, lines, l.Now())
	if no != nil {
		return nil, no
	}
	return &reservation.ReserveRequest{
		Sale: l.Sale.ID, Version: l.Version, Buyer: entry.Buyer, Lines: lines, Charges: charged, HoldFor: time.Duration(l.Sale.Waitlist.Offer),
	}, nil
}

// OnList is how many people are on the waiting list of a sale, and how many of them have an offer. False: the sale
// has no list, or this edge does not follow it now.
func (e *Edge) OnList(l *Listing) (people, offered int, ok bool) {
	f := l.view()
	if f == nil || f.waits == nil || l.Sale.Waitlist == nil {
		return 0, 0, false
	}
	people, offered = f.waits.Size()
	return people, offered, true
}

// ListSummary is who is on the waiting list of a sale, and what became of those who were, over its life and all edges.
type ListSummary struct {
	waitlist.ListCounts
	// People is how many are on it, and Offered how many of them have an offer.
	People, Offered int
	// Most is how many it takes.
	Most int64
}

// NearlyFull reports whether operators are warned that the list will refuse people.
func (s *ListSummary) NearlyFull() bool { return int64(s.People)*10 >= s.Most*8 }

// List is the waiting list of a sale, with the people as this edge follows it or, where it does not, as Redis has them;
// nil: the sale has none.
func (e *Edge) List(ctx context.Context, l *Listing) (*ListSummary, error) {
	if l.Sale.Waitlist == nil {
		return nil, nil
	}
	data := e.shard.Data(l.Sale.ID)
	counts, err := waitlist.ReadCounts(ctx, data)
	if err != nil {
		return nil, err
	}
	s := &ListSummary{ListCounts: counts, Most: l.Sale.Waitlist.Max}
	if people, offered, follows := e.OnList(l); follows {
		s.People, s.Offered = people, offered
		return s, nil
	}
	s.People = int(counts.People)
	s.Offered, err = waitlist.OpenOffers(ctx, data)
	return s, err
}

// PauseOffers lets no more offers be made in a sale, at any edge, or lets them go on. It reports whether that changes anything.
func (e *Edge) PauseOffers(ctx context.Context, saleID string, stop bool, by string) (changed bool, err error) {
	return waitlist.PauseOffers(ctx, e.Store, saleID, stop, by)
}

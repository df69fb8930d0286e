package edge

import (
	"context"
	"crypto/hmac"
	"encoding/base64"
	"errors"
	"strings"
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
	if l.Sale.Waitlist == nil {
		return "", false
	}
	if f != nil {
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

// Waiting returns where a buyer, given by its hash, stands on the list of a sale. known: this edge follows the list;
// else another one knows. found: the buyer is on it, or was lately.
func (e *Edge) Waiting(l *Listing, buyer string) (p waitlist.EntryPlace, found, known bool) {
	list := l.list()
	if list == nil {
		return p, false, false
	}
	p, found = list.PlaceOf(buyer, time.Now())
	return p, found, true
}

// Withdraw takes a buyer, given by its hash, off the list of a sale. It reports whether the buyer was on it.
func (e *Edge) Withdraw(parent context.Context, l *Listing, buyer string) (bool, error) {
	p, found, known := e.Waiting(l, buyer)
	if !known {
		return false, shard.ErrStarting
	}
	if !found || p.Ended != "" {
		return false, nil
	}
	return e.desk.Leave(combine.Within(parent, e.shard.Timeout()), l.Sale.ID, p.Entry.Number, buyer, "left")
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

// ticketUse is for what tickets of waiting lists are made.
const ticketUse = "waitlist "

// WaitTicket names a buyer, given by its hash, on the waiting list of a sale. It tells nothing of the buyer, and
// cannot be guessed.
func (e *Edge) WaitTicket(saleID, buyer string) (string, error) {
	secret := e.secret.Load()
	if secret == nil {
		return "", shard.ErrStarting
	}
	sum := secret.Ticket(saleID, ticketUse+buyer)
	return saleID + "~" + buyer + base64.RawURLEncoding.EncodeToString(sum[:]), nil
}

// ReadWaitTicket returns the sale and the buyer's hash of a ticket; false: no edge has made it.
func (e *Edge) ReadWaitTicket(ticket string) (saleID, buyer string, ok bool) {
	saleID, rest, found := strings.Cut(ticket, "~")
	if !found || len(rest) < ticketLength {
		return "", "", false
	}
	buyer = rest[:len(rest)-ticketLength]
	want, err := e.WaitTicket(saleID, buyer)
	return saleID, buyer, err == nil && hmac.Equal([]byte(want), []byte(ticket))
}

// ticketLength is the length of the proof in a ticket.
const ticketLength = (16*8 + 5) / 6

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

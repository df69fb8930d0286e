package reservation

import (
	"context"
	"fmt"
	"time"

	"github.com/stockgate/stockgate/sale"
)

// Evidence is what a verified token says of a reservation that Redis may have lost.
type Evidence struct {
	Sale, ID string
	// Buyer is in clear for Edge.ConfirmWith; Store.Recreate takes its hash.
	Buyer        string
	Epoch        int64 // of the shard that held the stock
	Created, Exp time.Time
	Ref          string // the shop's own name of the order; empty: none
	Lines        []sale.Line
	// Charges are what it costs of the purchase limits. Edge.ConfirmWith fills them in.
	Charges []Charge
}

// Recreate confirms by the shop's word. A reservation of an older epoch that Redis
// does not know any more is made again from the evidence, if its units are there;
// else it fails with a RefundNeededError. It is journalled as recreated, and once
// it is there the record answers.
func (s *Store) Recreate(ctx context.Context, e *Evidence, cause string) (State, error) {
	if !validRef(e.Ref) {
		return "", fmt.Errorf("reservation %s: a ref has 1 to 128 printable ASCII characters without space", e.ID)
	}
	args := []any{e.ID, string(Shop), cause, e.Epoch, e.Buyer, msOf(e.Created), msOf(e.Exp), e.Ref, string(Backend), len(e.Lines)}
	for _, l := range e.Lines {
		if l.Quantity < 1 {
			return "", fmt.Errorf("reservation %s has %d units of %s", e.ID, l.Quantity, l.SKU)
		}
		args = append(args, l.Cell(), l.Quantity)
	}
	args = append(args, len(e.Charges))
	for _, c := range e.Charges {
		args = append(args, c.Field, c.Amount)
	}
	return s.settle(ctx, e.Sale, operation{"confirm", args})
}

// ConfirmWith is Recreate for an edge: it hashes the buyer, and charges him for what
// the evidence says. Of a limit's identities only the buyer is in a token; nobody
// else is charged.
func (e *Edge) ConfirmWith(ctx context.Context, ev *Evidence, cause string) (State, error) {
	secret := e.secret.Load()
	if secret == nil {
		return "", ErrStarting
	}
	l, ok := e.Catalogue().Sale(ev.Sale)
	if !ok {
		return "", ErrNoSale
	}
	hashed := *ev
	hashed.Buyer = secret.Identity("buyer", ev.Buyer)
	hashed.Charges = buyerCharges(l, secret, ev)
	return e.Store.Recreate(ctx, &hashed, cause)
}

// buyerCharges are what the evidence costs of the limits that count its buyer, in
// the windows in which it was made and which are not over.
func buyerCharges(l *Listing, secret *Secret, ev *Evidence) []Charge {
	s := l.Sale
	who := person{secret: secret, attempt: &sale.Attempt{Buyer: ev.Buyer}}
	var out []Charge
	for i := range s.Limits {
		limit := &s.Limits[i]
		amount := cost(limit, ev.Lines)
		if amount == 0 || limit.Every == "order" {
			continue
		}
		counter := s.Counter(i, ev.Created)
		if counter.To <= l.Now().UnixMilli() {
			continue
		}
		for kind := range limit.Per.All {
			if identity := who.identity(kind); kind == "buyer" && identity != "" {
				out = append(out, Charge{Limit: limit, Field: counter.Prefix + identity, Amount: amount, From: counter.From, To: counter.To})
			}
		}
	}
	return out
}

package edge

import (
	"context"

	"github.com/stockgate/stockgate/identity"
	"github.com/stockgate/stockgate/record"
	"github.com/stockgate/stockgate/reservation"
	"github.com/stockgate/stockgate/sale"
	"github.com/stockgate/stockgate/shard"
)

// ConfirmWith is Recreate for an edge: it hashes the buyer, and charges them for what
// the evidence says. A token has only the buyer of a limit's identities, so no other
// identity is charged. The error is shard.ErrStarting before the edge has the secret,
// and shard.ErrNoSale if it does not know the sale.
func (e *Edge) ConfirmWith(ctx context.Context, ev *reservation.Evidence, cause string) (record.State, error) {
	secret := e.secret.Load()
	if secret == nil {
		return "", shard.ErrStarting
	}
	l, ok := e.Catalogue().Sale(ev.Sale)
	if !ok {
		return "", shard.ErrNoSale
	}
	hashed := *ev
	hashed.Buyer = secret.Identity("buyer", ev.Buyer)
	hashed.Charges = buyerCharges(l, secret, ev)
	return e.Store.Recreate(ctx, &hashed, cause)
}

// buyerCharges returns what the evidence costs of the limits that count its buyer, in
// the windows of its time that are not over.
func buyerCharges(l *Listing, secret *identity.Secret, ev *reservation.Evidence) []reservation.Charge {
	s := l.Sale
	who := person{secret: secret, attempt: &sale.Attempt{Buyer: ev.Buyer}}
	var out []reservation.Charge
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
				out = append(out, reservation.Charge{Limit: limit, Field: counter.Prefix + identity, Amount: amount, From: counter.From, To: counter.To})
			}
		}
	}
	return out
}

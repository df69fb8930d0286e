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

// Before is a purchase that was made before the sale came here.
type Before struct {
	// Name says where it was read: the same name is the same purchase.
	Name string
	// Kind is the kind of identity by which the buyer is known, and Value is the identity as a
	// gate would read it.
	Kind, Value string
	// Orders is how many orders it was.
	Orders int64
	Lines  []sale.Line
}

// MoveIn is Store.MoveIn for an edge: it hashes the buyers as a gate does, and charges them for
// what they have bought, as of now. An identity of which the purchases say nothing is not
// charged.
func (e *Edge) MoveIn(ctx context.Context, id string, list []Before, cause string) (entered int64, err error) {
	secret := e.secret.Load()
	if secret == nil {
		return 0, shard.ErrStarting
	}
	current, err := e.Store.Load(ctx, id)
	if err != nil {
		return 0, err
	}
	now := e.Store.Now(id)
	purchases := make([]reservation.Purchase, len(list))
	for i, b := range list {
		who := person{secret: secret, attempt: &sale.Attempt{Identities: map[string]string{b.Kind: b.Value}}}
		if b.Kind == "buyer" {
			who.attempt.Buyer = b.Value
		}
		p := reservation.Purchase{ID: "moved-" + secret.Identity("moved", id+"\x00"+b.Name), Buyer: who.buyer(), Lines: b.Lines}
		for j := range current.Sale.Limits {
			limit := &current.Sale.Limits[j]
			amount := cost(limit, b.Lines)
			if amount > 0 && limit.Count == "orders" {
				amount = b.Orders
			}
			if amount == 0 || limit.Every == "order" {
				continue
			}
			counter := current.Sale.Counter(j, now)
			for kind := range limit.Per.All {
				if hash := who.identity(kind); kind == b.Kind && hash != "" {
					p.Charges = append(p.Charges, reservation.Charge{Limit: limit, Field: counter.Prefix + hash, Amount: amount, From: counter.From, To: counter.To})
				}
			}
		}
		purchases[i] = p
	}
	return e.Store.MoveIn(ctx, id, purchases, cause)
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

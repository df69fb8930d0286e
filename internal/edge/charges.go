package edge

import (
	"cmp"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/identity"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// charges returns what an attempt costs of the purchase limits that its lines concern,
// or its refusal, without asking Redis. Each identity of a limit is a charge of its
// own, to a counter named
//
//	limit|window|identity   window: "-" or its end in ms; identity: a keyed hash
//
// with the window by now, the time of the sale's Redis. An attempt that lacks an
// identity is refused or counted by the others, as the sale says. A limit of one
// order needs no counter. shadow is what a limit in shadow would have refused.
func charges(l *Listing, who *person, lines []sale.Line, now time.Time) (out []reservation.Charge, shadow, refusal *sale.Refusal) {
	s := l.Sale
	if len(s.Limits) == 0 {
		return nil, nil, nil
	}
	out = make([]reservation.Charge, 0, len(s.Limits))
	bundles := s.BundlesIn(who.attempt)
	var full *sale.Refusal // returned last: a missing identity comes first
	for i := range s.Limits {
		limit := &s.Limits[i]
		amount := cost(limit, lines, bundles)
		if amount == 0 {
			continue // the limit is about another item
		}
		counter, again := s.Counter(i, now), int64(0)
		if counter.To < s.EndsAt.UnixMilli() && amount <= limit.Max {
			again = counter.To
		}
		for kind := range limit.Per.All {
			identity := who.identity(kind)
			switch {
			case identity == "" && (s.Missing == sale.SkipMissing || who.partly):
			case identity == "" && limit.Shadow:
				shadow = cmp.Or(shadow, missing(kind))
			case identity == "":
				return nil, nil, missing(kind)
			case limit.Every != "order":
				out = append(out, reservation.Charge{
					Limit: limit, Field: counter.Prefix + identity, Amount: amount,
					From: counter.From, To: counter.To, Again: again,
				})
			case amount > limit.Max && limit.Shadow:
				shadow = cmp.Or(shadow, &sale.Refusal{Reason: sale.LimitReached, Limit: limit})
			case amount > limit.Max && full == nil:
				full = &sale.Refusal{Reason: sale.LimitReached, Limit: limit}
			}
		}
	}
	if full != nil {
		return nil, nil, full
	}
	return out, shadow, nil
}

// missing refuses an attempt without an identity that must be counted.
func missing(kind string) *sale.Refusal {
	if kind == "buyer" {
		return sale.Refuse(sale.NoBuyer)
	}
	return &sale.Refusal{Reason: sale.Malformed, Detail: "identity " + kind + " is missing"}
}

// cost returns what an order counts towards a limit; 0: the limit does not concern it. lines have the
// components of its bundles: these count only where the limit is narrowed to one of them.
func cost(limit *sale.Limit, lines, bundles []sale.Line) (amount int64) {
	for _, line := range lines {
		if limit.SKU == "" || limit.SKU == line.SKU {
			amount += line.Quantity
		}
	}
	for _, bundle := range bundles {
		if limit.SKU == bundle.SKU {
			amount += bundle.Quantity
		}
	}
	if amount > 0 && limit.Count == "orders" {
		return 1
	}
	return amount
}

// person has the identities of the buyer who makes an attempt. Each is hashed once,
// however many limits name it.
type person struct {
	secret  *identity.Secret
	attempt *sale.Attempt
	partly  bool                           // limits do not count an identity that is missing, whatever the sale says
	known   [8]struct{ kind, hash string } // there are six kinds
}

// identity returns the hash of an identity; empty: the attempt does not have it.
func (p *person) identity(kind string) string {
	for i := range p.known {
		known := &p.known[i]
		if known.kind == kind {
			return known.hash
		}
		if known.kind == "" {
			known.kind, known.hash = kind, p.hash(kind)
			return known.hash
		}
	}
	return p.hash(kind)
}

// buyer is the hash by which a reservation knows its buyer.
func (p *person) buyer() string {
	if p.attempt.Buyer == "" {
		return p.secret.Identity("buyer", "")
	}
	return p.identity("buyer")
}

func (p *person) hash(kind string) string {
	value := p.attempt.Identities[kind]
	if kind == "buyer" {
		value = p.attempt.Buyer
	}
	if value = sale.NormaliseIdentity(kind, value); value == "" {
		return ""
	}
	return p.secret.Identity(kind, value)
}

// owed returns the counters of unpaid holds that concern an attempt, or its refusal,
// without asking Redis. If the sale itself bounds unpaid holds, every identity that it
// names is required, as for purchase limits; the default counts those that there are.
func owed(l *Listing, who *person, mode record.Mode) (reservation.Owed, *sale.Refusal) {
	u := l.Sale.UnpaidOf(mode == record.ModeBackend)
	if u == nil {
		return reservation.Owed{}, nil
	}
	out := reservation.Owed{AtOnce: u.AtOnce, Ended: u.Ended, Within: time.Duration(u.Within)}
	for kind := range u.Per.All {
		identity := who.identity(kind)
		switch {
		case identity != "":
			out.Fields = append(out.Fields, kind+"|"+identity)
		case l.Sale.Unpaid != nil && l.Sale.Missing != sale.SkipMissing:
			return reservation.Owed{}, missing(kind)
		}
	}
	return out, nil
}

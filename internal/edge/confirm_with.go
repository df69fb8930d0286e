package edge

import (
	"context"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/identity"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
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
	ordered := &sale.Attempt{Buyer: ev.Buyer, Lines: ev.Ordered}
	hashed.Charges = chargesOfSold(l, secret, ordered, sold{lines: ev.Lines, bundles: l.Sale.BundlesIn(ordered)}, ev.Created)
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
		p := reservation.Purchase{ID: reservation.MovedInID(secret.Identity("moved", id+"\x00"+b.Name)), Buyer: who.buyer(), Lines: current.Sale.Unbundle(b.Lines)}
		bundles := current.Sale.BundlesIn(&sale.Attempt{Lines: b.Lines})
		for j := range current.Sale.Limits {
			limit := &current.Sale.Limits[j]
			amount := cost(limit, p.Lines, bundles)
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

// SoldUnits is what the shop says its order has, under the names that it has for items.
type SoldUnits map[string]int64

// ConfirmOrderEventually is ConfirmEventually where the shop says what it sold: in the same step
// what was held beyond it goes back on sale, and what was sold beyond the hold is reserved too,
// or is unbacked if its units are gone.
func (e *Edge) ConfirmOrderEventually(ctx context.Context, hold *reservation.Hold, a *sale.Attempt, cause string, units SoldUnits) (record.State, error) {
	o := outcome{sale: hold.Sale, id: hold.ID, kind: outcomeConfirm, source: reservation.SourceAnswer, cause: cause}
	l, listed := e.Catalogue().Sale(hold.Sale)
	secret := e.secret.Load()
	if !listed || secret == nil {
		e.log.Error("what the shop sold is not compared with what was reserved, because the sale is not known any more: check the order",
			zap.String("sale", hold.Sale), zap.String("reservation", hold.ID))
		return e.settled(ctx, o)
	}
	if gone := slices.IndexFunc(a.Lines, func(line sale.Line) bool { _, ok := l.Sale.Item(line.SKU); return !ok }); gone >= 0 {
		e.log.Error("what the shop sold is not compared with what was reserved, because the sale does not list an item of the order any more: check the order",
			zap.String("sale", hold.Sale), zap.String("reservation", hold.ID), zap.String("item", a.Lines[gone].SKU))
		return e.settled(ctx, o)
	}
	lines, unknown := soldLines(l.Sale, hold, a.Region, units)
	for _, name := range unknown {
		if len(e.Catalogue().Listing(name)) > 0 {
			e.log.Error("the shop sold an item of another sale with this order, and it was not reserved: check the order, its cart was changed after it was looked up",
				zap.String("sale", hold.Sale), zap.String("reservation", hold.ID), zap.String("item", name), zap.Int64("units", units[name]))
		}
	}
	more := beyond(lines, hold.Lines)
	o.order = &reservation.ShopOrder{Lines: lines, Charges: chargesOfSold(l, secret, a, moreSold(l.Sale, a, units, lines, more), hold.Created)}
	return e.settled(ctx, o)
}

// soldLines returns what was sold as lines of the sale, and the names that it does not list. The
// shop names no region: units are those of the regions that were reserved, in their order, and
// what is beyond them is of the first.
func soldLines(s *sale.Sale, hold *reservation.Hold, region string, sold SoldUnits) (lines []sale.Line, unknown []string) {
	left, regions := make(map[string]int64, len(sold)), make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(sold)) {
		item, ok := s.Item(name)
		if !ok {
			unknown = append(unknown, name)
			continue
		}
		line := sale.Line{SKU: item.SKU, Quantity: sold[name], Region: region}
		for _, l := range s.Unbundle([]sale.Line{line}) {
			if left[l.SKU] += l.Quantity; item.IsBundle() || len(item.Regions) > 0 {
				regions[l.SKU] = l.Region
			}
		}
	}
	for _, l := range hold.Lines {
		l.Quantity = min(l.Quantity, left[l.SKU])
		if left[l.SKU] -= l.Quantity; l.Quantity > 0 {
			lines = append(lines, l)
		}
	}
	for _, sku := range slices.Sorted(maps.Keys(left)) {
		if left[sku] == 0 {
			continue
		}
		if i := slices.IndexFunc(lines, func(l sale.Line) bool { return l.SKU == sku }); i >= 0 {
			lines[i].Quantity += left[sku]
		} else {
			lines = append(lines, sale.Line{SKU: sku, Region: regions[sku], Quantity: left[sku]})
		}
	}
	return lines, unknown
}

// beyond returns the units of lines that are not held.
func beyond(lines, held []sale.Line) (more []sale.Line) {
	for _, l := range lines {
		for _, h := range held {
			if h.SKU == l.SKU && h.Region == l.Region {
				l.Quantity -= h.Quantity
			}
		}
		if l.Quantity > 0 {
			more = append(more, l)
		}
	}
	return more
}

// sold is what an order has that its buyer was not charged for.
type sold struct {
	lines, bundles []sale.Line
	// paid are its other lines, bundles too.
	paid []sale.Line
}

// moreSold is what the shop has sold beyond what an attempt reserved. lines are all that it sold, more
// are those beyond it.
func moreSold(s *sale.Sale, a *sale.Attempt, units SoldUnits, lines, more []sale.Line) sold {
	reserved := s.BundlesIn(a)
	named := new(sale.Attempt)
	for name, n := range units {
		named.Lines = append(named.Lines, sale.Line{SKU: name, Quantity: n})
	}
	bundles := s.BundlesIn(named)
	return sold{lines: more, bundles: beyond(bundles, reserved), paid: append(beyond(lines, more), reserved...)}
}

// chargesOfSold returns what was sold costs of the limits that count one of the
// buyer's identities, in the windows of their time that are not over. A limit on orders that has
// counted the order, for other lines of it that are paid, does not count it again.
func chargesOfSold(l *Listing, secret *identity.Secret, a *sale.Attempt, order sold, created time.Time) []reservation.Charge {
	s := l.Sale
	who := person{secret: secret, attempt: a}
	var out []reservation.Charge
	for i := range s.Limits {
		limit := &s.Limits[i]
		amount := cost(limit, order.lines, order.bundles)
		if amount == 0 || limit.Every == "order" || limit.Count == "orders" && cost(limit, order.paid, nil) > 0 {
			continue
		}
		counter := s.Counter(i, created)
		if counter.To <= l.Now().UnixMilli() {
			continue
		}
		for kind := range limit.Per.All {
			if identity := who.identity(kind); identity != "" {
				out = append(out, reservation.Charge{Limit: limit, Field: counter.Prefix + identity, Amount: amount, From: counter.From, To: counter.To})
			}
		}
	}
	return out
}

package recovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// Shop gives Reconcile the shop's orders: as a list, or by asking.
type Shop struct {
	// Orders are the reservation ids or refs of all the shop's orders. They are used if
	// Ask is nil.
	Orders []string
	// Units are the units that the shop has sold with an order of Orders, by SKU; those under an
	// empty SKU are of any items. The units of an order that has none here are not compared.
	Units map[string]map[string]int64
	// TakeOver takes the units of orders without a reservation out of the stock. The sale must not be open.
	TakeOver bool
	// AsOf is when the list was made: later orders need not be in it.
	AsOf time.Time
	// Ask asks the shop whether it has the order of one reservation; nil: Orders are used.
	// An error means that the shop gave no answer.
	Ask func(ctx context.Context, gate, id, ref string) (has bool, err error)
	// AskMost bounds the reservations about which Ask is called.
	AskMost int
}

// shop compares the reservations with the shop's orders.
func (r *run) shop(ctx context.Context) error {
	switch {
	case r.Shop == nil:
		return nil
	case r.Shop.Ask != nil:
		r.report.Notes = append(r.report.Notes, "the units of the shop's orders are not compared, because a probe does not ask for them: give a file of its orders with a column quantity")
		return r.askShop(ctx)
	case len(r.Shop.Units) == 0:
		r.report.Notes = append(r.report.Notes, "the units of the shop's orders are not compared, because the list has none: give a column quantity, and sku where an order has several items")
	}
	ordered, err := r.orders(ctx)
	if err != nil {
		return err
	}
	holds, moved := r.soldBeyond(), 0
	for _, id := range slices.Sorted(maps.Keys(r.history.reservations)) {
		switch t := r.history.reservations[id]; {
		case t.State != record.Confirmed, ordered[id], ordered[holds[id]]:
		case reservation.IsMovedIn(id):
			moved++
		case t.cameBack(), !t.Changed.Before(r.Shop.AsOf):
		default:
			r.notInShop(id)
		}
	}
	r.noteTakenOver(moved)
	return nil
}

// orders judges each order of the shop's list, and returns the reservations that the list names.
func (r *run) orders(ctx context.Context) (map[string]bool, error) {
	refs := make(map[string][]string)
	for id, t := range r.history.reservations {
		if t.Ref != "" {
			refs[t.Ref] = append(refs[t.Ref], id)
		}
	}
	if err := r.knowsNames(refs); err != nil {
		return nil, err
	}
	ordered := make(map[string]bool)
	seen := make(map[string]bool) // the admin API takes a list as it is: it may repeat an order, or have its id and its ref
	for _, name := range r.Shop.Orders {
		if seen[name] {
			continue
		}
		seen[name] = true
		id := name
		if r.history.reservations[name] == nil {
			if same := r.ambiguous(refs[name]); same != nil {
				r.sameRef(name, same)
				for _, id := range same {
					ordered[id] = true
				}
				continue
			}
			id = r.best(refs[name])
		}
		if id == "" && r.Shop.TakeOver {
			if err := r.takeOver(ctx, name); err != nil {
				return nil, err
			}
			continue
		}
		if id == "" {
			r.report.add(Difference{
				Kind: "shop", Name: name, Text: fmt.Sprintf("the shop has an order %s, and no reservation goes by this name", name),
				Cause: "the order did not come through the gate, or it is of another sale", Repair: "none: see how it came into the shop; if the gate was bypassed, --take-over takes its units out of the stock",
			})
			continue
		}
		ordered[id] = true
		r.compareUnits(name, id)
		if id != name && seen[id] {
			continue
		}
		seen[id] = true
		if err := r.inShop(ctx, id); err != nil {
			return nil, err
		}
	}
	return ordered, nil
}

// soldBeyond returns the reservations of what was sold beyond holds, each with the reservation of
// its hold: the shop has them in one order, which names that one.
func (r *run) soldBeyond() map[string]string {
	holds := make(map[string]string)
	for id := range r.history.reservations {
		if more := reservation.MoreOf(id); r.history.reservations[more] != nil {
			holds[more] = id
		}
	}
	return holds
}

// cameBack reports whether all units of a confirmed reservation were returned: the shop may have
// its order or not.
func (t *expected) cameBack() bool {
	left := int64(0)
	for _, l := range t.Lines {
		left += l.Units
	}
	for _, l := range t.Returned {
		left -= l.Units
	}
	return len(t.Returned) > 0 && left == 0
}

func (r *run) noteTakenOver(purchases int) {
	if purchases > 0 {
		r.report.Notes = append(r.report.Notes, fmt.Sprintf("%d purchases that were taken over are not compared with the shop: no order names their reservations", purchases))
	}
}

// ambiguous returns the reservations with a ref if they are of two buyers now; otherwise nil.
func (r *run) ambiguous(ids []string) (same []string) {
	buyers := make(map[string]bool)
	for _, id := range slices.Sorted(slices.Values(ids)) {
		if t := r.history.reservations[id]; t.BindingRank("") > 0 {
			buyers[t.Buyer], same = true, append(same, id)
		}
	}
	if len(buyers) < 2 {
		return nil
	}
	return same
}

// sameRef reports an order whose name two buyers' reservations have.
func (r *run) sameRef(name string, ids []string) {
	words := make([]string, len(ids))
	for i, id := range ids {
		t := r.history.reservations[id]
		words[i] = fmt.Sprintf("%s (%s, buyer %s)", id, t.State, t.Buyer)
	}
	r.report.add(Difference{
		Kind: "shop", Name: name, Text: fmt.Sprintf("the shop has an order %s, and %d reservations go by this ref: %s", name, len(ids), strings.Join(words, ", ")),
		Cause: "two buyers used the same ref", Repair: "none: see whose order it is, and give its reservation id instead of the ref",
	})
}

// best returns the reservation with an order's ref: of several, the confirmed one.
func (r *run) best(ids []string) (best string) {
	rank := map[record.State]int{record.Confirmed: 4, record.InDoubt: 3, record.Unbacked: 2, record.Held: 1}
	for _, id := range slices.Sorted(slices.Values(ids)) {
		if best == "" || rank[r.history.reservations[id].State] > rank[r.history.reservations[best].State] {
			best = id
		}
	}
	return best
}

// inShop judges a reservation of which the shop has the order.
func (r *run) inShop(ctx context.Context, id string) error {
	state := r.history.reservations[id].State
	d := Difference{Kind: "shop", Name: id}
	switch state {
	case record.Confirmed, record.Held: // the shop's answer about a hold is on its way
		return nil
	case record.InDoubt:
		d.Text, d.Cause = fmt.Sprintf("reservation %s is in doubt, and the shop has the order", id), "the shop's answer was lost or unclear"
		d.Repair, d.Repairable = "confirm it", true
		if r.Repair {
			_, err := r.store.Confirm(ctx, r.sale, id, reservation.SourceOperator, "reconcile")
			if changedMeanwhile(err) {
				d.Text = fmt.Sprintf("reservation %s was in doubt, and the shop has the order, but it has changed meanwhile: %v", id, err)
				d.Cause, d.Repair, d.Repairable = "it was settled or deleted while the sale was compared", "none: run reconcile again, which says what to do", false
				break
			}
			if err != nil {
				return fmt.Errorf("confirming %s: %w", id, err)
			}
			d.Repaired = true
		}
	case record.Unbacked:
		d.Text, d.Cause = fmt.Sprintf("reservation %s is unbacked: the shop has the order, and its units were sold to others", id), "the shop took it after it had been given up"
		d.Repair = "none: refund it, or add units and confirm it with `caddy stockgate reservation confirm`"
	default:
		d.Text, d.Cause = fmt.Sprintf("reservation %s is %s, and the shop has the order", id, state), "the shop took it after the hold had ended"
		d.Repair = fmt.Sprintf("none: confirm it with `caddy stockgate reservation confirm %s`, or cancel the order", id)
	}
	r.report.add(d)
	return nil
}

// changedMeanwhile reports whether a hold could not be confirmed because its state has changed since
// the history was read.
func changedMeanwhile(err error) bool {
	_, conflict := errors.AsType[*reservation.ConflictError](err)
	_, refund := errors.AsType[*reservation.RefundNeededError](err)
	return conflict || refund || errors.Is(err, reservation.ErrNotFound)
}

func (r *run) notInShop(id string) {
	r.report.add(Difference{
		Kind: "shop", Name: id, Text: fmt.Sprintf("reservation %s is confirmed, and the shop does not have the order", id),
		Cause:  "the shop has cancelled or lost it, or has answered that it took what it did not",
		Repair: fmt.Sprintf("none, nothing is released by a guess: if the order is gone, give its units back with `caddy stockgate reservation return %s`", id),
	})
}

// askShop asks about reservations in doubt first, then about those that changed last.
func (r *run) askShop(ctx context.Context) error {
	ids := slices.Collect(maps.Keys(r.history.reservations))
	holds, moved := r.soldBeyond(), 0
	ids = slices.DeleteFunc(ids, func(id string) bool {
		t := r.history.reservations[id]
		switch {
		case t.State == record.Held, t.State == record.Confirmed && t.cameBack():
			return true
		case reservation.IsMovedIn(id):
			moved++
			return true
		}
		return holds[id] != "" && t.State != record.Confirmed // the shop's answer is about the hold
	})
	r.noteTakenOver(moved)
	slices.SortFunc(ids, func(a, b string) int {
		x, y := r.history.reservations[a], r.history.reservations[b]
		if open := func(t *expected) bool { return t.State == record.InDoubt || t.State == record.Unbacked }; open(x) != open(y) {
			if open(x) {
				return -1
			}
			return 1
		}
		return y.Changed.Compare(x.Changed)
	})
	if more := len(ids) - r.Shop.AskMost; more > 0 {
		r.report.Notes = append(r.report.Notes, fmt.Sprintf("the shop was not asked about %d reservations that changed longest ago: give a file of its orders", more))
		ids = ids[:r.Shop.AskMost]
	}
	silent := 0
	for _, id := range ids {
		t, name := r.history.reservations[id], cmp.Or(holds[id], id)
		named := r.history.reservations[name]
		has, err := r.Shop.Ask(ctx, named.Gate, name, named.Ref)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			silent++
		case has:
			if err := r.inShop(ctx, id); err != nil {
				return err
			}
		case t.State == record.Confirmed:
			r.notInShop(id)
		}
	}
	if silent > 0 {
		r.report.Notes = append(r.report.Notes, fmt.Sprintf("of %d reservations the shop did not say whether it has the order, or it could not be asked: their gate has no probe, or their ref is that of another reservation too", silent))
	}
	return nil
}

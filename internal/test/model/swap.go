package model

import (
	"cmp"
	"slices"
	"strings"
)

// Swap makes another hold in the place of one whose cart was changed.
type Swap struct {
	Old string
	New Reserve
	// Identities are those by which the buyer is known on the waiting list.
	Identities string
}

// Swapped is the cause of a hold that was released because another one took its place.
const Swapped = "swapped for another cart"

// Run is the row "swap": all of it happens, or nothing.
func (o Swap) Run(s *Shard) Reply {
	old := s.find(o.Old)
	switch {
	case s.Records[o.New.ID] != nil || !s.Exists:
		return o.New.run(s)
	case old == nil:
		return Reply{"not_found"}
	case old.State != Held || old.Mode != "backend" || o.New.Ref == "" || old.Ref != o.New.Ref || old.Buyer != o.New.Buyer || keyOnly(old.Guard) != "":
		return Reply{"conflict", string(old.State)}
	case old.Guard != "" && s.Bindings[old.Guard] == o.Old || s.owner(o.New.guard()) != "":
		return Reply{"at_shop"}
	}
	if owner := s.ordered(o.New.Ref, false, o.New.Buyer); owner != o.Old {
		if owner == "" {
			owner = o.Old
		}
		return Reply{"conflict", string(s.Records[owner].State)}
	}
	ids, _ := s.under(o.New.Ref)
	for _, id := range ids {
		if id != o.Old && s.listed(id, o.New.Ref) && s.Records[id].Buyer == o.New.Buyer {
			return Reply{"conflict", string(s.Records[id].State)}
		}
	}
	before := *old
	left := old.Deadline - s.Now()
	if min(o.New.HoldFor, left) <= o.New.Margin {
		return Reply{"conflict", "held"}
	}
	o.New.Margin += left - min(o.New.HoldFor, left)
	o.New.HoldFor = left
	after := s.Clone()
	after.become(o.Old, Released, Swapped)
	o.New.back = slices.Concat(before.Lines, after.takeOffer(o.New.Buyer, o.Identities, o.New.Lines, before.Lines))
	rest := beyond(before.Lines, o.New.Lines)
	slices.SortFunc(rest, func(a, b Line) int { return cmp.Compare(a.Cell, b.Cell) })
	if refused := o.New.refusal(after); refused != nil {
		switch refused[0] {
		case "sold_out", "all_held": // as they are, with the old hold
			c, _ := s.Cell(o.New.Lines[refused[1].(int64)-1].Cell)
			refused[2], refused[3], refused[4] = c.Available, c.Stock-c.Confirmed, int64(len(s.Journal))
		}
		return refused
	}
	if len(rest) > 0 {
		now := after.Now()
		r := &Record{
			State: Held, Deadline: before.Deadline, Exp: before.Exp, Created: now - (before.Changed - before.Created), Changed: now,
			Mode: "backend", Buyer: before.Buyer, Cause: Swapped, Version: after.Version, Lines: rest,
		}
		after.Records[o.Old+"+"] = r
		after.record(Entry{Kind: "held", ID: o.Old + "+", Lines: rest, Buyer: r.Buyer, Cause: Swapped, Record: r.Text()})
	}
	*s = *after
	o.New.Print = "+" + o.Old
	return o.New.run(s)
}

// refusal is why an attempt would be refused now; nil: it would not.
func (o Reserve) refusal(s *Shard) Reply {
	switch reply := o.run(s.Clone()); reply[0] {
	case "ok":
		return nil
	default:
		return reply
	}
}

// mostSwaps is how many carts of one order undoSwap looks through.
const mostSwaps = 64

// inPlaceOf is the hold whose place a reservation took; empty: none.
func (r *Record) inPlaceOf() string {
	if old, ok := strings.CutPrefix(r.Print, "+"); ok && keyOnly(r.Guard) == "" {
		return old
	}
	return ""
}

// earlier returns the id of the hold whose place a hold took, if the shop may still sell with its
// token; empty: there is none.
func (s *Shard) earlier(r *Record) string {
	id := r.inPlaceOf()
	old := s.find(id)
	if r.State != Held && r.State != InDoubt || old == nil || old.State != Released || old.Cause != Swapped || s.tooSoon(old) == 0 {
		return ""
	}
	return id
}

// holdAgain holds for the token of a hold that was swapped, as long as that is good. Its margin is
// what the present lead tells, from 0 to that of the hold in its place; most below 0: that is not known.
func (s *Shard) holdAgain(id, old string, most int64) {
	if rest := s.Records[old+"+"]; rest != nil && rest.State == Held {
		s.become(old+"+", Released, Swapped)
	}
	r := *s.Records[old]
	if i, _ := s.short(r.Lines, available); i >= 0 {
		return
	}
	margin := r.Deadline - r.Exp - s.Lead
	switch {
	case most >= 0 && (margin < 0 || margin > most):
		margin = most
	case margin < 0:
		margin = 0
	}
	r.Created = s.Now() - (r.Deadline - r.Exp - margin)
	r.State, r.Changed, r.Cause, r.Guard, r.Returned, r.Probes = Held, s.Now(), Swapped, "", nil, Probes{}
	s.Records[id] = &r
	s.take(id, Held)
	s.record(Entry{Kind: "held", ID: id, Lines: r.Lines, Buyer: r.Buyer, Cause: Swapped, Record: r.Text()})
}

// undoSwap releases what was held for another cart since, if a hold that was swapped can have
// its units then.
func (s *Shard) undoSwap(id string, r *Record) {
	after := s.Clone()
	ids := []string{id + "+"}
	for last, n := s.Bindings[refField(r.Buyer, r.Ref)], 0; last != id && s.Records[last] != nil && n < mostSwaps; n++ {
		ids = append(ids, last)
		if last = s.Records[last].inPlaceOf(); last != "" {
			ids = append(ids, last+"+")
		}
	}
	for _, other := range ids {
		if o := after.Records[other]; o != nil && o.State == Held && o.Buyer == r.Buyer {
			after.become(other, Released, Swapped)
		}
	}
	if i, _ := after.short(r.Lines, available); i < 0 {
		*s = *after
	}
}

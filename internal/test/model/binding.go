package model

import "strings"

// bound returns the reservation that an attempt belongs to already, by its key, its
// lines or its ref; nil: none.
func (s *Shard) bound(guard, print, ref string, shared bool, buyer string, lines []Line) Reply {
	if id := s.owner(guard); id != "" {
		if guard != keyOnly(guard) {
			return s.belongs("single", id, true)
		}
		return s.belongs("key", id, s.Records[id].Print == print)
	}
	if id := s.ordered(ref, shared, buyer); id != "" {
		r := s.Records[id]
		return s.belongs("ref", id, r.Buyer == buyer && sameGuard(r.Guard, guard) && sameUnits(r.Lines, lines) && len(r.Returned) == 0)
	}
	return nil
}

// sameGuard reports whether two guards may be of the same order: two that are made of lines tell it.
func sameGuard(a, b string) bool {
	return a == b || a == "" || b == "" || keyOnly(a) != "" || keyOnly(b) != ""
}

func (s *Shard) belongs(by, id string, same bool) Reply {
	r := s.Records[id]
	n := int64(0)
	if same {
		n = 1
	}
	return Reply{"bound", by, id, r.told(), n, r.Created, r.Deadline - s.Lead, r.Exp, r.Changed - s.Lead, s.Epoch}
}

// ordered is the reservation that a ref belongs to: the buyer's own or, for a shared
// ref, any buyer's; empty: none.
func (s *Shard) ordered(ref string, shared bool, buyer string) string {
	if ref == "" {
		return ""
	}
	if id := s.owner(refField(buyer, ref)); id != "" {
		return id
	}
	ids, _ := s.under(ref)
	for _, id := range ids {
		if s.listed(id, ref) && (shared || s.Records[id].Buyer == buyer) {
			return id
		}
	}
	return ""
}

// owner is the reservation for which a binding is in force; empty: none.
func (s *Shard) owner(field string) string {
	id, ok := s.Bindings[field]
	if ok && s.binds(s.Records[id], field) {
		return id
	}
	return ""
}

// binds reports whether attempts with a field get a reservation. A hold keeps its fields. A sold
// reservation keeps its ref for ever, and its key for a while.
func (s *Shard) binds(r *Record, field string) bool {
	if (r.State == Confirmed || r.State == Unbacked) && field[0] == 'k' && s.Now() >= r.Changed+r.KeyTTL && s.Time >= s.Ends {
		return false
	}
	return s.has(r, field)
}

// has reports whether a reservation has a field that names it, whatever the time is.
func (s *Shard) has(r *Record, field string) bool {
	return (r.Guard == field || refField(r.Buyer, r.Ref) == field) && s.keeps(r, field)
}

// take gives a reservation the fields that it asks for and that no other has. A
// confirmed one also takes them from one that is not confirmed, which may yet end.
func (s *Shard) take(id string, state State) {
	r := s.Records[id]
	for _, field := range []string{keyOnly(r.Guard), refField(r.Buyer, r.Ref)} {
		if field != "" && !s.taken(field, state) {
			s.Bindings[field] = id
		}
	}
	s.list(id, r.Ref)
}

// taken does not ask what time it is, because the journal does not tell.
func (s *Shard) taken(field string, state State) bool {
	r := s.Records[s.Bindings[field]]
	return r != nil && s.has(r, field) && (state != Confirmed || r.State == Confirmed)
}

// free removes bindings that do not belong to a reservation's state, whatever the time is.
func (s *Shard) free(id string) {
	r := s.Records[id]
	for _, field := range []string{r.Guard, refField(r.Buyer, r.Ref)} {
		if field != "" && s.Bindings[field] == id && !s.keeps(r, field) {
			delete(s.Bindings, field)
		}
	}
	if r.State == Released || r.State == Expired {
		s.unlist(id, r.Ref)
	}
}

// keeps says which bindings belong to a state, whatever the time is.
func (s *Shard) keeps(r *Record, field string) bool {
	switch r.State {
	case Held, InDoubt:
		return true
	case Confirmed, Unbacked:
		return field[0] != 'd'
	}
	return false
}

// keyOnly is the binding of an idempotency key; empty: it is of something else.
func keyOnly(guard string) string {
	if strings.HasPrefix(guard, "k|") {
		return guard
	}
	return ""
}

func refField(buyer, ref string) string {
	if ref == "" {
		return ""
	}
	return "b|" + buyer + "|" + ref
}

// Lookup finds the reservation that an attempt belongs to, without making one.
type Lookup struct {
	Guard, Print, Ref, Buyer string
	Shared                   bool
	Lines                    []Line
}

// Run changes nothing.
func (o Lookup) Run(s *Shard) Reply {
	if bound := s.bound(o.Guard, o.Print, o.Ref, o.Shared, o.Buyer, o.Lines); bound != nil {
		return bound
	}
	return Reply{"ok"}
}

// Free lets the same buyer buy the same again while the hold goes on.
type Free struct{ ID string }

// Run leaves keys and refs alone.
func (o Free) Run(s *Shard) Reply {
	r := s.find(o.ID)
	if r == nil {
		return Reply{"not_found"}
	}
	if strings.HasPrefix(r.Guard, "d|") && s.Bindings[r.Guard] == o.ID {
		delete(s.Bindings, r.Guard)
		s.touch()
	}
	if _, there := s.Queue.AtShop[o.ID]; there && r.State == Held && !r.waits() { // the shop has answered: another order may come
		delete(s.Queue.AtShop, o.ID)
		s.touch()
	}
	return Reply{"ok", string(r.State)}
}

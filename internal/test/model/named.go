package model

import (
	"slices"
	"strings"
)

// MostNamed is how many reservations are found by one ref.
const MostNamed = 16

// under are the reservations that are found by a ref, oldest first; more: there are others,
// which are not.
func (s *Shard) under(ref string) (ids []string, more bool) {
	if first := s.Bindings["r|"+ref]; first != "" {
		ids = append(ids, first)
	}
	for _, word := range strings.Fields(s.Bindings["m|"+ref]) {
		if word == "+" {
			more = true
		} else {
			ids = append(ids, word)
		}
	}
	return ids, more
}

// listed reports whether a reservation may be found by a ref.
func (s *Shard) listed(id, ref string) bool {
	r := s.Records[id]
	return r != nil && r.Ref == ref && (r.State == Held || r.State == InDoubt || r.State == Confirmed || r.State == Unbacked)
}

// list makes a reservation findable by its ref.
func (s *Shard) list(id, ref string) {
	if ref == "" {
		return
	}
	before, more := s.under(ref)
	var ids []string
	for _, other := range before {
		if other != id && s.listed(other, ref) {
			ids = append(ids, other)
		}
	}
	if len(ids) < MostNamed {
		ids = append(ids, id)
	} else {
		more = true
	}
	s.setUnder(ref, ids, more)
}

// listSold makes a confirmed reservation findable by its ref: where there is no room, in the place of
// the last one that is not confirmed.
func (s *Shard) listSold(id string) {
	r := s.find(id)
	if r == nil || r.State != Confirmed || r.Ref == "" {
		return
	}
	ids, _ := s.under(r.Ref)
	if slices.Contains(ids, id) {
		return
	}
	s.list(id, r.Ref)
	s.touch()
	ids, more := s.under(r.Ref)
	for i := len(ids) - 1; i >= 0 && !slices.Contains(ids, id); i-- {
		if other := s.Records[ids[i]]; other == nil || other.State != Confirmed {
			ids[i] = id
			s.setUnder(r.Ref, ids, more)
		}
	}
}

// noteEnd makes a reservation findable by its ref that has ended and may still be asked for.
func (s *Shard) noteEnd(id string) {
	r := s.Records[id]
	if r.Ref == "" {
		return
	}
	if r.staysFound() {
		s.Bindings["x|"+r.Ref] = id
	} else {
		s.forgetEnd(id, r.Ref)
	}
}

func (r *Record) staysFound() bool {
	return r.State == Expired || r.State == Released && (strings.HasPrefix(r.Cause, "webhook") || strings.HasPrefix(r.Cause, "api"))
}

func (s *Shard) forgetEnd(id, ref string) {
	if s.Bindings["x|"+ref] == id {
		delete(s.Bindings, "x|"+ref)
	}
}

func (s *Shard) unlist(id, ref string) {
	if ref == "" {
		return
	}
	before, more := s.under(ref)
	var ids []string
	for _, other := range before {
		if other != id {
			ids = append(ids, other)
		}
	}
	s.setUnder(ref, ids, more)
}

func (s *Shard) setUnder(ref string, ids []string, more bool) {
	delete(s.Bindings, "r|"+ref)
	delete(s.Bindings, "m|"+ref)
	var others []string
	if len(ids) > 0 {
		s.Bindings["r|"+ref], others = ids[0], ids[1:]
	}
	if more {
		others = append(others[:len(others):len(others)], "+")
	}
	if len(others) > 0 {
		s.Bindings["m|"+ref] = strings.Join(others, " ")
	}
}

// checkUnder says what is wrong with the fields of a ref: one names a reservation that
// it must not, or a reservation is missing.
func (s *Shard) checkUnder(ref string) string {
	ids, more := s.under(ref)
	found := make(map[string]bool, len(ids))
	for _, id := range ids {
		if !s.listed(id, ref) || found[id] {
			return "the ref " + ref + " names " + id
		}
		found[id] = true
	}
	for id := range s.Records {
		if !more && s.listed(id, ref) && !found[id] {
			return id + " is not found by its ref " + ref
		}
	}
	return ""
}

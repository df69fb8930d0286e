package model

import (
	"cmp"
	"slices"
)

// Align ends the lead of the shard's clock over Time: every hold keeps the time that it
// has left.
type Align struct{ Cause string }

// Run moves what is held, then what is in doubt, the oldest first.
func (o Align) Run(s *Shard) Reply {
	if !s.Exists {
		return Reply{"no_sale"}
	}
	lead := s.Now() - s.Time
	if lead == 0 && s.Lead == 0 {
		return Reply{"ok", int64(0), int64(0)}
	}
	var ids []string
	for id, r := range s.Records {
		if r.State == Held || r.State == InDoubt {
			ids = append(ids, id)
		}
	}
	at := func(r *Record) int64 {
		if r.State == Held {
			return r.Deadline
		}
		return r.Changed
	}
	slices.SortFunc(ids, func(a, b string) int {
		x, y := s.Records[a], s.Records[b]
		return cmp.Or(cmp.Compare(x.State, y.State), cmp.Compare(at(x), at(y)), cmp.Compare(a, b)) // "held" is before "in_doubt"
	})
	s.lead(0)
	s.Clock = s.Time
	s.moveTimes(lead)
	for _, id := range ids {
		r := s.Records[id]
		r.Deadline -= lead
		r.Changed -= lead
		if r.Probes.Tries > 0 {
			r.Probes.Next -= lead
		}
		s.moveOrder(id, lead)
		s.record(Entry{Kind: "extended", ID: id, Was: r.State, Buyer: r.Buyer, Cause: o.Cause, Record: r.Text()})
	}
	return Reply{"ok", lead, int64(len(ids))}
}

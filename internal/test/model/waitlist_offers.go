package model

import (
	"cmp"
	"slices"
	"strconv"
)

// Offers lets no more offers be made, or lets them go on.
type Offers struct {
	Pause bool
	Cause string
}

// Run changes nothing else.
func (o Offers) Run(s *Shard) Reply {
	l := &s.Waitlist
	switch {
	case !s.Exists:
		return Reply{"no_sale"}
	case o.Pause == (l.NoOffers > 0):
		return Reply{"ok", int64(0)}
	}
	kind := "offers_resumed"
	if l.Kept, l.NoOffers = true, 0; o.Pause {
		kind, l.NoOffers = "offers_paused", s.Now()
	}
	s.write(kind, strconv.FormatInt(s.Version, 10), nil, "", o.Cause)
	return Reply{"ok", int64(1)}
}

// times is more than what can be left of an offer: while its sale is paused, that is its exp.
const times = 1_000_000_000_000

// offersFollow brings open offers to what the sale is now.
func (s *Shard) offersFollow(cause string) {
	if !s.Waitlist.Kept {
		return
	}
	var open []Waiter
	for _, p := range s.Waitlist.People {
		if r := s.Records[p.offerID()]; p.Offered && r != nil && r.State == Held && r.Mode == offer {
			open = append(open, p)
		}
	}
	slices.SortFunc(open, func(a, b Waiter) int { return cmp.Compare(a.Number, b.Number) })
	for i := range open {
		id := open[i].offerID()
		r := s.Records[id]
		off, left, last := r.Exp < times, max(r.Deadline-s.Now(), 0), max(r.Deadline, s.Ends+s.Lead)
		if off {
			left = r.Exp
		}
		switch {
		case s.Status == "closed":
			s.become(id, Released, "closed")
		case s.Status == "paused" && (!off || last > r.Deadline):
			s.putOff(id, last, left, cause)
		case s.Status != "paused" && off:
			exp := min(s.Time+left, max(s.Ends, s.Time))
			s.putOff(id, exp+s.Lead, exp, cause)
		}
	}
}

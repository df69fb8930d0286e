package model

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

// offer is the mode of a hold that is an offer to a person on the waiting list.
const offer = "offer"

// offerID is the id of the hold that is the offer to a person.
func (w *Waiter) offerID() string { return fmt.Sprintf("w%d.%d", w.Number, w.Since) }

// endOffer ends the entry whose offer ends.
func (l *Waitlist) endOffer(id string, r *Record) {
	for _, p := range l.People {
		if r.Mode == offer && p.offerID() == id {
			l.take(p.Number, r.Cause)
			return
		}
	}
}

// standsAs is the state that a conflict tells.
func (r *Record) standsAs() string {
	if r.Mode == offer && r.State == Held {
		return "offered"
	}
	return string(r.State)
}

// Offer holds units for the person with a number; if it is told again, for the buyer's entry.
type Offer struct {
	Number int64
	Of     Reserve // its id and mode follow
}

// Run is a hold of which the shop does not know.
func (o Offer) Run(s *Shard) Reply {
	number, l := o.Number, &s.Waitlist
	if o.Of.Told {
		number = 0
		if known := l.of(o.Of.Buyer, ""); len(known) > 0 {
			number = known[0]
		}
	}
	p := l.find(number)
	if p == nil || p.Buyer != o.Of.Buyer {
		return Reply{"gone"}
	}
	id := p.offerID()
	if r := s.Records[id]; r != nil && r.State == Held {
		return Reply{"ok", "held", r.Deadline - s.Lead, r.Exp, s.Epoch, r.Created}
	} else if r != nil || p.Offered {
		return Reply{"gone"}
	}
	if refusal := o.refusal(s); refusal != nil {
		return refusal
	}
	p.Offered, p.Units = true, o.Of.Lines[0].Units
	l.count("offers")
	due, exp := s.Now()+o.Of.HoldFor, s.ownTime()+o.Of.HoldFor
	if s.Status == "paused" {
		due, exp = max(due, s.Ends+s.Lead), o.Of.HoldFor
	}
	r := &Record{
		State: Held, Deadline: due, Exp: exp, Created: s.ownTime(), Changed: s.Now(),
		Mode: offer, Buyer: p.Buyer, Version: o.Of.Version, Lines: o.Of.Lines,
	}
	for _, limit := range o.Of.Limits {
		r.Charges = append(r.Charges, limit.Charge)
	}
	s.Records[id] = r
	s.record(Entry{Kind: "held", ID: id, Lines: r.Lines, Buyer: r.Buyer, Record: r.Text()})
	return Reply{"ok", "held", r.Deadline - s.Lead, r.Exp, s.Epoch, r.Created}
}

func (o Offer) refusal(s *Shard) Reply {
	if s.Time > o.Of.NotAfter {
		return Reply{"late"}
	}
	if o.Of.Told {
		return o.Of.stock(s)
	}
	if s.Version != o.Of.Version {
		return Reply{"version", s.Version}
	}
	if closed := o.Of.window(s); closed != nil {
		return closed
	}
	if s.Waitlist.NoOffers > 0 {
		return Reply{"paused"}
	}
	if s.Time+o.Of.HoldFor > s.Ends {
		return Reply{"ended"}
	}
	for _, verdict := range []func(*Shard) Reply{o.Of.limits, o.Of.stock} {
		if refusal := verdict(s); refusal != nil {
			return refusal
		}
	}
	return nil
}

// Accept is the order of a person who may have an offer.
type Accept struct {
	Identities string
	New        Reserve
}

// Run ends the offer if the order names its item.
func (o Accept) Run(s *Shard) Reply {
	o.New.accepts = true
	if s.Records[o.New.ID] != nil || !s.Exists {
		return o.New.run(s)
	}
	after := s.Clone()
	o.New.back = after.takeOffer(o.New.Buyer, o.Identities, o.New.Lines, nil)
	if refused := o.New.refusal(after); refused != nil {
		switch refused[0] {
		case "sold_out", "all_held": // as they are, with the offer
			c, _ := s.Cell(o.New.Lines[refused[1].(int64)-1].Cell)
			refused[2], refused[3], refused[4] = c.Available, c.Stock-c.Confirmed, int64(len(s.Journal))
		}
		return refused
	}
	*s = *after
	return o.New.run(s)
}

// takeOffer ends the offer that a person has of a cell of which lines have more units than old ones, and returns its lines.
func (s *Shard) takeOffer(buyer, identities string, lines, old []Line) []Line {
	for _, number := range s.Waitlist.of(buyer, identities) {
		p := s.Waitlist.find(number)
		if r := s.Records[p.offerID()]; r != nil && r.State == Held && units(lines, p.Cell) > units(old, p.Cell) {
			s.become(p.offerID(), Released, "accepted")
			return r.Lines
		}
	}
	return nil
}

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

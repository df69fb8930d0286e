package model

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// beginAgain begins a hold anew: its order is sent, or waits again.
func (s *Shard) beginAgain(id, mode, cause string, holdFor, margin int64) {
	r := s.Records[id]
	own := s.ownTime()
	r.Mode, r.Deadline, r.Exp, r.Created, r.Changed, r.Cause = mode, s.Now()+holdFor, own+holdFor-margin, own, s.Now(), cause
	s.record(Entry{Kind: "extended", ID: id, Was: Held, Buyer: r.Buyer, Cause: cause, Record: r.Text()})
}

// Turn asks which orders an edge may send now: at most Most, and at most AtOnce at the shop. Turns
// last for Lease ms.
type Turn struct {
	Edge                string
	Lease, AtOnce, Most int64
	Gates               string
}

// Run gives turns in the order in which orders came.
func (o Turn) Run(s *Shard) Reply {
	if !s.Exists {
		return Reply{"ok", int64(0), int64(0), int64(0), int64(0)}
	}
	q := &s.Queue
	if s.Latest == 0 { // the caller cannot tell the time
		return Reply{"ok", int64(len(q.Line())), int64(len(q.AtShop)), int64(1), int64(1)}
	}
	s.touch()
	until := s.Now() + o.Lease
	q.Alive[o.Edge], q.Gates[o.Edge] = until, o.Gates
	var told []Turned
	for _, t := range q.Told[o.Edge] {
		if has, ok := q.Orders[t.ID]; t.Try == 0 || ok && has.Taker == o.Edge && has.Try == t.Try {
			told = append(told, t)
		}
	}
	delete(q.Told, o.Edge)

	var over []string // turns that are
	for id, at := range q.AtShop {
		if at <= s.Now() {
			over = append(over, id)
		}
	}
	slices.SortFunc(over, func(a, b string) int { return cmp.Or(cmp.Compare(q.AtShop[a], q.AtShop[b]), cmp.Compare(a, b)) })
	line := q.Line()
	over = over[:min(int64(len(over)), o.Most)]
	over = slices.DeleteFunc(over, func(id string) bool {
		order, ok := q.Orders[id]
		if delete(q.AtShop, id); ok { // else only its hold was known
			q.back(id, order)
		}
		return !ok
	})
	slices.SortFunc(over, func(a, b string) int {
		return cmp.Or(cmp.Compare(q.Orders[a].Score, q.Orders[b].Score), cmp.Compare(a, b))
	})
	line = slices.DeleteFunc(line, func(id string) bool { return q.Orders[id].aside() }) // also what comes back now
	o.takeBack(q)
	free, skipped := min(s.room(o.AtOnce), o.Most), int64(0)
	for _, id := range slices.Concat(over, line) {
		if free == 0 {
			break
		}
		order, to := q.Orders[id], o.giveTo(s, q.Orders[id])
		if to == "" {
			q.putAside(id, order)
			skipped++
			continue
		}
		order.Taker, order.Try = to, order.Try+1
		q.Orders[id], q.AtShop[id] = order, until
		if t := (Turned{id, order.Try}); to == o.Edge {
			told = append(told, t)
		} else {
			s.tell(to, t)
		}
		free--
	}
	wait := int64(0)
	if !q.Paused {
		wait = max(q.NotBefore-s.Now(), 0)
	}
	turns := int64(0)
	for _, at := range q.AtShop {
		if at < sentAt {
			turns++
		}
	}
	reply := Reply{"ok", int64(len(q.Line())), int64(len(q.AtShop)), wait, turns}
	if skipped > 0 {
		reply = append(reply, none, skipped)
	}
	for _, t := range told {
		reply = append(reply, t.ID, t.Try)
	}
	return reply
}

// giveTo is the edge that gets the turn of an order; empty: none can send it.
func (o Turn) giveTo(s *Shard, order Order) string {
	if s.lives(order.Home) {
		return order.Home
	}
	if has(o.Gates, order.Gate) {
		return o.Edge
	}
	first := ""
	for edge, gates := range maps.Clone(s.Queue.Gates) {
		if edge != o.Edge && s.lives(edge) && has(gates, order.Gate) && (first == "" || edge < first) {
			first = edge
		}
	}
	return first
}

func has(gates, gate string) bool { return slices.Contains(strings.Fields(gates), gate) }

// lives reports whether an edge asks for turns. One that has stopped is forgotten.
func (s *Shard) lives(edge string) bool {
	q := &s.Queue
	until, heard := q.Alive[edge]
	if heard && until <= s.Now() {
		delete(q.Alive, edge)
		delete(q.Told, edge)
		delete(q.Gates, edge)
	}
	return heard && until > s.Now()
}

// aside reports whether no edge can send the order, as far as is known.
func (o Order) aside() bool { return o.Taker == none && o.Score > aside/2 }

func (q *Queue) putAside(id string, o Order) {
	o.Score += aside
	q.Orders[id], q.Aside[o.Gate] = o, true
	if o.Home != none {
		q.Aside[o.Home] = true
	}
}

// takeBack lets the orders wait in their places that the edge can send now.
func (o Turn) takeBack(q *Queue) {
	for id, order := range q.Orders {
		if order.aside() && (order.Home == o.Edge || has(o.Gates, order.Gate)) {
			order.Score -= aside
			q.Orders[id] = order
		}
	}
	for _, name := range append(strings.Fields(o.Gates), o.Edge) {
		delete(q.Aside, name)
	}
}

// Send says that the edge that has the turn sends the order. Told: it was promised that, and says it again.
type Send struct {
	ID, Edge        string
	Try             int64
	Told            bool
	Mode            string
	HoldFor, Margin int64
}

// Run begins the hold again.
func (o Send) Run(s *Shard) Reply {
	r := s.find(o.ID)
	switch {
	case r == nil:
		return Reply{"not_found"}
	case r.State != Held || r.Mode == offer:
		return Reply{"conflict", r.standsAs()}
	}
	order, ok := s.Queue.Orders[o.ID]
	if !o.Told && (!ok || order.Taker != o.Edge || order.Try != o.Try) {
		return Reply{"conflict", string(Waiting)}
	}
	if r.waits() {
		if !o.Told {
			s.leaves()
		}
		s.beginAgain(o.ID, o.Mode, "sent", o.HoldFor, o.Margin)
		if ok {
			order.Taker, order.Sent, order.Size = o.Edge, true, 0
			s.Queue.Orders[o.ID] = order
		}
		s.Queue.AtShop[o.ID] = sentAt
	}
	return Reply{"ok", string(Held), r.Created + r.Deadline - r.Changed, r.Exp, s.Epoch, r.Created}
}

// Again means that the shop has said that an order is to come later, and none for Later ms. Try is the one with
// which it was sent; 0: at once.
type Again struct {
	ID, Edge, Gate, Packed            string
	Try, Longest, Margin, Later, Most int64
}

// Run lets it wait before all others, at most Most times.
func (o Again) Run(s *Shard) Reply {
	r := s.find(o.ID)
	switch {
	case r == nil:
		return Reply{"not_found"}
	case r.State != Held || r.Mode == offer:
		return Reply{"conflict", r.standsAs()}
	}
	order, ok := s.Queue.Orders[o.ID]
	if r.waits() {
		if !ok {
			s.waitAgain(o.ID, o.Edge, o.Gate, o.Packed)
		}
		return Reply{"ok", string(Waiting)}
	}
	if !ok {
		order = Order{Home: o.Edge, Taker: o.Edge, Try: o.Try, Gate: o.Gate, Since: s.Now(), Number: r.Changed - before/10}
	}
	switch {
	case order.Taker != o.Edge:
		return Reply{"conflict", string(Held)}
	case o.Try < order.Try: // it has waited since, and was sent again
		return Reply{"ok", string(Held)}
	case order.Again >= o.Most:
		return Reply{"too_many", order.Again}
	}
	s.countShop()
	s.beginAgain(o.ID, queued, "again", o.Longest, o.Margin)
	order.Try, order.Again, order.Sent, order.Size = o.Try, order.Again+1, false, int64(len(o.Packed))
	s.Queue.back(o.ID, order)
	s.Queue.Kept = true
	if o.Later > 0 {
		s.Queue.NotBefore = max(s.Queue.NotBefore, s.Now()+o.Later)
	}
	return Reply{"ok", string(Waiting)}
}

// Yield says that an edge that has a turn cannot send the order. With what is to be sent, Packed, it has perhaps
// told that it sends, and has not.
type Yield struct {
	ID, Edge, Packed     string
	Try, Longest, Margin int64
	// Behind: the order goes behind others, up to so much above its number. Open: its request is open there.
	Behind int64
	Open   bool
}

// Run lets another edge have it.
func (o Yield) Run(s *Shard) Reply {
	r := s.find(o.ID)
	switch {
	case r == nil:
		return Reply{"not_found"}
	case r.State != Held || !r.waits() && o.Packed == "":
		return Reply{"conflict", string(r.State)}
	}
	order, ok := s.Queue.Orders[o.ID]
	if !ok || order.Taker != o.Edge || order.Try != o.Try {
		return Reply{"conflict", string(Waiting)}
	}
	s.touch()
	unsent := !r.waits()
	switch {
	case unsent:
		s.beginAgain(o.ID, queued, "unsent", o.Longest, o.Margin)
		order.Sent, order.Size = false, int64(len(o.Packed))
	case o.Packed == "" && !o.Open:
		order.Home = none
	}
	if !unsent {
		order.Number += o.Behind
	}
	s.Queue.back(o.ID, order)
	if order = s.Queue.Orders[o.ID]; o.Behind > 0 && !unsent {
		order.Score = order.Number
		s.Queue.Orders[o.ID] = order
	}
	return Reply{"ok", order.Try}
}

package model

import "slices"

// Leave is the operation by which an order leaves the line before it is sent.
type Leave struct{ ID, Cause string }

// Run releases its hold.
func (o Leave) Run(s *Shard) Reply {
	r := s.find(o.ID)
	switch {
	case r == nil:
		return Reply{"not_found"}
	case r.State == Released && r.Mode == queued:
		return Reply{"ok", string(Released)}
	case r.State != Held:
		return Reply{"conflict", string(r.State)}
	case !r.waits():
		return Reply{"at_shop"}
	}
	s.become(o.ID, Released, o.Cause)
	return Reply{"ok", string(Released)}
}

// Stands asks where an order is.
type Stands struct{ ID string }

// Run tells its place in the line.
func (o Stands) Run(s *Shard) Reply {
	r := s.find(o.ID)
	switch {
	case r == nil:
		return Reply{"not_found"}
	case !r.waits():
		sent, cause := s.sentSoFar(o.ID, r), ""
		if sent == 0 && r.State == Released {
			cause = r.Cause
		}
		return Reply{"ok", string(r.State), int64(0), int64(0), int64(0), int64(0), r.Deadline - s.Lead, sent, cause}
	}
	still := int64(0)
	if s.Queue.Paused || s.Queue.NotBefore > s.Now() || s.Queue.Orders[o.ID].aside() {
		still = 1
	}
	left, in := s.leftLately()
	return Reply{"ok", string(Waiting), int64(slices.Index(s.Queue.Line(), o.ID) + 1), left, in, still, r.Deadline - s.Lead, int64(0), ""}
}

// sentSoFar is 0 for an order that was not sent, 1 while the shop has it, and 2 afterwards.
func (s *Shard) sentSoFar(id string, r *Record) int64 {
	_, atShop := s.Queue.AtShop[id]
	switch {
	case r.Mode == queued:
		return 0
	case atShop && r.State == Held:
		return 1
	}
	return 2
}

// Look is what operators do to the line: show, pause, resume, or drain, which releases Most orders.
type Look struct {
	Does  string
	Most  int64
	Cause string
}

// Run tells of the line as it is then.
func (o Look) Run(s *Shard) Reply {
	if !s.Exists {
		return Reply{"not_found"}
	}
	q, released := &s.Queue, int64(0)
	switch o.Does {
	case "pause":
		s.touch()
		q.Paused = true
	case "resume":
		s.touch()
		q.Paused, q.NotBefore = false, 0
	case "drain":
		line := q.Line()
		for _, id := range line[:min(int64(len(line)), o.Most)] {
			s.become(id, Released, o.Cause)
			released++
		}
	}
	var size, paused, oldest, skipped int64
	for _, order := range q.Orders {
		size += order.Size
		if order.aside() {
			skipped++
		}
	}
	if q.Paused {
		paused = 1
	}
	line := q.Line()
	if len(line) > 0 {
		oldest = s.Now() - q.Orders[line[0]].Since
	}
	left, in := s.leftLately()
	return Reply{"ok", int64(len(line)), int64(len(q.AtShop)), size, paused, max(q.NotBefore-s.Now(), 0), oldest, left, in, released, skipped}
}

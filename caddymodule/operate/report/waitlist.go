package report

import "github.com/stockgate/stockgate/internal/store/journal"

// ListSums are what became of people on the waiting list, of one item or of all.
type ListSums struct {
	// Entered is how many people have entered, and Offers how many offers were made.
	Entered, Offers int64
	// Accepted, Lapsed, Left, Closed and Other are how many have left the list, by why. Other: they may not buy any more, or
	// were taken off.
	Accepted, Lapsed, Left, Closed, Other int64
}

// waiting is what movements say of the waiting list; the zero value has none.
type waiting struct {
	all    ListSums
	byItem map[string]*ListSums // by the names of items
	some   bool                 // people have entered
}

// of returns the sums of an item.
func (w *waiting) of(name string) *ListSums {
	s := w.byItem[name]
	if s == nil {
		if w.byItem == nil {
			w.byItem = make(map[string]*ListSums)
		}
		s = new(ListSums)
		w.byItem[name] = s
	}
	return s
}

// follow notes what a movement says of a person on the list, and reports whether it is of an offer: that is no order.
func (w *waiting) follow(m *journal.Movement) (offer bool) {
	offer = m.OfOffer()
	if len(m.Lines) != 1 {
		return offer
	}
	switch {
	case m.Kind == "entered":
		w.add(m, func(s *ListSums) { s.Entered++ })
	case m.Kind == "left", offer && m.Kind == "released":
		w.add(m, func(s *ListSums) { s.end(m.Cause) })
	case offer && m.Kind == "held":
		w.add(m, func(s *ListSums) { s.Offers++ })
	}
	return offer
}

func (w *waiting) add(m *journal.Movement, count func(*ListSums)) {
	w.some = true
	count(&w.all)
	count(w.of(m.Lines[0].Cell))
}

func (s *ListSums) end(why string) {
	switch why {
	case "accepted":
		s.Accepted++
	case "lapsed":
		s.Lapsed++
	case "left":
		s.Left++
	case "closed":
		s.Closed++
	default:
		s.Other++
	}
}

// Open is how many are on the list at the end.
func (s *ListSums) Open() int64 {
	return s.Entered - s.Accepted - s.Lapsed - s.Left - s.Closed - s.Other
}

// rows are the sums of the whole list in words; none: people have never waited.
func (w *waiting) rows() []Row {
	if !w.some {
		return nil
	}
	s := &w.all
	rows := []Row{
		{"people who entered", count(s.Entered)}, {"offers made", count(s.Offers)}, {"accepted: the person ordered", count(s.Accepted)}, {"lapsed: not used in time", count(s.Lapsed)},
		{"left", count(s.Left)}, {"closed: the sale ended an offer", count(s.Closed)},
	}
	if s.Other > 0 {
		rows = append(rows, Row{"taken off: they could not buy any more", count(s.Other)})
	}
	if open := s.Open(); open > 0 {
		rows = append(rows, Row{"still on the list", count(open)})
	}
	return rows
}

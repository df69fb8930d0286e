package waitlist

import (
	"slices"
	"sync"
)

const (
	// MostWatched is how many clients of an edge may wait for news of their places at the same time.
	MostWatched = 10_000
	// MostOfPerson is how many of them may ask for one person.
	MostOfPerson = 8
)

// Watches are the clients of an edge that wait for news of their places. The zero value has none. It is safe for
// concurrent use.
type Watches struct {
	mu    sync.Mutex
	open  int
	ended bool
	sales map[string]map[string][]*PlaceWatch // by sale and buyer
}

// PlaceWatch is one client that waits.
type PlaceWatch struct {
	// News has a value when what the client was told may have changed.
	News <-chan struct{}

	news        chan struct{}
	of          *Watches
	sale, buyer string
	cell        string // for which the person waits; empty: it is not known
}

// Open begins to watch the place of a buyer, given by its hash. Nil: as many clients watch as may, or the edge has
// ended. The caller looks at the place after that, so that no news is missed, and calls Close.
func (s *Watches) Open(sale, buyer string) *PlaceWatch {
	s.mu.Lock()
	defer s.mu.Unlock()
	people := s.sales[sale]
	if s.ended || s.open >= MostWatched || len(people[buyer]) >= MostOfPerson {
		return nil
	}
	if people == nil {
		people = make(map[string][]*PlaceWatch)
		if s.sales == nil {
			s.sales = make(map[string]map[string][]*PlaceWatch)
		}
		s.sales[sale] = people
	}
	news := make(chan struct{}, 1)
	w := &PlaceWatch{News: news, news: news, of: s, sale: sale, buyer: buyer}
	people[buyer] = append(people[buyer], w)
	s.open++
	return w
}

// Close ends the watch.
func (w *PlaceWatch) Close() {
	s := w.of
	s.mu.Lock()
	defer s.mu.Unlock()
	people := s.sales[w.sale]
	rest := slices.DeleteFunc(people[w.buyer], func(other *PlaceWatch) bool { return other == w })
	s.open--
	if people[w.buyer] = rest; len(rest) > 0 {
		return
	}
	delete(people, w.buyer)
	if len(people) == 0 {
		delete(s.sales, w.sale)
	}
}

// For says for which cell the person waits: news of other cells does not concern the watch then.
func (w *PlaceWatch) For(cell string) {
	w.of.mu.Lock()
	w.cell = cell
	w.of.mu.Unlock()
}

// IsOver reports whether there will be no news any more, because the edge has ended.
func (w *PlaceWatch) IsOver() bool {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	return w.of.ended
}

func (w *PlaceWatch) wake() {
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// WakePerson wakes the clients that ask for a buyer.
func (s *Watches) WakePerson(sale, buyer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.sales[sale][buyer] {
		w.wake()
	}
}

// WakeCell wakes the clients whose people wait for a cell; empty: for any of the sale.
func (s *Watches) WakeCell(sale, cell string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, all := range s.sales[sale] {
		for _, w := range all {
			if cell == "" || w.cell == "" || w.cell == cell {
				w.wake()
			}
		}
	}
}

// End wakes all clients for the last time.
func (s *Watches) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, people := range s.sales {
		for _, all := range people {
			for _, w := range all {
				w.wake()
			}
		}
	}
}

// Size is how many clients wait for news.
func (s *Watches) Size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

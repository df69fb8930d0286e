package recovery

import (
	"fmt"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/record"
)

// history is what Redis must have of a sale, according to its movements up to an entry.
// It takes about 600 bytes per reservation.
type history struct {
	epoch, seq   int64
	reservations map[string]*expected
	totals       *record.Totals // of all this
	// stockKnown: the totals have what was loaded and added.
	stockKnown bool
	// whole: the history begins with the first movement, so that anything missing from
	// it never existed.
	whole bool
	// strict: every movement must follow from the previous ones; one that cannot is reported.
	strict bool

	adjusted []adjustment              // in their order
	returned map[string][]*returnEntry // by reservation, in their order
	last     *journal.Movement
	wants    map[string]map[string]bool // by binding, the reservations that name it; nil: not requested

	// contradictions are the first few entries that cannot follow from the previous ones.
	contradictions []string
}

// expected is a reservation in the history: its record, but for the probes, which no movement has.
type expected struct {
	record.Record
	// part: only its state, cause, time of change, buyer and lines are known, because no movement had the
	// record.
	part bool
	seen bool // in Redis
}

// adjustment changes the stock of a cell. Without an id, Redis does not keep it.
type adjustment struct {
	id, cell string
	delta    int64
}

// returnEntry is a return in the history.
type returnEntry struct {
	id      string
	lines   []record.CellUnits
	restock bool
	seq     int64
}

func newHistory() *history {
	return &history{reservations: make(map[string]*expected), totals: record.NewTotals(), returned: make(map[string][]*returnEntry)}
}

// contradict records an impossible entry.
func (s *history) contradict(m *journal.Movement, what string) {
	const most = 20
	if len(s.contradictions) < most {
		s.contradictions = append(s.contradictions, fmt.Sprintf("entry %d (%s %s): %s", m.Seq, m.Kind, m.ID, what))
	}
}

// apply adds one movement. A movement gives a reservation's state whatever it was
// before, so it may be one that the history has already.
func (s *history) apply(m *journal.Movement) error {
	effect, known := journal.EffectOf(m.Kind)
	switch {
	case !known:
		return fmt.Errorf("movement %d (%s %s): %w", m.Seq, m.Kind, m.ID, journal.ErrKind)
	case effect.Stock:
		s.adjust(m)
	case effect.Reservation:
		if effect.Returned {
			s.giveBack(m)
		}
		s.change(m, effect)
	}
	s.seq, s.last = m.Seq, m
	return nil
}

// adjust moves stock.
func (s *history) adjust(m *journal.Movement) {
	id := ""
	if m.Kind == "adjusted" {
		id = m.ID
		if m.OfReturn(s.last) {
			id = "" // its units leave the stock
			list := s.returned[s.last.ID]
			list[len(list)-1].restock = false
		}
	}
	for _, l := range m.Lines {
		s.adjusted = append(s.adjusted, adjustment{id, l.Cell, l.Units})
	}
	if s.stockKnown {
		s.totals.AddStock(m.Lines)
	}
}

func (s *history) giveBack(m *journal.Movement) {
	s.returned[m.ID] = append(s.returned[m.ID], &returnEntry{m.ReturnID(), m.Lines, true, m.Seq})
}

// change applies the movement of a reservation.
func (s *history) change(m *journal.Movement, effect journal.Effect) {
	t := s.reservations[m.ID]
	switch {
	case !s.strict:
	case m.Kind == "held" && t != nil:
		s.contradict(m, "it had been reserved before")
	case t != nil && m.Was != "" && m.Was != t.State:
		s.contradict(m, fmt.Sprintf("it was %s, and the entry says %s", t.State, m.Was))
	}
	unknown := m.Record == nil && t == nil
	if unknown && (s.strict || effect.Enters == "") {
		s.contradict(m, "nothing tells of this reservation before")
	}
	if unknown && effect.Enters == "" {
		return
	}
	next := &expected{part: unknown}
	var before *record.Record
	if t != nil {
		before, next.part = &t.Record, t.part && m.Record == nil
	}
	after, _ := m.Apply(s.totals, before)
	next.Record = *after
	next.Probes = ""
	s.put(m.ID, next)
}

// add stores a reservation that no movement tells of.
func (s *history) add(id string, r record.Record) {
	if t := s.reservations[id]; t != nil {
		s.totals.Count(&t.Record, -1)
	}
	s.totals.Count(&r, 1)
	s.put(id, &expected{Record: r})
}

// put stores a reservation that the totals count.
func (s *history) put(id string, t *expected) {
	if before := s.reservations[id]; before != nil {
		s.want(id, before, false)
		t.seen = before.seen
	}
	s.reservations[id] = t
	s.want(id, t, true)
}

// want records which reservations name a requested binding.
func (s *history) want(id string, t *expected, on bool) {
	if s.wants == nil {
		return
	}
	for _, field := range t.asked() {
		ids, asked := s.wants[field]
		if !asked {
			continue
		}
		if !on {
			delete(ids, id)
		} else if ids == nil {
			s.wants[field] = map[string]bool{id: true}
		} else {
			ids[id] = true
		}
	}
}

// wanted begins to record which reservations name these bindings.
func (s *history) wanted(fields []string) {
	s.wants = make(map[string]map[string]bool, len(fields))
	for _, field := range fields {
		s.wants[field] = nil
	}
	if len(fields) == 0 {
		return
	}
	for id, t := range s.reservations {
		s.want(id, t, true)
	}
}

// total returns a cell as it must be, and whether its stock is known.
func (s *history) total(name string) (c ledger.Cell, known bool) {
	var units record.Cell
	if counted := s.totals.Cells[name]; counted != nil {
		units = *counted
	}
	known = s.stockKnown && units != record.Cell{}
	units.Balance()
	return ledger.CellOf(name, &units), known
}

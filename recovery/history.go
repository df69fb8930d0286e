package recovery

import (
	"fmt"
	"strings"

	"github.com/stockgate/stockgate/journal"
	"github.com/stockgate/stockgate/ledger"
	"github.com/stockgate/stockgate/record"
)

// history is what Redis must have of a sale, according to its movements up to an entry.
// It takes about 600 bytes per reservation.
type history struct {
	epoch, seq   int64
	reservations map[string]*expected
	// stock is what was loaded and added, by cell; nil: not known.
	stock  map[string]int64
	cells  map[string]*ledger.Cell // what reservations have of each
	limits map[string]counter
	unpaid map[string]int64 // counters of unpaid holds
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

// counter is a purchase limit.
type counter struct {
	charged, pending int64
	seen             bool // in Redis
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
	return &history{
		reservations: make(map[string]*expected), cells: make(map[string]*ledger.Cell), limits: make(map[string]counter), unpaid: make(map[string]int64), returned: make(map[string][]*returnEntry),
	}
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
		s.change(m, effect.Enters)
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
		if s.stock != nil {
			s.stock[l.Cell] += l.Units
		}
	}
}

func (s *history) giveBack(m *journal.Movement) {
	s.returned[m.ID] = append(s.returned[m.ID], &returnEntry{m.ReturnID(), m.Lines, true, m.Seq})
}

// change applies a reservation's movement; an empty state leaves its own.
func (s *history) change(m *journal.Movement, state record.State) {
	t := s.reservations[m.ID]
	switch {
	case !s.strict:
	case m.Kind == "held" && t != nil:
		s.contradict(m, "it had been reserved before")
	case t != nil && m.Was != "" && m.Was != t.State:
		s.contradict(m, fmt.Sprintf("it was %s, and the entry says %s", t.State, m.Was))
	}
	switch {
	case m.Record != nil:
		next := &expected{Record: *m.Record}
		next.Probes = ""
		s.put(m.ID, next)
		return
	case t == nil && state == "":
		s.contradict(m, "nothing tells of this reservation before")
		return
	case t == nil:
		if s.strict {
			s.contradict(m, "nothing tells of this reservation before")
		}
		s.put(m.ID, &expected{Record: record.Record{State: state, Changed: m.Time, Cause: record.Plain(m.Cause), Buyer: m.Buyer, Lines: m.Lines}, part: true})
		return
	}
	next := *t
	next.State, next.Changed, next.Cause = state, m.Time, record.Plain(m.Cause)
	s.put(m.ID, &next)
}

// put stores a reservation and updates its cells and limits.
func (s *history) put(id string, t *expected) {
	if before := s.reservations[id]; before != nil {
		s.count(before, -1)
		s.want(id, before, false)
		t.seen = before.seen
	}
	s.reservations[id] = t
	s.count(t, 1)
	s.want(id, t, true)
}

// count adds a reservation's share of cells and limits, or subtracts it.
func (s *history) count(t *expected, sign int64) {
	column := t.State.Column()
	if !column.Taken() {
		return
	}
	for _, l := range t.Lines {
		*s.cell(l.Cell).Units(column) += sign * l.Units
	}
	for _, l := range t.Returned {
		*s.cell(l.Cell).Units(column) -= sign * l.Units
	}
	eachPair(t.Charges, func(limit string, n int64) {
		c := s.limits[limit]
		c.charged += sign * n
		if t.State != record.Confirmed {
			c.pending += sign * n
		}
		if c.charged == 0 && c.pending == 0 && !c.seen {
			delete(s.limits, limit)
			return
		}
		s.limits[limit] = c
	})
	if t.State != record.Held {
		return
	}
	for field := range strings.FieldsSeq(t.Unpaid) {
		if s.unpaid[field] += sign; s.unpaid[field] == 0 {
			delete(s.unpaid, field)
		}
	}
}

func (s *history) cell(name string) *ledger.Cell {
	c := s.cells[name]
	if c == nil {
		c = &ledger.Cell{Name: name}
		s.cells[name] = c
	}
	return c
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
	stock, known := s.stock[name]
	c = ledger.Cell{Name: name}
	if of := s.cells[name]; of != nil {
		c = *of
		known = known || s.stock != nil && c != ledger.Cell{Name: name}
	}
	c.Stock = stock
	c.Available = c.Stock - c.Held - c.InDoubt - c.Confirmed
	return c, known
}

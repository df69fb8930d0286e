package model

import (
	"errors"
	"fmt"
)

// arrows are the permitted changes of state; the empty state is before the reservation.
var arrows = map[State][]State{
	"":       {Held},
	Held:     {InDoubt, Confirmed, Released, Expired},
	InDoubt:  {Confirmed, Released},
	Released: {Confirmed, Unbacked},
	Expired:  {Released, Confirmed, Unbacked},
	Unbacked: {Confirmed, Released},
}

// Replayed is the state that follows from a journal alone.
type Replayed struct {
	Cells  map[string]Cell
	States map[string]State // of every reservation
	// Left is what each confirmed reservation has not returned.
	Left map[string]map[string]int64
	// Recreated are reservations that were made from evidence: they are older than
	// the journal.
	Recreated map[string]bool
}

// Replay computes, from the first entry, where all units are. The error names a gap, an
// impossible step, or a unit from nowhere.
func Replay(journal []Entry) (*Replayed, error) {
	p := &Replayed{map[string]Cell{}, map[string]State{}, map[string]map[string]int64{}, map[string]bool{}}
	for i, e := range journal {
		if e.Seq != int64(i+1) {
			return nil, fmt.Errorf("entry %d of the journal has the number %d", i+1, e.Seq)
		}
		if err := p.step(e); err != nil {
			return nil, fmt.Errorf("entry %d (%s %s): %w", e.Seq, e.Kind, e.ID, err)
		}
	}
	return p, nil
}

func (p *Replayed) step(e Entry) error {
	switch e.Kind {
	case "applied", "open", "paused", "closed", "repaired", "missing", "entered", "left", "offers_paused", "offers_resumed":
		return nil
	case "loaded", "adjusted":
		for _, l := range e.Lines {
			c := p.Cells[l.Cell]
			c.Stock += l.Units
			c.Available += l.Units
			if err := p.put(l.Cell, c); err != nil {
				return err
			}
		}
		return nil
	}
	was := p.States[e.ID]
	if err := p.reservation(e, was); err != nil {
		return err
	}
	if e.Was != was {
		return fmt.Errorf("it was %q, and the entry says %q", was, e.Was)
	}
	return nil
}

// reservation is a step of one reservation.
func (p *Replayed) reservation(e Entry, was State) error {
	switch e.Kind {
	case "extended":
		if was != Held && was != InDoubt || len(e.Lines) > 0 {
			return fmt.Errorf("%q cannot be extended, with %d lines", was, len(e.Lines))
		}
		return nil
	case "returned":
		if was != Confirmed {
			return fmt.Errorf("%q cannot be returned", was)
		}
		for _, l := range e.Lines {
			if p.Left[e.ID][l.Cell] -= l.Units; p.Left[e.ID][l.Cell] < 0 {
				return fmt.Errorf("more of %s is returned than was confirmed", l.Cell)
			}
		}
		return p.move(e.Lines, Confirmed, Released)
	case "recreated":
		if was != "" {
			return fmt.Errorf("%q cannot be made again", was)
		}
		p.become(e, Confirmed)
		p.Recreated[e.ID] = true
		return p.move(e.Lines, Released, Confirmed)
	case "unbacked":
		if was == "" && e.Record != "" { // Redis has lost it, and an edge has told it again
			p.become(e, Unbacked)
			p.Recreated[e.ID] = true
			return nil
		}
	}
	will := State(e.Kind)
	if !reaches(was, will) {
		return fmt.Errorf("no way leads from %q to %q", was, will)
	}
	p.become(e, will)
	return p.move(e.Lines, was, will)
}

// become records a reservation's state.
func (p *Replayed) become(e Entry, state State) {
	p.States[e.ID] = state
	if state == Confirmed {
		p.Left[e.ID] = map[string]int64{}
		for _, l := range e.Lines {
			p.Left[e.ID][l.Cell] += l.Units
		}
	}
}

// move takes units from where those of one state are to where another's are.
func (p *Replayed) move(lines []Line, from, to State) error {
	for _, l := range lines {
		if l.Units <= 0 {
			return fmt.Errorf("%d units of %s", l.Units, l.Cell)
		}
		c := p.Cells[l.Cell]
		*c.column(from) -= l.Units
		*c.column(to) += l.Units
		if err := p.put(l.Cell, c); err != nil {
			return err
		}
	}
	return nil
}

// column is where the units of a reservation in a state are.
func (c *Cell) column(state State) *int64 {
	switch state {
	case Held:
		return &c.Held
	case InDoubt:
		return &c.InDoubt
	case Confirmed:
		return &c.Confirmed
	}
	return &c.Available
}

func (p *Replayed) put(name string, c Cell) error {
	if err := c.Check(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p.Cells[name] = c
	return nil
}

func reaches(was, will State) bool {
	for _, next := range arrows[was] {
		if next == will {
			return true
		}
	}
	return false
}

// Check says what is wrong with a cell: it is oversold, or units are missing.
func (c Cell) Check() error {
	switch {
	case c.Held+c.InDoubt+c.Confirmed > c.Stock:
		return fmt.Errorf("oversold: %+v", c)
	case c.Stock != c.Available+c.Held+c.InDoubt+c.Confirmed:
		return fmt.Errorf("not balanced: %+v", c)
	case min(c.Available, c.Held, c.InDoubt, c.Confirmed) < 0:
		return fmt.Errorf("less than nothing: %+v", c)
	}
	return nil
}

// checkRecord says what is wrong with one reservation: a hold that another attempt
// could duplicate, a confirmed one whose ref could be sold again, or more units
// returned than were sold.
func (s *Shard) checkRecord(id string, r *Record) error {
	isHold := r.State == Held || r.State == InDoubt
	for _, field := range []string{keyOnly(r.Guard), refField(r.Buyer, r.Ref)} {
		owner := s.Bindings[field]
		if field == "" || owner == id || !isHold && (field[0] == 'k' || r.State != Confirmed) {
			continue
		}
		if o := s.Records[owner]; o == nil || o.State != Confirmed {
			return fmt.Errorf("%s is %s, but %s is bound to %q", id, r.State, field, owner)
		}
	}
	if len(r.Returned) > 0 && r.State != Confirmed {
		return fmt.Errorf("%s: returned, and yet %s", id, r.State)
	}
	for _, line := range r.Returned {
		if r.left(line.Cell) < 0 {
			return fmt.Errorf("%s: more of %s is returned than was confirmed", id, line.Cell)
		}
	}
	return nil
}

// Check says which promise the shard breaks: nothing is oversold, every reservation is
// in one state that its history explains, and the cells match both the reservations and
// the journal.
func (s *Shard) Check() error {
	var wrong []error
	told, err := Replay(s.Journal)
	if err != nil {
		return err
	}
	for name := range s.Stock {
		c, _ := s.Cell(name)
		if err := c.Check(); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", name, err))
		}
		if told.Cells[name] != c {
			wrong = append(wrong, fmt.Errorf("%s: is %+v, the journal says %+v", name, c, told.Cells[name]))
		}
	}
	for name, c := range told.Cells {
		if _, ok := s.Stock[name]; !ok && c != (Cell{}) {
			wrong = append(wrong, fmt.Errorf("%s is gone, the journal says %+v", name, c))
		}
	}
	wrong = append(wrong, s.checkPeople())
	clock, backwards := s.Clock, func(r *Record) bool { return r.Created > r.Changed }
	if s.LeadKept { // Created is by the other clock, and this one may have gone back at its end
		clock, backwards = s.latest, func(*Record) bool { return false }
	}
	for id, r := range s.Records {
		switch {
		case r.State == Tombstone:
			if told.States[id] != s.Forgotten[id] || len(r.Lines)+len(r.Charges) > 0 {
				wrong = append(wrong, fmt.Errorf("%s: a tombstone of something that was reserved", id))
			}
		case told.States[id] != r.State:
			wrong = append(wrong, fmt.Errorf("%s: is %s, the journal says %q", id, r.State, told.States[id]))
		case backwards(r) && !told.Recreated[id] || r.Changed > clock:
			wrong = append(wrong, fmt.Errorf("%s: its times run backwards: %+v", id, *r))
		default:
			wrong = append(wrong, s.checkRecord(id, r))
		}
	}
	for id, was := range s.Forgotten {
		if r := s.Records[id]; r != nil && r.State != Tombstone || was != Released && was != Expired {
			wrong = append(wrong, fmt.Errorf("%s was forgotten as %s, and is %+v", id, was, r))
		}
	}
	for field, id := range s.Bindings {
		if field[0] == 'r' || field[0] == 'm' {
			if what := s.checkUnder(field[2:]); what != "" {
				wrong = append(wrong, errors.New(what))
			}
			continue
		}
		if field[0] == 'x' {
			if r := s.Records[id]; r == nil || !r.staysFound() || "x|"+r.Ref != field {
				wrong = append(wrong, fmt.Errorf("%s finds %s, which does not want it", field, id))
			}
			continue
		}
		if r := s.Records[id]; r == nil || !s.keeps(r, field) || r.Guard != field && refField(r.Buyer, r.Ref) != field {
			wrong = append(wrong, fmt.Errorf("%s is bound to %s, which does not want it", field, id))
		}
	}
	for id := range told.States {
		if _, ok := s.Records[id]; !ok && s.Forgotten[id] != told.States[id] {
			wrong = append(wrong, fmt.Errorf("%s is in the journal and nowhere else", id))
		}
	}
	return errors.Join(wrong...)
}

package model

import "fmt"

// Sold says which lines the shop's order has. Word is as in Confirm, More the id of a
// reservation of what was sold beyond the one that is confirmed.
type Sold struct {
	ID, Word, Cause, More string
	Lines                 []Line
	// Charges are what the lines beyond those held cost.
	Charges []Charge
}

// Run is the row "sold".
func (o Sold) Run(s *Shard) Reply {
	answer := Confirm{ID: o.ID, Word: o.Word, Cause: o.Cause}.Run(s)
	if answer[0] != "ok" {
		return answer
	}
	r := s.Records[o.ID]
	var fewer []Line
	if r.State == Confirmed {
		fewer = beyond(r.Lines, o.Lines)
		if unsold := beyond(r.remaining(), o.Lines); len(unsold) > 0 {
			id := "asked"
			if _, used := s.Returns[o.ID+"|"+id]; used {
				id = fmt.Sprintf("%s-%d", id, len(s.Journal)+1)
			}
			Return{ID: o.ID, Return: id, Restock: true, Cause: "not_sold", Lines: unsold}.Run(s)
		}
	}
	more, state := beyond(o.Lines, r.Lines), State("")
	if len(more) > 0 {
		if known := s.Records[o.More]; known != nil {
			state = known.State
		} else {
			state = s.beginSold(o.More, more, o.Charges, Record{Exp: r.Exp, Created: r.Created, Mode: r.Mode, Buyer: r.Buyer, Cause: "more than " + o.ID + " held"})
		}
	}
	return Reply{"ok", answer[1], Words(fewer), Words(more), string(state)}
}

// beyond is what the first lines have beyond the second ones, each cell once.
func beyond(lines, others []Line) (more []Line) {
	for _, l := range summed(lines) {
		if n := l.Units - units(others, l.Cell); n > 0 {
			more = append(more, Line{l.Cell, n})
		}
	}
	return more
}

// beginSold makes a reservation that is sold from its beginning, or unbacked if its units are not
// there.
func (s *Shard) beginSold(id string, lines []Line, charges []Charge, made Record) State {
	state, kind := Confirmed, "recreated"
	if i, _ := s.short(lines, available); i >= 0 {
		state, kind = Unbacked, "unbacked"
	}
	made.State, made.Deadline, made.Changed, made.Version = state, made.Exp, s.Now(), s.Version
	made.Lines, made.Charges = lines, charges
	cause := made.Cause
	made.Cause = plain(cause)
	s.Records[id] = &made
	s.take(id, state)
	s.record(Entry{Kind: kind, ID: id, Lines: lines, Buyer: made.Buyer, Cause: cause, Record: made.Text()})
	return state
}

package auditor

import "fmt"

// Tally is where the units of a cell are.
type Tally struct{ Stock, Available, Held, InDoubt, Confirmed int64 }

func (t Tally) String() string {
	return fmt.Sprintf("%d %d %d %d %d", t.Stock, t.Available, t.Held, t.InDoubt, t.Confirmed)
}

// Replayed is what the movements add up to.
type Replayed struct {
	Cells  map[string]*Tally
	States map[string]string // of each reservation
	Held   map[string]string // the record with which each began
	Ended  map[string]string // the cause of its last movement
	Back   map[string]bool   // units of it were returned
	// Doubted are the reservations that were in doubt at any time.
	Doubted map[string]bool
}

// arrows are the ways from one state to another, by what a reservation becomes.
var arrows = map[string][]string{
	"held":      {""},
	"in_doubt":  {"held"},
	"confirmed": {"held", "in_doubt", "released", "expired", "unbacked"},
	"released":  {"held", "in_doubt", "unbacked", "expired"},
	"expired":   {"held"},
	"unbacked":  {"released", "expired"},
	"returned":  {"confirmed"},
	"recreated": {""},
}

// Replay adds up the movements from the first on, and looks at the cells after each.
func Replay(sale string, movements []Movement) (*Replayed, []Violation) {
	b := &Replayed{map[string]*Tally{}, map[string]string{}, map[string]string{}, map[string]string{}, map[string]bool{}, map[string]bool{}}
	var found []Violation
	for i, m := range movements {
		if !m.Merges && m.Seq != int64(i)+1 && (i == 0 || m.Seq != movements[i-1].Seq+1) {
			found = append(found, broken(Balance, "the journal of %s has a gap before entry %d", sale, m.Seq).with(m))
		}
		if problem := b.move(m); problem != "" {
			found = append(found, broken(OneState, "sale %s: %s", sale, problem).with(m))
		}
		for _, l := range m.Lines {
			if problem := b.Cells[l.Cell].problem(); problem != "" {
				found = append(found, broken(NoOversell, "sale %s, cell %s after movement %d: %s", sale, l.Cell, m.Seq, problem).with(m))
			}
		}
		if len(found) > 20 {
			break
		}
	}
	return b, found
}

// problem says what is wrong with a cell; empty: nothing.
func (t *Tally) problem() string {
	switch {
	case t == nil:
		return ""
	case t.Stock != t.Available+t.Held+t.InDoubt+t.Confirmed:
		return fmt.Sprintf("units are missing or too many: %v", t)
	case t.Available < 0 || t.Held < 0 || t.InDoubt < 0 || t.Confirmed < 0:
		return fmt.Sprintf("more is held, in doubt and sold than there is: %v", t)
	}
	return ""
}

// move does one movement, and says what is wrong with it.
func (b *Replayed) move(m Movement) (problem string) {
	from, to := place(m.Was), place(m.Kind)
	switch m.Kind {
	case "loaded", "adjusted":
		for _, l := range m.Lines {
			c := b.cell(l.Cell)
			c.Stock, c.Available = c.Stock+l.Qty, c.Available+l.Qty
		}
		return ""
	case "applied", "open", "paused", "closed", "extended", "repaired", "rebuilt", "missing", "entered", "left", "offers_paused", "offers_resumed":
		return ""
	case "returned":
		to = "available"
		b.Back[m.ID] = true
	case "recreated":
		from, to = "available", "confirmed"
	}
	if _, known := arrows[m.Kind]; !known {
		return "a movement of an unknown kind"
	}
	problem = b.step(m)
	if from == to {
		return problem
	}
	for _, l := range m.Lines {
		c := b.cell(l.Cell)
		*c.column(from) -= l.Qty
		*c.column(to) += l.Qty
	}
	return problem
}

// step follows a reservation into its next state.
func (b *Replayed) step(m Movement) (problem string) {
	state, known := b.States[m.ID]
	merged := m.Was == "" && m.Record != "" // by a rebuild, or it is the first
	switch {
	case state != m.Was && !(merged && !known):
		problem = fmt.Sprintf("the movement says that reservation %s was %q, the movements before say %q", m.ID, m.Was, state)
	case !merged && !contains(arrows[m.Kind], m.Was):
		problem = fmt.Sprintf("no reservation may go from %q to %q", m.Was, m.Kind)
	}
	b.Ended[m.ID] = m.Cause
	if m.Kind == "in_doubt" {
		b.Doubted[m.ID] = true
	}
	if m.Record != "" {
		b.Held[m.ID] = m.Record
	}
	switch m.Kind {
	case "returned":
	case "recreated":
		b.States[m.ID] = "confirmed"
	default:
		b.States[m.ID] = m.Kind
	}
	return problem
}

// place is where a reservation's units are in a state.
func place(state string) string {
	switch state {
	case "held", "in_doubt", "confirmed":
		return state
	}
	return "available"
}

func (b *Replayed) cell(name string) *Tally {
	if b.Cells[name] == nil {
		b.Cells[name] = new(Tally)
	}
	return b.Cells[name]
}

func (t *Tally) column(name string) *int64 {
	switch name {
	case "held":
		return &t.Held
	case "in_doubt":
		return &t.InDoubt
	case "confirmed":
		return &t.Confirmed
	}
	return &t.Available
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

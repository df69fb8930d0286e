package model

// Entry is one line of the journal.
type Entry struct {
	Seq, Time              int64
	Kind, ID, Buyer, Cause string
	Lines                  []Line
	// Was is the state in which the reservation was; empty: there was none, or the
	// entry is not about one.
	Was State
	// Record is the text of the reservation after the entry, where more than its state
	// and cause is new; else empty.
	Record string
}

func (s *Shard) write(kind, id string, lines []Line, buyer, cause string) {
	s.record(Entry{Kind: kind, ID: id, Lines: lines, Buyer: buyer, Cause: cause})
}

// record adds an entry to the journal.
func (s *Shard) record(e Entry) {
	s.touch()
	e.Seq, e.Time = int64(len(s.Journal)+1), s.Clock
	e.ID, e.Cause = plain(e.ID), plain(e.Cause)
	s.Journal = append(s.Journal, e)
}

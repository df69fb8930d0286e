// Package model is the executable specification of the stock of one sale: what
// every operation answers and what it changes, in plain Go. It keeps as little as
// possible. Where the units are, and what the purchase limits have counted,
// follows from the reservations, so the model cannot lose a unit; tests compare Redis
// with it.
package model

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// State is the state of a reservation.
type State string

// A tombstone is not a reservation: it prevents one from being made.
const (
	Held      State = "held"
	InDoubt   State = "in_doubt"
	Confirmed State = "confirmed"
	Released  State = "released"
	Expired   State = "expired"
	Unbacked  State = "unbacked"
	Tombstone State = "tombstone"
)

// MaxUnits is the largest number of units in a cell.
const MaxUnits = 1_000_000_000_000

// Reply is an operation's answer: a code, then its details.
type Reply []any

// Operation is an operation on a shard.
type Operation interface{ Run(*Shard) Reply }

// Shard is one sale. Times are in ms since 1970.
type Shard struct {
	// Time is what the server's clock shows. It may jump; the user of the model sets it
	// before each call.
	Time int64
	// Clock is the shard's clock at the last change. It goes back only where a lead ends.
	Clock int64
	// Lead is how far the shard's clock is ahead of Time, LeadKept that it was ever stored.
	Lead     int64
	LeadKept bool
	// Latest is how late it is at most by what the caller has heard of the shard's clock, and
	// LatestTime of Time; 0: it cannot tell. Reserves do not say it.
	Latest, LatestTime int64
	latest             int64 // the latest that Clock was

	Exists       bool
	Epoch        int64
	Version      int64
	Status       string
	Starts, Ends int64
	Doc          string
	// Stock is the units of each cell that were loaded or added, whatever their state is now.
	Stock       map[string]int64
	Records     map[string]*Record
	Adjustments map[string]Adjustment
	// Bindings says which reservation an idempotency key ("k|…"), a purchase without
	// a key ("d|…") or the ref of a buyer ("b|buyer|ref") belongs to, and which are found by
	// a ref alone ("r|ref" the first, "m|ref" the others).
	Bindings map[string]string
	// Returns says what came back under each "reservation|return id", and what was
	// answered.
	Returns map[string]Returned
	// Ended says for each counter of unpaid holds when some ended unpaid or in doubt, the
	// oldest first.
	Ended   map[string][]int64
	Journal []Entry
	// Acked is the last movement that a ledger has, AckedAt when it said so; 0: never.
	Acked, AckedAt int64
	// Forgotten are reservations whose records were dropped, by the state in which they were,
	// ForgottenExp the latest time until when one of their tokens was good.
	Forgotten    map[string]State
	ForgottenExp int64
}

// Record is one reservation, or a tombstone.
type Record struct {
	State                           State
	Deadline, Exp, Created, Changed int64
	Mode, Buyer, Cause              string
	Version                         int64
	Lines                           []Line
	Charges                         []Charge
	// Guard is the binding of a key or of a purchase without one, Print what was asked
	// under the key, KeyTTL how long at least it stays bound once confirmed.
	Guard, Print string
	KeyTTL       int64
	Ref, Gate    string
	Returned     []Line // in sum, in the order of Lines
	Probes       Probes
	// Unpaid are the counters that it is in while it is not paid.
	Unpaid []string
}

// left is what a confirmed reservation has not returned of a cell.
func (r *Record) left(cell string) int64 { return units(r.Lines, cell) - units(r.Returned, cell) }

// Line is units of one cell; in the journal they may be negative.
type Line struct {
	Cell  string
	Units int64
}

// Words writes lines as they are stored: "cell units cell units …".
func Words(lines []Line) string {
	words := make([]string, len(lines))
	for i, l := range lines {
		words[i] = l.Cell + " " + strconv.FormatInt(l.Units, 10)
	}
	return strings.Join(words, " ")
}

// Text is a record as it is stored: its fields, each followed by a tab.
func (r *Record) Text() string {
	var charges []Line
	for _, c := range r.Charges {
		charges = append(charges, Line{c.Field, c.Amount})
	}
	probes := ""
	if p := r.Probes; p.Tries > 0 {
		probes = fmt.Sprintf("%d %d %d %d", p.Tries, p.Next, p.Absent, p.Counted)
	}
	return fmt.Sprintf("%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t",
		r.State, r.Deadline, r.Exp, r.Created, r.Changed, r.Mode, r.Buyer, Words(r.Lines), Words(charges), r.Cause, r.Version,
		r.Guard, r.Print, r.KeyTTL, r.Ref, r.Gate, Words(r.Returned), probes, fields(r.Unpaid))
}

// Charge is what a reservation costs of a purchase limit.
type Charge struct {
	Field  string
	Amount int64
}

// Adjustment is an adjustment and its answer.
type Adjustment struct {
	Cell         string
	Delta, Stock int64
}

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

// New returns an empty shard.
func New() *Shard {
	return &Shard{
		Latest: Unbounded, LatestTime: Unbounded,
		Status: "draft", Stock: map[string]int64{},
		Records: map[string]*Record{}, Adjustments: map[string]Adjustment{},
		Bindings: map[string]string{}, Returns: map[string]Returned{},
		Ended:     map[string][]int64{},
		Forgotten: map[string]State{},
	}
}

// Clone returns a copy that shares no mutable data.
func (s *Shard) Clone() *Shard {
	c := *s
	c.Stock, c.Adjustments = maps.Clone(s.Stock), maps.Clone(s.Adjustments)
	c.Bindings, c.Returns = maps.Clone(s.Bindings), maps.Clone(s.Returns)
	c.Ended = maps.Clone(s.Ended)
	c.Forgotten = maps.Clone(s.Forgotten)
	c.Records = make(map[string]*Record, len(s.Records))
	for id, r := range s.Records {
		copied := *r // its lists are replaced, never changed
		c.Records[id] = &copied
	}
	c.Journal = slices.Clip(s.Journal)
	return &c
}

// Unbounded is later than any time: a caller that expects it knows of no step.
const Unbounded int64 = 99_999_999_999_999

// tolerance is how far a clock may be ahead of what a caller expects.
const tolerance = 1000

// Begin begins a call: if Time has stepped back, the lead grows, whatever the call does.
func (s *Shard) Begin() {
	if s.Exists && s.Time+s.Lead < s.Clock {
		s.lead(s.Clock - s.Time)
	}
}

func (s *Shard) lead(n int64) { s.Lead, s.LeadKept = n, true }

// Now is the shard's clock: Time with its lead, but for a step that the caller knows of.
func (s *Shard) Now() int64 {
	now := s.Time + s.Lead
	if s.Latest != 0 && now > s.Latest+tolerance {
		now = s.Latest
	}
	return max(now, s.Clock)
}

// sure is how late it is at least by Time; 0: the caller cannot tell.
func (s *Shard) sure() int64 {
	if s.Latest == 0 {
		return 0
	}
	return min(s.Time, s.LatestTime+tolerance)
}

// tooSoon is for how long yet only the shop's word releases a hold.
func (s *Shard) tooSoon(r *Record) int64 {
	time := s.Time
	if s.Latest != 0 {
		time = s.sure()
	}
	return max(r.Deadline-s.Now(), r.Exp-time, 0)
}

// margin is how long before the end of a held hold its token expires. Deadline and Changed
// are by the shard's clock, Exp and Created by Time.
func (r *Record) margin() int64 { return (r.Deadline - r.Exp) - (r.Changed - r.Created) }

// putOff gives a held hold a later deadline.
func (s *Shard) putOff(id string, deadline, exp int64, cause string) {
	r := s.Records[id]
	r.Deadline, r.Exp, r.Created = deadline, exp, r.Changed-s.Lead
	s.record(Entry{Kind: "extended", ID: id, Was: Held, Buyer: r.Buyer, Cause: cause, Record: r.Text()})
}

// Cell says where a cell's units are.
type Cell struct{ Stock, Available, Held, InDoubt, Confirmed int64 }

// Cell returns a cell; false: there is none.
func (s *Shard) Cell(name string) (Cell, bool) {
	stock, ok := s.Stock[name]
	c := Cell{Stock: stock}
	for _, r := range s.Records {
		for _, line := range r.Lines {
			if line.Cell != name {
				continue
			}
			switch r.State {
			case Held:
				c.Held += line.Units
			case InDoubt:
				c.InDoubt += line.Units
			case Confirmed:
				c.Confirmed += line.Units
			}
		}
		c.Confirmed -= units(r.Returned, name)
	}
	c.Available = c.Stock - c.Held - c.InDoubt - c.Confirmed
	return c, ok
}

// Counter is what a purchase limit has counted: all that is held or sold, and the
// part of it that is still pending.
type Counter struct{ Charged, Pending int64 }

// Counter returns the counter of one limit, window and identity.
func (s *Shard) Counter(field string) Counter {
	var c Counter
	for _, r := range s.Records {
		for _, charge := range r.Charges {
			if charge.Field != field {
				continue
			}
			switch r.State {
			case Held, InDoubt:
				c.Pending += charge.Amount
				c.Charged += charge.Amount
			case Confirmed:
				c.Charged += charge.Amount
			}
		}
	}
	return c
}

// short says which of several lines cannot be had, counting equal cells together;
// -1: all can.
func (s *Shard) short(lines []Line, free func(Cell) int64) (int, Cell) {
	asked := map[string]int64{}
	for i, line := range lines {
		c, ok := s.Cell(line.Cell)
		asked[line.Cell] += line.Units
		if !ok || free(c) < asked[line.Cell] {
			return i, c
		}
	}
	return -1, Cell{}
}

func available(c Cell) int64 { return c.Available }

// summed adds equal cells up, each where it comes first.
func summed(lines []Line) (sum []Line) {
	for _, line := range lines {
		if units(sum, line.Cell) == 0 && line.Units != 0 {
			sum = append(sum, Line{line.Cell, units(lines, line.Cell)})
		}
	}
	return sum
}

// sameUnits says whether two lists are about the same units, in any order.
func sameUnits(a, b []Line) bool {
	a, b = summed(a), summed(b)
	for _, line := range a {
		if units(b, line.Cell) != line.Units {
			return false
		}
	}
	return len(a) == len(b)
}

// units adds up what lines have of a cell.
func units(lines []Line, cell string) (sum int64) {
	for _, line := range lines {
		if line.Cell == cell {
			sum += line.Units
		}
	}
	return sum
}

// touch advances the shard's clock: every write does.
func (s *Shard) touch() {
	s.Clock = s.Now()
	s.latest = max(s.latest, s.Clock)
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

// become changes a reservation's state and its bindings: an ended one frees them, one
// that comes back takes them again.
func (s *Shard) become(id string, state State, cause string) {
	r := s.Records[id]
	e := Entry{Kind: string(state), ID: id, Was: r.State, Lines: r.Lines, Buyer: r.Buyer, Cause: cause}
	s.countUnpaid(r, state)
	r.State, r.Changed, r.Cause = state, s.Now(), plain(cause)
	if e.Was != Held && e.Was != InDoubt && state != Released && state != Expired {
		s.take(id, state)
		e.Record = r.Text()
	}
	s.free(id)
	s.record(e)
}

// find returns the reservation with an id; nil: there is none.
func (s *Shard) find(id string) *Record {
	if r, ok := s.Records[id]; ok && r.State != Tombstone {
		return r
	}
	return nil
}

// plain is text without the characters that separate the fields of a record.
func plain(text string) string {
	b := []byte(text)
	for i, c := range b {
		if c < ' ' || c == 0x7f {
			b[i] = ' '
		}
	}
	return string(b)
}

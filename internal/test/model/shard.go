// Package model is the executable specification of the stock of one sale: what
// every operation answers and what it changes, in plain Go. It keeps as little as
// possible. Where the units are, and what the purchase limits have counted,
// follows from the reservations, so the model cannot lose a unit; tests compare Redis
// with it.
package model

import (
	"maps"
	"slices"
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
	Deleted      int64 // epoch of the last sale under this id that was deleted
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
	Ended    map[string][]int64
	Queue    Queue
	Waitlist Waitlist
	Journal  []Entry
	// Acked is the last movement that a ledger has, AckedAt when it said so; 0: never.
	Acked, AckedAt int64
	// Forgotten are reservations whose records were dropped, by the state in which they were,
	// ForgottenExp the latest time until when one of their tokens was good.
	Forgotten    map[string]State
	ForgottenExp int64
}

// Adjustment is one that was made, and what it answered.
type Adjustment struct {
	Cell         string
	Delta, Stock int64
}

// New returns a shard of which nothing is known.
func New() *Shard {
	return &Shard{
		Latest: Unbounded, LatestTime: Unbounded,
		Status: "draft", Stock: map[string]int64{},
		Records: map[string]*Record{}, Adjustments: map[string]Adjustment{},
		Bindings: map[string]string{}, Returns: map[string]Returned{},
		Ended:     map[string][]int64{},
		Forgotten: map[string]State{},
		Queue:     newQueue(),
	}
}

// Clone returns a copy that shares no mutable data.
func (s *Shard) Clone() *Shard {
	c := *s
	c.Stock, c.Adjustments = maps.Clone(s.Stock), maps.Clone(s.Adjustments)
	c.Bindings, c.Returns = maps.Clone(s.Bindings), maps.Clone(s.Returns)
	c.Ended = maps.Clone(s.Ended)
	c.Forgotten = maps.Clone(s.Forgotten)
	c.Queue, c.Waitlist.People = s.Queue.clone(), slices.Clone(s.Waitlist.People)
	c.Records = make(map[string]*Record, len(s.Records))
	for id, r := range s.Records {
		copied := *r // its lists are replaced, never changed
		c.Records[id] = &copied
	}
	c.Journal = slices.Clip(s.Journal)
	return &c
}

// become puts a reservation into another state, and what it binds with it: what
// ends frees its bindings, what comes back takes them again.
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
	s.noteEnd(id)
	if e.Was == Held {
		s.leaveQueue(id)
		s.Waitlist.endOffer(id, r)
	}
	s.record(e)
}

// find returns the reservation with an id; nil: there is none.
func (s *Shard) find(id string) *Record {
	if r, ok := s.Records[id]; ok && r.State != Tombstone {
		return r
	}
	return nil
}

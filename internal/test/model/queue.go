package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Waiting is told of a hold whose order waits for the shop. Its record is held, in mode queued.
const Waiting State = "waiting"

const queued = "queued"

// told is the state that answers tell of a reservation.
func (r *Record) told() string {
	if r.waits() {
		return string(Waiting)
	}
	return string(r.State)
}

func (r *Record) waits() bool { return r.State == Held && r.Mode == queued }

// Waits says how an order waits for the shop, which takes AtOnce orders at a time: at most
// for Longest ms. Edge has its request open, Gate makes it, and Packed is what is to be sent.
type Waits struct {
	AtOnce, Longest    int64
	Edge, Gate, Packed string
}

// Queue is the line of a sale, and what is at the shop.
type Queue struct {
	// Kept says that orders of the sale have waited, or could have.
	Kept   bool
	Orders map[string]Order
	// AtShop is until when orders have their turns; sentAt: they may have been sent.
	AtShop    map[string]int64
	Paused    bool
	NotBefore int64 // the shop has asked for no order until then
	Alive     map[string]int64
	Told      map[string][]Turned // what edges are told when they ask for turns
	Gates     map[string]string   // which gates edges have
	Aside     map[string]bool     // gates and edges of which orders may be put aside
	left      [seconds]left
}

// left is how many orders left in a second.
type left struct{ at, n int64 }

// Order is one that waits, or has waited. Its Taker has the turn; none: it waits.
type Order struct {
	Home, Taker, Gate               string
	Try, Again, Since, Number, Size int64
	Score                           int64 // its place in the line
	Sent                            bool
}

// Turned is what an edge is told of an order; Try 0: it has left the line.
type Turned struct {
	ID  string
	Try int64
}

const (
	none    = "-"
	seconds = 10 // of which it is known how many orders left
	sentAt  = int64(9e15)
	before  = int64(1e15) // numbers of the journal are less
	aside   = int64(4e15) // on the score of an order that no edge can send
)

func newQueue() Queue {
	return Queue{Orders: map[string]Order{}, AtShop: map[string]int64{}, Alive: map[string]int64{}, Told: map[string][]Turned{}, Gates: map[string]string{}, Aside: map[string]bool{}}
}

func (q Queue) clone() Queue {
	q.Orders, q.AtShop, q.Alive = maps.Clone(q.Orders), maps.Clone(q.AtShop), maps.Clone(q.Alive)
	q.Told, q.Gates, q.Aside = maps.Clone(q.Told), maps.Clone(q.Gates), maps.Clone(q.Aside)
	for edge, all := range q.Told {
		q.Told[edge] = slices.Clip(all)
	}
	return q
}

// Line lists the orders that wait, the next one first.
func (q *Queue) Line() []string {
	var ids []string
	for id, o := range q.Orders {
		if o.Taker == none {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(cmp.Compare(q.Orders[a].Score, q.Orders[b].Score), cmp.Compare(a, b))
	})
	return ids
}

// Fields are what else is kept of the queue, as a hash has it.
func (q *Queue) Fields() map[string]string {
	f, size := map[string]string{}, int64(0)
	for _, o := range q.Orders {
		size += o.Size
	}
	for name, n := range map[string]int64{"bytes": size, "until": q.NotBefore} {
		if n > 0 {
			f[name] = strconv.FormatInt(n, 10)
		}
	}
	if q.Paused {
		f["paused"] = "1"
	}
	for i, l := range q.left {
		if l.at > 0 {
			f[fmt.Sprint("s", i)] = fmt.Sprintf("%d %d", l.at, l.n)
		}
	}
	for edge, until := range q.Alive {
		f["e|"+edge] = strconv.FormatInt(until, 10)
	}
	for edge, gates := range q.Gates {
		f["g|"+edge] = gates
	}
	for name := range q.Aside {
		f["a|"+name] = "1"
	}
	for edge, all := range q.Told {
		for _, t := range all {
			f["t|"+edge] += fmt.Sprintf("%s %d ", t.ID, t.Try)
		}
	}
	return f
}

// room is how many orders may go to the shop now.
func (s *Shard) room(atOnce int64) int64 {
	if s.Queue.Paused || s.Now() < s.Queue.NotBefore {
		return 0
	}
	return max(atOnce-int64(len(s.Queue.AtShop)), 0)
}

// leaves counts an order that leaves for the shop.
func (s *Shard) leaves() {
	second := s.Now() / 1000
	l := &s.Queue.left[second%seconds]
	if l.at != second {
		l.at, l.n = second, 0
	}
	l.n++
}

// leftLately is how many orders left in the last full seconds, and in how many since the first.
func (s *Shard) leftLately() (n, in int64) {
	second := s.Now() / 1000
	first := second
	for _, l := range s.Queue.left {
		if l.at < second && l.at > second-seconds && l.n > 0 {
			n += l.n
			first = min(first, l.at)
		}
	}
	return n, second - first
}

// waitsOn reports whether a new hold waits.
func (o Reserve) waitsOn(s *Shard) bool {
	if o.Waits == nil {
		return false
	}
	s.countShop()
	s.Queue.Kept = true
	return o.accepts || len(s.Queue.Line()) > 0 || s.room(o.Waits.AtOnce) == 0
}

// enter puts the order of a new hold in the line, or notes that it goes to the shop.
func (o Reserve) enter(s *Shard) {
	switch w := o.Waits; {
	case w == nil:
	case s.Records[o.ID].waits():
		number := int64(len(s.Journal))
		s.Queue.Orders[o.ID] = Order{Home: w.Edge, Taker: none, Gate: w.Gate, Since: s.Now(), Number: number, Score: number, Size: int64(len(w.Packed))}
	default:
		s.leaves()
		s.Queue.AtShop[o.ID] = sentAt
	}
}

// back puts an order before all that came since.
func (q *Queue) back(id string, o Order) {
	delete(q.AtShop, id)
	o.Taker, o.Score = none, o.Number-before
	q.Orders[id] = o
}

// leaveQueue forgets the order of a hold that has ended, or that the shop has answered.
func (s *Shard) leaveQueue(id string) {
	if !s.Queue.Kept {
		return
	}
	if o, ok := s.Queue.Orders[id]; ok && !o.Sent {
		s.tell(o.Home, Turned{id, 0})
	}
	delete(s.Queue.Orders, id)
	delete(s.Queue.AtShop, id)
}

// tell notes what an edge is to be told, unless it has stopped.
func (s *Shard) tell(edge string, t Turned) {
	if until, heard := s.Queue.Alive[edge]; edge != none && (!heard || until > s.Now()) {
		s.Queue.Told[edge] = append(s.Queue.Told[edge], t)
	}
}

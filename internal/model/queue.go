package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
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
)

func newQueue() Queue {
	return Queue{Orders: map[string]Order{}, AtShop: map[string]int64{}, Alive: map[string]int64{}, Told: map[string][]Turned{}}
}

func (q Queue) clone() Queue {
	q.Orders, q.AtShop, q.Alive = maps.Clone(q.Orders), maps.Clone(q.AtShop), maps.Clone(q.Alive)
	q.Told = maps.Clone(q.Told)
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

// countShop counts what is at the shop where no order has come to a queue yet.
func (s *Shard) countShop() {
	if s.Queue.Kept {
		return
	}
	for id, r := range s.Records {
		if r.State == Held {
			s.Queue.atShopBy(id, r.Mode, r.Changed, s.Now())
		}
	}
}

// atShopFor is for how long an order counts of which only its hold is known, if the shop decides later.
const atShopFor = 20_000

// atShopBy counts an order of which only its hold is known.
func (q *Queue) atShopBy(id, mode string, since, now int64) {
	switch {
	case mode == "response":
		q.AtShop[id] = sentAt
	case mode == "backend" && since+atShopFor > now:
		q.AtShop[id] = since + atShopFor
	}
}

// waitsOn says whether a new hold waits.
func (o Reserve) waitsOn(s *Shard) bool {
	if o.Waits == nil {
		return false
	}
	s.countShop()
	s.Queue.Kept = true
	return len(s.Queue.Line()) > 0 || s.room(o.Waits.AtOnce) == 0
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

// moveTimes moves the times of the queue where the shard's clock goes back by so many ms.
func (s *Shard) moveTimes(ms int64) {
	if !s.Queue.Kept {
		return
	}
	if s.Queue.NotBefore > 0 {
		s.Queue.NotBefore -= ms
	}
	s.Queue.left = [seconds]left{}
	for edge := range s.Queue.Alive {
		s.Queue.Alive[edge] -= ms
	}
}

// moveOrder is the same for one order.
func (s *Shard) moveOrder(id string, ms int64) {
	o, ok := s.Queue.Orders[id]
	if !ok {
		return
	}
	o.Since -= ms
	s.Queue.Orders[id] = o
	if until, turn := s.Queue.AtShop[id]; turn && until < sentAt {
		s.Queue.AtShop[id] = until - ms
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

// beginAgain begins a hold anew: its order is sent, or waits again.
func (s *Shard) beginAgain(id, mode, cause string, holdFor, margin int64) {
	r := s.Records[id]
	own := s.Time
	if s.Latest != 0 && own > s.LatestTime+tolerance { // a step that the caller knows of: the token would be good for too long
		own = s.LatestTime
	}
	r.Mode, r.Deadline, r.Exp, r.Created, r.Changed, r.Cause = mode, s.Now()+holdFor, own+holdFor-margin, own, s.Now(), cause
	s.record(Entry{Kind: "extended", ID: id, Was: Held, Buyer: r.Buyer, Cause: cause, Record: r.Text()})
}

// Turn asks which orders an edge may send now: at most Most, and at most AtOnce at the shop. Turns
// last for Lease ms.
type Turn struct {
	Edge                string
	Lease, AtOnce, Most int64
	Gates               string
}

// Run gives turns in the order in which orders came.
func (o Turn) Run(s *Shard) Reply {
	if !s.Exists {
		return Reply{"ok", int64(0), int64(0), int64(0), int64(0)}
	}
	q := &s.Queue
	if s.Latest == 0 { // the caller cannot tell the time
		return Reply{"ok", int64(len(q.Line())), int64(len(q.AtShop)), int64(1), int64(1)}
	}
	s.touch()
	until := s.Now() + o.Lease
	q.Alive[o.Edge] = until
	var told []Turned
	for _, t := range q.Told[o.Edge] {
		if has, ok := q.Orders[t.ID]; t.Try == 0 || ok && has.Taker == o.Edge && has.Try == t.Try {
			told = append(told, t)
		}
	}
	delete(q.Told, o.Edge)

	var over []string // turns that are
	for id, at := range q.AtShop {
		if at <= s.Now() {
			over = append(over, id)
		}
	}
	slices.SortFunc(over, func(a, b string) int { return cmp.Or(cmp.Compare(q.AtShop[a], q.AtShop[b]), cmp.Compare(a, b)) })
	line := q.Line()
	over = over[:min(int64(len(over)), o.Most)]
	over = slices.DeleteFunc(over, func(id string) bool {
		order, ok := q.Orders[id]
		if delete(q.AtShop, id); ok { // else only its hold was known
			q.back(id, order)
		}
		return !ok
	})
	slices.SortFunc(over, func(a, b string) int {
		return cmp.Or(cmp.Compare(q.Orders[a].Score, q.Orders[b].Score), cmp.Compare(a, b))
	})
	free := min(s.room(o.AtOnce), o.Most)
	for _, id := range slices.Concat(over, line) {
		to := ""
		if free > 0 {
			to = o.giveTo(s, q.Orders[id])
		}
		if to == "" {
			continue
		}
		order := q.Orders[id]
		order.Taker, order.Try = to, order.Try+1
		q.Orders[id], q.AtShop[id] = order, until
		if t := (Turned{id, order.Try}); to == o.Edge {
			told = append(told, t)
		} else {
			s.tell(to, t)
		}
		s.leaves()
		free--
	}
	wait := int64(0)
	if !q.Paused {
		wait = max(q.NotBefore-s.Now(), 0)
	}
	turns := int64(0)
	for _, at := range q.AtShop {
		if at < sentAt {
			turns++
		}
	}
	reply := Reply{"ok", int64(len(q.Line())), int64(len(q.AtShop)), wait, turns}
	for _, t := range told {
		reply = append(reply, t.ID, t.Try)
	}
	return reply
}

// giveTo is the edge that gets the turn of an order; empty: none can send it.
func (o Turn) giveTo(s *Shard, order Order) string {
	q := &s.Queue
	if until, heard := q.Alive[order.Home]; heard && until > s.Now() {
		return order.Home
	} else if heard {
		delete(q.Alive, order.Home)
		delete(q.Told, order.Home)
	}
	if slices.Contains(strings.Fields(o.Gates), order.Gate) {
		return o.Edge
	}
	return ""
}

// Send: the edge that has the turn sends the order. Told: it was promised that, and says it again.
type Send struct {
	ID, Edge        string
	Try             int64
	Told            bool
	Mode            string
	HoldFor, Margin int64
}

// Run begins the hold anew.
func (o Send) Run(s *Shard) Reply {
	r := s.find(o.ID)
	switch {
	case r == nil:
		return Reply{"not_found"}
	case r.State != Held:
		return Reply{"conflict", string(r.State)}
	}
	order, ok := s.Queue.Orders[o.ID]
	if !o.Told && (!ok || order.Taker != o.Edge || order.Try != o.Try) {
		return Reply{"conflict", string(Waiting)}
	}
	if r.waits() {
		s.beginAgain(o.ID, o.Mode, "sent", o.HoldFor, o.Margin)
		if ok {
			order.Taker, order.Sent, order.Size = o.Edge, true, 0
			s.Queue.Orders[o.ID] = order
		}
		s.Queue.AtShop[o.ID] = sentAt
	}
	return Reply{"ok", string(Held), r.Created + r.Deadline - r.Changed, r.Exp, s.Epoch, r.Created}
}

// Again: the shop has said that an order is to come later, and none for Later ms. Try is the one with
// which it was sent; 0: at once.
type Again struct {
	ID, Edge, Gate, Packed            string
	Try, Longest, Margin, Later, Most int64
}

// Run lets it wait before all others, at most Most times.
func (o Again) Run(s *Shard) Reply {
	r := s.find(o.ID)
	switch {
	case r == nil:
		return Reply{"not_found"}
	case r.State != Held:
		return Reply{"conflict", string(r.State)}
	}
	order, ok := s.Queue.Orders[o.ID]
	if r.waits() {
		if !ok {
			s.waitAgain(o.ID, o.Edge, o.Gate, o.Packed)
		}
		return Reply{"ok", string(Waiting)}
	}
	if !ok {
		order = Order{Home: o.Edge, Taker: o.Edge, Try: o.Try, Gate: o.Gate, Since: s.Now(), Number: r.Changed - before/10}
	}
	switch {
	case order.Taker != o.Edge:
		return Reply{"conflict", string(Held)}
	case o.Try < order.Try: // it has waited since, and was sent again
		return Reply{"ok", string(Held)}
	case order.Again >= o.Most:
		return Reply{"too_many", order.Again}
	}
	s.countShop()
	s.beginAgain(o.ID, queued, "again", o.Longest, o.Margin)
	order.Try, order.Again, order.Sent, order.Size = o.Try, order.Again+1, false, int64(len(o.Packed))
	s.Queue.back(o.ID, order)
	s.Queue.Kept = true
	if o.Later > 0 {
		s.Queue.NotBefore = max(s.Queue.NotBefore, s.Now()+o.Later)
	}
	return Reply{"ok", string(Waiting)}
}

// Yield: an edge that has a turn cannot send the order. With what is to be sent, Packed, it has perhaps
// told that it sends, and has not.
type Yield struct {
	ID, Edge, Packed     string
	Try, Longest, Margin int64
}

// Run lets another edge have it.
func (o Yield) Run(s *Shard) Reply {
	r := s.find(o.ID)
	switch {
	case r == nil:
		return Reply{"not_found"}
	case r.State != Held || !r.waits() && o.Packed == "":
		return Reply{"conflict", string(r.State)}
	}
	order, ok := s.Queue.Orders[o.ID]
	if !ok || order.Taker != o.Edge || order.Try != o.Try {
		return Reply{"conflict", string(Waiting)}
	}
	s.touch()
	switch {
	case !r.waits():
		s.beginAgain(o.ID, queued, "unsent", o.Longest, o.Margin)
		order.Sent, order.Size = false, int64(len(o.Packed))
	case o.Packed == "":
		order.Home = none
	}
	s.Queue.back(o.ID, order)
	return Reply{"ok", order.Try}
}

// Leave: an order leaves the line before it is sent.
type Leave struct{ ID, Cause string }

// Run releases its hold.
func (o Leave) Run(s *Shard) Reply {
	r := s.find(o.ID)
	switch {
	case r == nil:
		return Reply{"not_found"}
	case r.State == Released:
		return Reply{"ok", string(Released)}
	case r.State != Held:
		return Reply{"conflict", string(r.State)}
	case !r.waits():
		return Reply{"at_shop"}
	}
	s.become(o.ID, Released, o.Cause)
	return Reply{"ok", string(Released)}
}

// Lose forgets an order, as a server does that has only what the journal tells.
func (q *Queue) Lose(id string) {
	delete(q.Orders, id)
	delete(q.AtShop, id)
}

// QueueAfter is the queue of a server that has this shard, and then has got the movements that
// followed: of orders these tell only that they were sent, put off, or ended. It does not know any more
// which edges live.
func (s *Shard) QueueAfter(movements []Entry) Queue {
	type known struct {
		state State
		mode  string
		since int64
	}
	q, all := s.Queue.clone(), map[string]known{}
	q.Alive, q.Told = map[string]int64{}, map[string][]Turned{}
	for id, r := range s.Records {
		all[id] = known{State(r.told()), r.Mode, r.Changed}
	}
	for _, e := range movements {
		switch State(e.Kind) {
		case Held, InDoubt, Confirmed, Released, Expired, Unbacked, "extended":
		default:
			continue
		}
		before, there := all[e.ID]
		now := known{State(e.Kind), before.mode, e.Time}
		if e.Record != "" {
			f := strings.Split(e.Record, "\t")
			since, _ := strconv.ParseInt(f[4], 10, 64)
			now = known{State((&Record{State: State(f[0]), Mode: f[5]}).told()), f[5], since}
		}
		all[e.ID] = now
		if now.state == Waiting && !q.Kept {
			q.Kept = true
			for id, r := range all {
				if r.state == Held {
					q.atShopBy(id, r.mode, r.since, e.Time)
				}
			}
		}
		if q.Kept && now.state == Held && (!there || before.state == Tombstone) {
			q.atShopBy(e.ID, now.mode, now.since, e.Time)
		}
		if before.state == now.state {
			continue
		}
		if before.state == Waiting || before.state == Held {
			q.Lose(e.ID)
		}
		if before.state == Waiting && now.state == Held {
			q.AtShop[e.ID] = sentAt
		}
	}
	return q
}

// waitAgain lets the order of a hold wait that was lost: before all that came since.
func (s *Shard) waitAgain(id, edge, gate, packed string) {
	s.touch()
	s.countShop()
	changed := s.Records[id].Changed
	s.Queue.Kept = true
	s.Queue.back(id, Order{Home: edge, Gate: gate, Since: changed, Number: changed - before/10, Size: int64(len(packed))})
}

// Orphans are holds that wait and whose orders were lost. Age is for how long they must have waited.
type Orphans struct{ Age int64 }

// Run releases them.
func (o Orphans) Run(s *Shard) Reply {
	var ids []string
	for id, r := range s.Records {
		if _, ok := s.Queue.Orders[id]; !ok && r.waits() && s.Now()-r.Changed >= o.Age {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(cmp.Compare(s.Records[a].Deadline, s.Records[b].Deadline), cmp.Compare(a, b))
	})
	for _, id := range ids {
		s.become(id, Released, "its order was lost")
	}
	return Reply{"ok", "0", int64(len(ids))}
}

// Stands asks where an order is.
type Stands struct{ ID string }

// Run tells its place in the line.
func (o Stands) Run(s *Shard) Reply {
	r := s.find(o.ID)
	switch {
	case r == nil:
		return Reply{"not_found"}
	case !r.waits():
		return Reply{"ok", string(r.State), int64(0), int64(0), int64(0), int64(0), r.Deadline - s.Lead, s.sentSoFar(o.ID, r)}
	}
	still := int64(0)
	if s.Queue.Paused || s.Queue.NotBefore > s.Now() {
		still = 1
	}
	left, in := s.leftLately()
	return Reply{"ok", string(Waiting), int64(slices.Index(s.Queue.Line(), o.ID) + 1), left, in, still, r.Deadline - s.Lead, int64(0)}
}

// sentSoFar is 0 for an order that was not sent, 1 while the shop has it, and 2 afterwards.
func (s *Shard) sentSoFar(id string, r *Record) int64 {
	_, atShop := s.Queue.AtShop[id]
	switch {
	case r.Mode == queued:
		return 0
	case atShop && r.State == Held:
		return 1
	}
	return 2
}

// Rejoin: an edge has the request of an order open that Redis may have lost.
type Rejoin struct{ ID, Edge, Gate, Packed string }

// Run lets it wait again where it was lost.
func (o Rejoin) Run(s *Shard) Reply {
	if !s.Exists {
		return Reply{"no_sale"}
	}
	r := s.find(o.ID)
	switch {
	case r == nil:
		return Reply{"not_found"}
	case !r.waits():
		return Reply{"conflict", string(r.State)}
	}
	if _, ok := s.Queue.Orders[o.ID]; !ok {
		s.waitAgain(o.ID, o.Edge, o.Gate, o.Packed)
	}
	return Reply{"ok", string(Waiting)}
}

// Look is what operators do to the line: show, pause, resume, or drain, which releases Most orders.
type Look struct {
	Does  string
	Most  int64
	Cause string
}

// Run tells of the line as it is then.
func (o Look) Run(s *Shard) Reply {
	if !s.Exists {
		return Reply{"not_found"}
	}
	q, released := &s.Queue, int64(0)
	switch o.Does {
	case "pause":
		s.touch()
		q.Paused = true
	case "resume":
		s.touch()
		q.Paused, q.NotBefore = false, 0
	case "drain":
		line := q.Line()
		for _, id := range line[:min(int64(len(line)), o.Most)] {
			s.become(id, Released, o.Cause)
			released++
		}
	}
	var size, paused, oldest int64
	for _, order := range q.Orders {
		size += order.Size
	}
	if q.Paused {
		paused = 1
	}
	line := q.Line()
	if len(line) > 0 {
		oldest = s.Now() - q.Orders[line[0]].Since
	}
	left, in := s.leftLately()
	return Reply{"ok", int64(len(line)), int64(len(q.AtShop)), size, paused, max(q.NotBefore-s.Now(), 0), oldest, left, in, released}
}

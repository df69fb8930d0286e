package model

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

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
	q.Alive, q.Told, q.Gates = map[string]int64{}, map[string][]Turned{}, map[string]string{}
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

// Rejoin says that an edge has the request of an order open that Redis may have lost.
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

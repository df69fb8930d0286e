package auditor

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Queue says how a gate lets the orders of a sale wait for the shop.
type Queue struct {
	Sale   string
	AtOnce int
	// Every is the time between two orders that leave for the shop; 0: any.
	Every time.Duration
	// InOrder: one order at a time, so that they reach the shop in the order in which they came.
	InOrder bool
}

// late leaving: an order that could leave up to so much earlier does not delay the next one, and
// Redis's clock has milliseconds.
const catchUp = 22 * time.Millisecond

// Look is one request at the place of an order, and what came back.
type Look struct {
	Sent, Heard int64 // as in Attempt
	Edge        string
	Cancels     bool
	Of          *Attempt // which was told the place

	Status int
	State  string // waiting, at_shop or how it ended; empty: the shop's own answer
	Proof  string
	Err    string
}

func (l *Look) String() string {
	return fmt.Sprintf("at %s, sent at %d, heard at %d, cancels %v: %d %s, order %q %s", l.Edge, l.Sent, l.Heard, l.Cancels, l.Status, l.State, l.Proof, l.Err)
}

// Looked adds a request at a place.
func (h *History) Looked(l *Look) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Looks = append(h.Looks, l)
}

// givenUp are the causes for which an order is not sent that could have been.
var givenUp = map[string]bool{
	"waited too long": true, "its order was lost": true, "unreadable": true, "it did not reach its gate": true, "put off too often": true,
}

// judgeQueues: orders go to the shop as its queue says, none is given up, and what buyers hear of
// their places is true.
func judgeQueues(h *History, replayed map[string]*Replayed) (found []Violation) {
	for _, q := range h.Queues {
		b := replayed[q.Sale]
		if b == nil {
			continue
		}
		orders := h.ordersOf(q.Sale)
		found = append(found, limited(judgePace(&q, orders))...)
		found = append(found, limited(judgeAtOnce(&q, orders, b))...)
		if q.InOrder {
			found = append(found, limited(h.judgeOrder(&q, orders))...)
		}
		var lost []Violation
		for id, cause := range b.Ended {
			if b.States[id] == "released" && givenUp[cause] {
				lost = append(lost, broken(NotLost, "the order of reservation %s was given up: %s", id, cause))
			}
		}
		found = append(found, limited(lost)...)
	}
	if len(h.Queues) > 0 {
		found = append(found, h.judgeLooks(replayed)...)
	}
	return found
}

// ordersOf are those that reached the shop with a good token, as they came.
func (h *History) ordersOf(sale string) (orders []*Order) {
	for _, o := range h.Orders {
		if o.Sale == sale && o.JTI != "" && o.Problem == "" {
			orders = append(orders, o)
		}
	}
	slices.SortFunc(orders, func(a, b *Order) int { return int(a.At - b.At) })
	return orders
}

// judgePace: in no window of any length do more orders reach the shop than have left in it, by
// the pace, and were on their way when it began: at most as many as may be there at once. So
// neither a slow machine nor a fault makes a difference.
func judgePace(q *Queue, orders []*Order) (found []Violation) {
	if q.Every == 0 {
		return nil
	}
	orders = slices.Clone(orders)
	slices.SortFunc(orders, func(a, b *Order) int { return a.Came.Compare(b.Came) })
	for i, first := range orders {
		for j := i + q.AtOnce; j < len(orders); j++ {
			window := orders[j].Came.Sub(first.Came)
			if most := int((window+catchUp)/q.Every) + 1 + q.AtOnce; j-i+1 > most {
				found = append(found, broken(Pace, "%d orders of sale %s reached the shop in %v; at most %d may", j-i+1, q.Sale, window, most).with(first, orders[j]))
				break
			}
		}
	}
	return found
}

// judgeAtOnce: no more orders are at the shop than may be. One that is in doubt has given its
// room up, whatever the shop does.
func judgeAtOnce(q *Queue, orders []*Order, b *Replayed) (found []Violation) {
	var there []*Order
	for _, o := range orders {
		there = slices.DeleteFunc(there, func(other *Order) bool { return other.Left < o.At })
		if o.Left == 0 || b.Doubted[o.JTI] {
			continue
		}
		if there = append(there, o); len(there) > q.AtOnce {
			found = append(found, broken(Pace, "%d orders of sale %s are at the shop at once; at most %d may", len(there), q.Sale, q.AtOnce).with(there[0], o))
		}
	}
	return found
}

// judgeOrder: they reach the shop in the order in which their stock was held.
func (h *History) judgeOrder(q *Queue, orders []*Order) (found []Violation) {
	held := map[string]int64{}
	for _, s := range h.Shards {
		for _, m := range s.Movements {
			if s.Sale == q.Sale && m.Kind == "held" {
				held[m.ID] = m.Seq
			}
		}
	}
	var last *Order
	for _, o := range orders {
		if o.Again {
			continue
		}
		if last != nil && held[o.JTI] < held[last.JTI] {
			found = append(found, broken(InOrder, "movement %d held the order of reservation %s, and movement %d that of %s, which the shop got before", held[o.JTI], o.JTI, held[last.JTI], last.JTI).with(last, o))
		}
		last = o
	}
	return found
}

// judgeLooks: what buyers hear of an order that waits, or of one that was not sent, is true.
func (h *History) judgeLooks(replayed map[string]*Replayed) []Violation {
	seen := map[string]*Order{} // by reservation
	byAttempt := map[string]*Order{}
	for _, o := range h.Orders {
		if o.JTI != "" && (seen[o.JTI] == nil || o.Taken) {
			seen[o.JTI] = o
		}
		byAttempt[o.Attempt] = o
	}
	state := func(id string) string {
		for _, b := range replayed {
			if s := b.States[id]; s != "" {
				return s
			}
		}
		return ""
	}
	unsent := map[string]int{} // how often an edge said that it had not sent an order after all
	for _, s := range h.Shards {
		for _, m := range s.Movements {
			if m.Kind == "extended" && m.Cause == "unsent" {
				unsent[m.ID]++
			}
		}
	}
	var found []Violation
	left := map[string]*Look{} // that said first that an order has left the line
	looks := slices.Clone(h.Looks)
	slices.SortFunc(looks, func(a, b *Look) int { return int(a.Heard - b.Heard) })
	for _, l := range looks {
		if l.Heard == 0 {
			continue
		}
		id := l.Of.Reservation
		o := seen[id]
		taken := o != nil && o.Taken
		wrong := func(format string, args ...any) {
			v := broken(Places, format, args...).with(l.Of, l)
			if o != nil {
				v = v.with(o)
			}
			found = append(found, v)
		}
		if l.State != "waiting" && l.Status < 500 && left[id] == nil {
			left[id] = l
		}
		if first := left[id]; l.State == "waiting" && first != nil && first.State == "at_shop" && first.Heard < l.Sent && unsent[id] > 0 {
			unsent[id]--
			delete(left, id)
		}
		switch {
		case l.Status == 503:
		case l.Status == 404:
			wrong("a place that a buyer was told is not there")
		case l.State == "waiting" && left[id] != nil && left[id].Heard < l.Sent:
			wrong("an order waits that had left the line: %v", left[id])
		case l.State == "released" && (taken || state(id) != "released"):
			wrong("a buyer heard released; the reservation is %q", state(id))
		case l.State == "confirmed" && !taken:
			wrong("a buyer heard confirmed, and the shop has no such order")
		case l.State == "" && (o == nil || o.Answer != l.Status || o.Proof != l.Proof):
			wrong("a buyer heard %d %q, which is not what the shop has answered", l.Status, l.Proof)
		case l.State == "" && o.Buyer != l.Of.Buyer:
			wrong("a buyer got the answer to another one's order")
		}
	}
	for _, a := range h.Attempts {
		if o := byAttempt[a.ID]; a.Heard > 0 && a.Reason == "not_sent" && o != nil {
			found = append(found, broken(Places, "a buyer heard not_sent, and the shop got the order").with(a, o))
		}
		if a.Heard > 0 && a.Queue != "" && (a.Status != 202 || !strings.HasPrefix(a.Place, "/orders/") || a.Reservation == "") {
			found = append(found, broken(Places, "a buyer was told no place").with(a))
		}
	}
	return limited(found)
}

// Package queue lets orders whose stock is held wait until the shop can take them: by arrival,
// at the shop's pace, counted over all edges. The scripts turn, send, again, rejoin, yield,
// orphans, leave, line and place of package lua keep the line.
package queue

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/store/identity"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

const (
	// defaultLease is how long an edge has a turn by default.
	defaultLease = 3 * time.Second
	// turnsAtOnce is how many turns one call gives.
	turnsAtOnce = 200
	// lookEvery is how often an edge looks for lines that no request of its own has told it of:
	// another edge may have stopped.
	lookEvery = 2 * time.Second
	// notSent is above every score of a turn, see lua/queue.lua.
	notSent = "(9000000000000000"
)

// Turn is the right of an edge to send an order to the shop.
type Turn struct {
	Sale, ID string
	// Try says how often an edge was given the turn of this order. 0: the order has left the
	// line without this edge; Place says what became of it.
	Try int64
}

// Sender sends orders whose request is not open any more.
type Sender interface {
	// GateName is that of the sender's gate, and Server that of its server.
	GateName() string
	Server() string
	// Pace is that of the sender's gate.
	Pace() reservation.Pace
	// Dispatch sends the order of a turn. It is called in a goroutine of its own, and ends with
	// Queue.Send or Queue.Yield. ctx ends when the queue stops.
	Dispatch(ctx context.Context, t Turn, o *Order)
}

// Options configure a Queue.
type Options struct {
	Store *reservation.Store
	// Edge is the id under which turns are given.
	Edge string
	// Secret is what all edges share. It fails while it is not known.
	Secret func() (*identity.Secret, error)
	// Sales are the ids of all sales that the edge knows.
	Sales func() []string
	// Abandoned reports whether an attempt was refused because it was not known whether Redis had
	// reserved for it, and the release is under way. Default: none was.
	Abandoned func(sale, id string) bool
	// Kept returns nil once an order may go to the shop of which Redis has just recorded that it is sent:
	// see fence.Keeper. Default: at once.
	Kept func(ctx context.Context, sale string) error
	// Lease is how long an edge has a turn, and counts as alive without asking for turns. Default: 3 s.
	Lease time.Duration
	Log   *zap.Logger
}

// Queue is the part of one edge in the lines of all sales. It is safe for concurrent use.
type Queue struct {
	Options
	shard  *shard.Client
	ctx    context.Context
	cancel context.CancelFunc
	loops  sync.WaitGroup

	mu      sync.Mutex
	stopped bool
	looking bool                // look runs
	lines   map[string]*line    // by sale
	senders map[string][]Sender // by the print of their gate, the newest last
	asked   map[string]*asked   // by sale and id

	askEvery  time.Duration // askEvery
	toldFull  atomic.Int64  // when an operator was told last that answers are dropped, in seconds
	polls     polls
	mostPolls int // mostPolls
}

// New makes a queue, which does nothing before its first order or sender.
func New(o Options) *Queue {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	o.Lease = cmp.Or(o.Lease, defaultLease)
	q := &Queue{Options: o, shard: o.Store.Shard(), lines: make(map[string]*line), senders: make(map[string][]Sender), asked: make(map[string]*asked), askEvery: askEvery, mostPolls: mostPolls}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	return q
}

// Stop ends the loops and waits for them, and for orders that are being sent. Waiters get no
// turn any more.
func (q *Queue) Stop() {
	q.mu.Lock()
	q.stopped = true
	q.mu.Unlock()
	q.cancel()
	q.loops.Wait()
}

// Serve has a sender send the orders of gates with a print, until leave is called. The newest
// one with a print sends.
func (q *Queue) Serve(print string, s Sender) (leave func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.senders[print] = append(q.senders[print], s)
	if !q.looking {
		q.looking = true
		q.goLocked(q.look)
	}
	return sync.OnceFunc(func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.senders[print] = slices.DeleteFunc(q.senders[print], func(other Sender) bool { return other == s }); len(q.senders[print]) == 0 {
			delete(q.senders, print)
		}
	})
}

// goLocked starts a loop unless the queue has stopped.
func (q *Queue) goLocked(loop func()) {
	if !q.stopped {
		q.loops.Go(loop)
	}
}

// prints are those of the gates for which this edge can send orders.
func (q *Queue) prints() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(q.senders)), " ")
}

// senderOf returns the newest sender that can send an order: that of the order's own server, if
// the gate stands in several. nil: there is none.
func (q *Queue) senderOf(o *Order) Sender {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.senders[o.Gate]
	for _, s := range slices.Backward(all) {
		if s.Server() == o.Server {
			return s
		}
	}
	if len(all) > 0 {
		return all[len(all)-1]
	}
	return nil
}

// paceOf is the pace of a gate, which is known by its print and its name. After a reload it is that
// of the gate that has the name now. Of several, and where none is left, the slowest counts: too
// slow for a moment is better than too fast. False: there is no gate any more.
func (q *Queue) paceOf(print, name string) (reservation.Pace, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if same := q.senders[print]; len(same) > 0 {
		return same[len(same)-1].Pace(), true
	}
	var named, all []reservation.Pace
	for _, some := range q.senders {
		for _, s := range some {
			if all = append(all, s.Pace()); name == s.GateName() {
				named = append(named, s.Pace())
			}
		}
	}
	if len(named) > 0 {
		all = named
	}
	if len(all) == 0 {
		return reservation.Pace{}, false
	}
	slowest := all[0]
	for _, p := range all[1:] {
		if p.Orders > 0 && (slowest.Orders == 0 || p.Per*time.Duration(slowest.Orders) > slowest.Per*time.Duration(p.Orders)) {
			slowest.Orders, slowest.Per = p.Orders, p.Per
		}
		slowest.AtOnce = min(slowest.AtOnce, p.AtOnce)
	}
	return slowest, true
}

// nameOf is the name of a gate that has this print; empty: none has, or it has no name.
func (q *Queue) nameOf(print string) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if all := q.senders[print]; len(all) > 0 {
		return all[len(all)-1].GateName()
	}
	return ""
}

// look finds lines of sales, while the edge has a sender.
func (q *Queue) look() {
	ticks := time.NewTicker(lookEvery)
	defer ticks.Stop()
	for {
		if !q.lookOnce() {
			return
		}
		select {
		case <-ticks.C:
		case <-q.ctx.Done():
			return
		}
	}
}

func (q *Queue) lookOnce() (again bool) {
	ctx, cancel := context.WithTimeout(q.ctx, q.shard.Timeout())
	defer cancel()
	sales := q.Sales()
	looks, err := q.shard.LookAtLines(ctx, sales, notSent, "epoch", "fenced")
	if err != nil {
		looks = nil // the next look tells
	}
	for i, look := range looks {
		if look.Waiting > 0 || look.AtShop > 0 {
			q.line(sales[i]).begin()
		}
		if !look.Meta.Has(0) { // the sale is lost, or gone
		} else if l := q.line(sales[i]); l.another(fmt.Sprint(look.Meta...)) {
			l.begin()
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.looking = len(q.senders) > 0 || len(q.lines) > 0
	return q.looking
}

// Freed is called when the shop has answered an order: another one may go.
func (q *Queue) Freed(sale string) {
	q.mu.Lock()
	l := q.lines[sale]
	q.mu.Unlock()
	if l != nil {
		l.poke()
	}
}

// line returns the line of a sale.
func (q *Queue) line(sale string) *line {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[sale]
	if l == nil {
		l = &line{queue: q, sale: sale, poked: make(chan struct{}, 1), waiters: make(map[string]*Waiter)}
		q.lines[sale] = l
	}
	return l
}

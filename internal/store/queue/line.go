package queue

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

const (
	// soonest and latest bound the time between two calls for turns while orders wait.
	soonest = 2 * time.Millisecond
	latest  = 50 * time.Millisecond
	// afterError is the time between two calls when Redis does not answer.
	afterError = 250 * time.Millisecond
	// tellEvery is the least time between two lines in the log about orders that are skipped.
	tellEvery = 10 * time.Second
)

// skipped stands in the place of an id, with how many orders a call has put aside.
const skipped = "-"

// line is the part of one edge in the line of one sale.
type line struct {
	queue *Queue
	sale  string
	poked chan struct{}
	// failing: the last call for turns got no answer; only the loop uses it
	failing bool

	mu      sync.Mutex
	running bool
	waiters map[string]*Waiter // by id
	waiting int                // how many of them wait in Redis
	term    string             // of the shard, as seen last
	gate    string             // print of the gate that made the newest order known here
	name    string             // of that gate
	pace    reservation.Pace   // with which turns were asked for last
	short   time.Time          // since when fewer wait in Redis than here; zero: not so
	check   time.Time          // when orders without a request are looked for; zero: not
	history string             // of the shard, as look has seen it last
	goes    time.Time          // when the next order may go of those that Redis has told to come later
	skipped time.Time          // when an operator was told last of orders that no edge can send
}

// isOf notes which gate makes the orders of the line.
func (l *line) isOf(gate string) {
	l.mu.Lock()
	known := l.gate == gate
	l.mu.Unlock()
	if known {
		return
	}
	name := l.queue.nameOf(gate)
	l.mu.Lock()
	l.gate, l.name = gate, name
	l.mu.Unlock()
}

// paceNow is the pace with which to ask for turns.
func (l *line) paceNow() reservation.Pace {
	l.mu.Lock()
	gate, name := l.gate, l.name
	l.mu.Unlock()
	pace, ok := l.queue.paceOf(gate, name)
	l.mu.Lock()
	defer l.mu.Unlock()
	if ok {
		l.pace = pace
	}
	return l.pace
}

// awaitPace waits until an order may go that Redis has told to come so much later. Those that wait
// go one after the other. False: it must not go.
func (l *line) awaitPace(ctx context.Context, later time.Duration, pace reservation.Pace) bool {
	l.mu.Lock()
	at := time.Now().Add(later)
	if at.Before(l.goes) {
		at = l.goes
	}
	l.goes = at.Add(pace.Per / time.Duration(max(pace.Orders, 1)))
	l.mu.Unlock()
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-l.queue.ctx.Done():
	}
	return false
}

// tellSkipped says that no edge can send so many orders, once in a while.
func (l *line) tellSkipped(n int64) {
	now := time.Now()
	l.mu.Lock()
	told := now.Sub(l.skipped) < tellEvery
	if !told {
		l.skipped = now
	}
	l.mu.Unlock()
	if !told {
		l.queue.Log.Error("no gate of any edge can send orders that wait for the shop, and they are skipped: start an edge, or load a configuration, that has their gate (the same name, hosts and sale, and reads the same order), or release them with 'caddy stockgate queue drain'; 'caddy stockgate queue show' counts them",
			zap.String("sale", l.sale), zap.Int64("orders", n))
	}
}

// poke has the loop ask for turns now.
func (l *line) poke() {
	select {
	case l.poked <- struct{}{}:
	default:
	}
}

// begin starts the loop if it does not run.
func (l *line) begin() {
	l.mu.Lock()
	start := !l.running
	l.running = true
	l.mu.Unlock()
	if !start {
		return
	}
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	l.queue.goLocked(l.run)
}

// run asks for turns while an order waits.
func (l *line) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-l.poked:
		case <-l.queue.ctx.Done():
			return
		}
		next, idle := l.ask()
		if idle && l.rest() {
			return
		}
		timer.Reset(next)
	}
}

// rest ends the loop if no order of this edge waits.
func (l *line) rest() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting > 0 || !l.check.IsZero() {
		return false
	}
	l.running = false
	return true
}

// ask asks for turns and passes them on. It returns when to ask again, and whether no order
// waits.
func (l *line) ask() (next time.Duration, idle bool) {
	q := l.queue
	ctx, cancel := context.WithTimeout(q.ctx, q.shard.Timeout())
	defer cancel()
	pace := l.paceNow()
	replies, err := q.shard.Run(ctx, l.sale, shard.Op(lua.Turn, q.Edge, q.Lease.Milliseconds(), pace.Orders, pace.Per.Milliseconds(), pace.AtOnce,
		turnsAtOnce, q.prints()))
	if err != nil || replies[0].Code() != lua.OK {
		if err != nil && !l.failing && q.ctx.Err() == nil {
			q.Log.Warn("redis gives no turns: orders that wait for the shop wait on", zap.String("sale", l.sale), zap.Error(err))
		}
		l.failing = true
		return afterError, false
	}
	r := replies[0]
	l.failing = false
	for i := 5; i+1 < len(r); i += 2 {
		if r.Text(i) == skipped {
			l.tellSkipped(r.Number(i + 1))
			continue
		}
		l.pass(Turn{Sale: l.sale, ID: r.Text(i), Try: r.Number(i + 1)})
	}
	waiting, wait, turns := r.Number(1), time.Duration(r.Number(3))*time.Millisecond, r.Number(4)
	l.mend(waiting)
	l.orphans()
	switch {
	case waiting+turns == 0: // a turn that is not used is given again
		return latest, true
	case wait > 0:
		return min(max(wait, soonest), latest), false
	}
	return latest, false
}

// pass gives a turn to the request that is open, or sends the order without it.
func (l *line) pass(t Turn) {
	l.mu.Lock()
	w := l.waiters[t.ID]
	if w != nil {
		w.done()
		select {
		case w.Turn <- t:
		default: // it has an earlier try, which will not do
			select {
			case <-w.Turn:
			default:
			}
			w.Turn <- t
		}
	}
	l.mu.Unlock()
	if w == nil && t.Try > 0 {
		l.queue.mu.Lock()
		l.queue.goLocked(func() { l.queue.dispatch(t) })
		l.queue.mu.Unlock()
	}
}

// mend lets the orders whose requests are open wait again where Redis may have lost them: the
// shard has another history, or fewer orders wait in it than here.
func (l *line) mend(waiting int64) {
	q, now := l.queue, time.Now()
	term := q.shard.Clock(l.sale).Known().Term.Name
	l.mu.Lock()
	lost := l.term != "" && term != l.term
	l.term = term
	switch {
	case waiting >= int64(l.waiting):
		l.short = time.Time{}
	case l.short.IsZero():
		l.short = now
	case now.Sub(l.short) > q.Lease:
		lost, l.short = true, time.Time{}
	}
	var all []*Waiter
	if lost {
		l.check = now.Add(2 * q.Lease)
		for _, w := range l.waiters {
			if w.waiting {
				all = append(all, w)
			}
		}
	}
	l.mu.Unlock()
	for _, w := range all {
		_, err := q.do(q.ctx, l.sale, shard.Op(lua.Rejoin, w.id, q.Edge, w.gate, w.packed))
		if settled(err) {
			l.pass(Turn{Sale: l.sale, ID: w.id})
		}
	}
}

// another notes which history the shard has. In another one than before, holds may wait whose orders
// are lost, also where no request is open.
func (l *line) another(history string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if history == l.history {
		return false
	}
	l.history, l.check = history, time.Now().Add(2*l.queue.Lease)
	return true
}

// orphans releases holds that wait and whose orders are lost, once edges have had the time to
// let those wait again whose requests are open. After an error it looks again later.
func (l *line) orphans() {
	l.mu.Lock()
	due := !l.check.IsZero() && time.Now().After(l.check)
	if due {
		l.check = time.Time{}
	}
	l.mu.Unlock()
	if !due {
		return
	}
	q := l.queue
	released, cursor := int64(0), "0"
	for {
		r, err := q.do(q.ctx, l.sale, shard.Op(lua.Orphans, cursor, 500, (2*q.Lease).Milliseconds()))
		if err != nil {
			l.mu.Lock()
			if l.check.IsZero() {
				l.check = time.Now().Add(q.Lease)
			}
			l.mu.Unlock()
			break
		}
		released += r.Number(2)
		if cursor = r.Text(1); cursor == "0" {
			break
		}
	}
	if released > 0 {
		q.Log.Warn("redis has lost orders that waited for the shop: their units are on sale again, and their buyers are told so",
			zap.String("sale", l.sale), zap.Int64("orders", released))
	}
}

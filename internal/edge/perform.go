package edge

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/loop"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

const (
	// performEvery is the longest time between two looks for acts that are due, performAgain the pause before
	// one is tried again.
	performEvery, performAgain = 500 * time.Millisecond, 100 * time.Millisecond
)

// upcoming is when the next scheduled act of each sale is due, in ms by Redis's own time, as the watch over the
// sales reads it.
type upcoming struct {
	mu   sync.Mutex
	next map[string]int64
}

// note notes when the next act of a sale is due; 0: none is to come.
func (u *upcoming) note(id string, next int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if next == 0 {
		delete(u.next, id)
		return
	}
	if u.next == nil {
		u.next = make(map[string]int64)
	}
	u.next[id] = next
}

func (u *upcoming) of(id string) (next int64, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	next, ok = u.next[id]
	return next, ok
}

// performer does scheduled acts when they are due. Every edge tries; the script lets one of them do each. A sale
// whose Redis does not answer delays no other.
type performer struct {
	edge    *Edge
	running sync.WaitGroup
	mu      sync.Mutex
	busy    map[string]bool
}

// perform does acts until ctx ends.
func (e *Edge) perform(ctx context.Context) {
	p := &performer{edge: e, busy: make(map[string]bool)}
	defer p.running.Wait()
	for loop.Rest(ctx, p.round(ctx), nil) {
	}
}

// round begins to do what is due, and returns how long to wait for the next round.
func (p *performer) round(ctx context.Context) time.Duration {
	pause := performEvery
	for l := range p.edge.Catalogue().All {
		next, ok := p.edge.upcoming.of(l.Sale.ID)
		if !ok || l.Lost() || l.Status == statusUnreadable {
			continue
		}
		now, known := l.clock.Now()
		left := time.Duration(next-now) * time.Millisecond
		if known && left > 0 {
			pause = min(pause, left)
			continue
		}
		pause = min(pause, performAgain)
		p.begin(ctx, l)
	}
	return max(pause, time.Millisecond)
}

// begin does what is due in a sale, unless that goes on.
func (p *performer) begin(ctx context.Context, l *Listing) {
	id := l.Sale.ID
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy[id] {
		return
	}
	p.busy[id] = true
	p.running.Go(func() {
		p.one(ctx, l)
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.busy, id)
	})
}

// one does what is due in a sale.
func (p *performer) one(parent context.Context, l *Listing) {
	ctx, cancel := context.WithTimeout(parent, 4*p.edge.shard.Timeout())
	defer cancel()
	id := l.Sale.ID
	done, next, err := p.edge.Store.Perform(ctx, &reservation.Loaded{Sale: l.Sale, Status: l.Status, Version: l.Version, Epoch: l.epoch})
	switch {
	case errors.Is(err, shard.ErrNoSale):
		p.edge.upcoming.note(id, 0)
	case err != nil && parent.Err() == nil:
		(*p.edge.metrics.Load()).RedisFailed("reap")
		loop.Rest(parent, performEvery, nil) // or it is asked in a hurry, without an answer
	case err == nil:
		p.edge.noteActs(l, done)
		if !next.IsZero() {
			p.edge.upcoming.note(id, next.UnixMilli())
		} else {
			p.edge.upcoming.note(id, 0)
		}
	}
}

// noteActs logs what this edge has done.
func (e *Edge) noteActs(l *Listing, done []reservation.ScheduledAct) {
	for i := range done {
		a := &done[i]
		what := []zap.Field{zap.String("sale", l.Sale.ID), zap.Int64("act", a.Number), zap.String("what", a.What()), zap.Time("at", a.At), zap.String("by", a.By), zap.String("outcome", a.Outcome())}
		if a.Failed {
			e.log.Error("a scheduled act has failed, and is not tried again: do it yourself if it is still to be done, and end this alarm with `caddy stockgate sale schedule cancel`", what...)
		} else {
			e.log.Info("a scheduled act is done", what...)
		}
	}
	if len(done) > 0 {
		select {
		case e.poke <- struct{}{}: // this edge follows at once
		default:
		}
	}
}

package edge

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

const (
	// reapEvery is how often an edge ends overdue holds.
	reapEvery = time.Second
	// reapTogether bounds the sales that are reaped at the same time, to keep calls to one
	// Redis few. The sales that failed the last time have a bound of their own, as large.
	reapTogether = 8
)

// reaper ends overdue holds of every sale, and drops counters of windows and records of
// reservations that are over. Each sale has a goroutine of its own, so that one whose
// shard does not answer delays no other.
type reaper struct {
	edge *Edge
	// well bounds the sales whose last round succeeded, failed the others: a dead shard
	// delays healthy ones only once.
	well, failed chan struct{}
	sales        map[string]*reaped
	running      sync.WaitGroup
}

// reaped is what the reaper knows of one sale. While busy it belongs to the goroutine that
// reaps the sale.
type reaped struct {
	busy   atomic.Bool
	failed bool // the last time
	// cursor is how far its counters have been swept, sweepRest how many rounds to wait before the
	// next look at them.
	cursor    string
	sweepRest int
	// lapsed is how far its counters of unpaid holds have been looked at, rest how many
	// rounds to wait before the next look at them.
	lapsed string
	rest   int
	old    forgetter
	lead   int64 // of its clock, when it was logged last
}

// reap reaps all sales, round after round, until ctx ends.
func (e *Edge) reap(ctx context.Context) {
	r := &reaper{edge: e, well: make(chan struct{}, reapTogether), failed: make(chan struct{}, reapTogether), sales: make(map[string]*reaped)}
	defer r.running.Wait()
	ticker := time.NewTicker(reapEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		r.round(ctx)
	}
}

// round begins to reap all sales, except those that an earlier round is still busy with.
func (r *reaper) round(ctx context.Context) {
	c := r.edge.Catalogue()
	maps.DeleteFunc(r.sales, func(id string, s *reaped) bool { return c.sales[id] == nil && !s.busy.Load() })
	for l := range c.All {
		if l.Lost() {
			continue
		}
		s := r.sales[l.Sale.ID]
		if s == nil {
			s = &reaped{cursor: "0", lapsed: "0", old: forgetter{cursor: "0"}}
			r.sales[l.Sale.ID] = s
		}
		if !s.busy.CompareAndSwap(false, true) {
			continue
		}
		r.running.Go(func() {
			defer s.busy.Store(false)
			places := r.well
			if s.failed {
				places = r.failed
			}
			select {
			case places <- struct{}{}:
				defer func() { <-places }()
				r.one(ctx, l, s)
			case <-ctx.Done():
			}
		})
	}
}

// one reaps a sale once.
func (r *reaper) one(parent context.Context, l *Listing, s *reaped) {
	ctx, cancel := context.WithTimeout(parent, 4*r.edge.shard.Timeout())
	defer cancel()
	_, err := r.edge.Store.Expire(ctx, l.Sale.ID)
	if err == nil {
		err = errors.Join(s.sweep(ctx, r.edge.Store, l), s.lapse(ctx, r.edge.Store, l))
	}
	if err == nil {
		err = s.old.forget(ctx, r.edge.Store, l.Sale.ID)
	}
	if s.failed = err != nil; s.failed && parent.Err() == nil {
		(*r.edge.metrics.Load()).RedisFailed("reap")
	}
	s.noteLead(r.edge.log, l)
}

// sweep drops the next part of a sale's counters that are over. A sale whose limits have no windows
// may have some from before, and is looked at rarely.
func (s *reaped) sweep(ctx context.Context, store *reservation.Store, l *Listing) (err error) {
	if s.cursor == "0" && s.sweepRest > 0 {
		s.sweepRest--
		return nil
	}
	s.cursor, _, err = store.Sweep(ctx, l.Sale.ID, s.cursor)
	if !slices.ContainsFunc(l.Sale.Limits, func(limit sale.Limit) bool { return limit.Every != "sale" && limit.Every != "order" }) {
		s.sweepRest = lapseEvery
	}
	return err
}

// lapseEvery is how many rounds are between two looks at all counters of unpaid holds, or at those of
// purchase limits that may have been removed.
const lapseEvery = 60

// lapse drops the next part of a sale's counters of unpaid holds that are over. A sale that
// counts none may have some from before.
func (s *reaped) lapse(ctx context.Context, store *reservation.Store, l *Listing) (err error) {
	if s.lapsed == "0" && s.rest > 0 {
		s.rest--
		return nil
	}
	var within time.Duration
	if u := l.Sale.UnpaidOf(true); u != nil {
		within = time.Duration(u.Within)
	}
	s.lapsed, _, err = store.Lapse(ctx, l.Sale.ID, s.lapsed, within)
	s.rest = lapseEvery
	return err
}

// noteLead logs that the clock of a sale's Redis has stepped.
func (s *reaped) noteLead(log *zap.Logger, l *Listing) {
	lead := l.clock.Lead()
	if step := lead - s.lead; step > shard.Tolerance || step < -shard.Tolerance {
		log.Warn("redis's clock has stepped, and deadlines go on without the step: run NTP on its machine; `caddy stockgate doctor` says more",
			zap.String("sale", l.Sale.ID), zap.Int64("lead_ms", lead), zap.Int64("lead_ms_before", s.lead))
		s.lead = lead
	}
}

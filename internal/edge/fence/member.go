package fence

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// askAgain is the pause between two calls while a sale is fenced, or Redis does not
// answer. It doubles up to askAgainMost.
const askAgain, askAgainMost = 10 * time.Millisecond, 200 * time.Millisecond

// member is an edge's part in one sale.
type member struct {
	keeper *Keeper
	sale   string
	clock  *shard.Clock
	wake   chan struct{}
	tail   tail
	own    promised
	pledge pledge
	asked  atomic.Int64 // counts the fences of which the ledger was asked
	ledger atomic.Pointer[ledgerAnswer]
	state  atomic.Pointer[State] // nil: the sale is not fenced
	// since is where the first promise to this edge may be; nil: it has none.
	since atomic.Pointer[movementNumber]
	// heard is when Redis last took note of the edge; nil: it has not. watched is the epoch for
	// which Watch has seen to that.
	heard   atomic.Pointer[time.Time]
	watched atomic.Int64
	// silent are the edges that are not heard any more; nil: none.
	silent atomic.Pointer[[]heardOf]

	running bool // guarded by the Keeper's mu

	mu       sync.Mutex
	answered chan struct{} // closed and renewed with each answer
	err      error         // why there is no lease

	// of the goroutine
	fence       string // the one for which the rest counts
	given, told bool   // the edge has said what it knows, and told again what it was promised
	waits       bool   // it has told again what it can, but for what follows from what others tell
	untold      []reservation.Promise
	owed        []reservation.Promise // of an edge that came late: what it has still to tell again
}

// forget drops what the edge was promised of the sale and has read of its journal. What it owes goes
// once Redis says that there is no such sale.
func (m *member) forget() {
	m.own.forget(nowhere)
	m.tail.cutAfter(-1)
}

// unheardFor is how long Redis has taken no note of the edge.
func (m *member) unheardFor() time.Duration {
	if at := m.heard.Load(); at != nil {
		return m.clock.Mono().Sub(*at)
	}
	return math.MaxInt64
}

// hurry ends the pause before the next call.
func (m *member) hurry() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// wait returns a channel that is closed with the next answer, and why there is no lease now.
func (m *member) wait() (<-chan struct{}, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.answered, m.err
}

func (m *member) answer(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
	close(m.answered)
	m.answered = make(chan struct{})
}

// run says that the edge lives until ctx ends, or no call needs the lease any more.
func (m *member) run(ctx context.Context) {
	pause := askAgain
	for {
		err := m.step(ctx)
		if ctx.Err() != nil {
			err = shard.ErrStarting
		}
		m.answer(err)
		rest := renewEvery
		if err != nil {
			rest, pause = pause, min(2*pause, askAgainMost)
		} else {
			pause = askAgain
		}
		timer := time.NewTimer(rest)
		select {
		case <-timer.C:
		case <-m.wake:
		case <-ctx.Done():
		}
		timer.Stop()
		if m.keeper.end(m) {
			return
		}
	}
}

// beat is what the edge says. What it has read counts unless only what the replicas have does.
func (m *member) beat(does string) *shard.Beat {
	known := m.clock.Known()
	if m.keeper.shard.Options.ReplicaAcks == 0 {
		known.Seq = max(known.Seq, m.tail.last(known.Term.Epoch))
	}
	return &shard.Beat{Edge: m.keeper.id, Does: does, Known: known.Seq, Wait: m.keeper.shard.Options.FenceWait, Ledger: m.ledgerPosition()}
}

func (m *member) call(ctx context.Context, b *shard.Beat) (shard.Reply, shard.Term, int64, error) {
	ctx, cancel := context.WithTimeout(ctx, max(4*m.keeper.shard.Timeout(), time.Second))
	defer cancel()
	return m.keeper.shard.Beat(ctx, m.sale, b)
}

// step makes one call and does what the answer asks for. It returns why there is no lease.
func (m *member) step(ctx context.Context) error {
	does := "beat"
	if m.keeper.shard.Options.NoFence {
		does = "off"
	}
	b := m.beat(does)
	if does == "beat" {
		b.Keeps = m.pledge.toSay(m.clock.Mono(), func() (shard.Standing, error) { return m.standing(ctx) })
	}
	sent := m.clock.Mono()
	r, term, seq, err := m.call(ctx, b)
	if err != nil && !(errors.Is(err, shard.ErrNotReplicated) && r.Code() == lua.Fenced) {
		return fmt.Errorf("%w: no lease: %v (%w)", shard.ErrUnavailable, err, shard.ErrNotSent)
	}
	switch r.Code() {
	case lua.OK:
		m.enter(term, seq)
		if err := m.tellOwed(ctx, term); err != nil {
			return err
		}
		m.open(term, readReport(r.Text(1), r.Text(2)))
		m.hear(r.Text(3))
		m.pledge.heard(m.clock.Mono(), b.Keeps)
		m.heard.Store(&sent)
		m.clock.Grant(term, sent.Add(m.keeper.shard.Options.Lease))
		return nil
	case lua.NoFence, lua.NoSale, lua.Restoring: // calls get these answers themselves
		switch r.Code() {
		case lua.NoFence:
			if err := m.tellOwed(ctx, term); err != nil {
				return err
			}
		case lua.NoSale:
			m.owed = nil
		}
		m.heard.Store(&sent)
		m.clock.Grant(term, sent.Add(m.keeper.shard.Options.Lease))
		m.open(term, Report{})
		m.hear("")
		return nil
	case lua.Late:
		return m.late(ctx, term, seq, r.Number(1))
	case lua.Fenced:
		return m.fenced(ctx, r, term, seq)
	}
	return refused(m.sale, r)
}

// enter notes that the edge sells in a term. If its epoch is new, that is from the next number on, and
// what was promised before is owed no more: the sale was deleted and loaded again, or rebuilt from the
// ledger and the shop's orders.
func (m *member) enter(term shard.Term, seq int64) {
	if old := m.since.Load(); old != nil && old.epoch == term.Epoch {
		return
	}
	m.own.forgetBefore(term.Epoch)
	m.owed = nil
	m.since.Store(&movementNumber{term.Epoch, seq + 1})
}

// refused is the error of an answer that gives no lease.
func refused(sale string, r shard.Reply) error {
	switch r.Code() {
	case lua.OK:
		return nil
	case lua.NewerSchema:
		return shard.NewerSchema(r.Number(1))
	case lua.NoSale:
		return shard.ErrNoSale
	case lua.Fenced:
		return shard.ErrFenced
	}
	return fmt.Errorf("%w: fence gave %q for sale %s", shard.ErrUnavailable, r.Code(), sale)
}

// open notes that the sale is sold, and what the fence gave up.
func (m *member) open(term shard.Term, r Report) {
	m.fence, m.untold = "", nil
	s := m.state.Swap(nil)
	if s == nil {
		return
	}
	m.keeper.metrics.Fenced(-1)
	about := []zap.Field{
		zap.String("sale", m.sale), zap.Duration("after", time.Since(s.Since)), zap.String("term", term.Name), zap.Int64("applied_again", r.Replayed),
	}
	if r.Missing+r.Absent == 0 {
		m.keeper.log.Info("redis has what the edges know: the sale goes on", about...)
		return
	}
	m.keeper.metrics.Lost(0, r.Absent, r.Missing)
	m.keeper.log.Error("the sale goes on without what redis may have lost: movements that no edge knew, and what the edges that did not come may know after that number; "+
		"see `caddy stockgate reconcile` with the shop's orders",
		append(about, zap.Int64("missing", r.Missing), zap.Int64("number", r.Base), zap.String("edges", r.Absentees(20, stamp)))...)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// note keeps why the sale is not sold, for doctor, and logs it once.
func (m *member) note(s State) {
	s.Sale, s.Since = m.sale, time.Now()
	old := m.state.Load()
	if old != nil {
		s.Since = old.Since
	} else {
		m.keeper.metrics.Fenced(1)
	}
	sale := zap.String("sale", m.sale)
	switch {
	case old != nil && old.Replaced == s.Replaced, s.Owed > 0:
	case s.Replaced:
		m.keeper.log.Error("redis is older than what this edge knows: it may be a primary that has been replaced; not selling, see docs/failover.md",
			sale, zap.String("known", m.clock.Known().Term.Name))
	default:
		m.keeper.log.Error("redis was promoted or restarted: not selling until every edge has said what it knows", sale)
	}
	switch {
	case s.Stuck == 0 || old != nil && old.Stuck > 0:
	case s.Contradicted:
		m.keeper.log.Error("redis has other movements than the edges know, under the same numbers: an old primary came back after its successor was lost; "+
			"lead the edges to the successor, or see docs/failover.md, then `caddy stockgate sale unfence`",
			sale, zap.Int64("from", s.Stuck))
	default:
		m.keeper.log.Error("redis lacks a change that the journal does not tell in full: see docs/failover.md, then `caddy stockgate sale unfence`",
			sale, zap.Int64("entry", s.Stuck))
	}
	m.state.Store(&s)
}

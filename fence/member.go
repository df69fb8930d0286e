package fence

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/lua"
	"github.com/stockgate/stockgate/reservation"
	"github.com/stockgate/stockgate/shard"
)

const (
	// askAgain is the pause between two calls while a sale is fenced, or Redis does not
	// answer. It doubles up to askAgainMost.
	askAgain, askAgainMost = 10 * time.Millisecond, 200 * time.Millisecond
	// tellAgain is how often an edge that comes after a fence tells what must be given back first.
	tellAgain = 3
)

// member is an edge's part in one sale.
type member struct {
	keeper *Keeper
	sale   string
	clock  *shard.Clock
	wake   chan struct{}
	tail   tail
	own    own
	state  atomic.Pointer[State] // nil: the sale is not fenced
	// since is where the first promise to this edge may be; nil: it has none.
	since atomic.Pointer[place]
	// heard is when Redis last took note of the edge; nil: it has not. watched is the epoch for
	// which Watch has seen to that.
	heard   atomic.Pointer[time.Time]
	watched atomic.Int64

	running bool // guarded by the Keeper's mu

	mu       sync.Mutex
	answered chan struct{} // closed and renewed with each answer
	err      error         // why there is no lease

	// of the goroutine
	fence       string // the one for which the rest counts
	given, told bool   // the edge has said what it knows, and told again what it was promised
	waits       bool   // it has told again what it can, but for what follows from what others tell
	untold      []reservation.Promise
}

// forget drops all that the edge was promised of the sale and has read of its journal.
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
	return &shard.Beat{Edge: m.keeper.id, Does: does, Known: known.Seq, Wait: m.keeper.shard.Options.FenceWait}
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
	sent := m.clock.Mono()
	r, term, seq, err := m.call(ctx, m.beat(does))
	if err != nil && !(errors.Is(err, shard.ErrNotReplicated) && r.Code() == lua.Fenced) {
		return fmt.Errorf("%w: no lease: %v (%w)", shard.ErrUnavailable, err, shard.ErrNotSent)
	}
	switch r.Code() {
	case lua.OK:
		m.enter(term, seq)
		m.open(term, readReport(r.Text(1), r.Text(2)))
		m.heard.Store(&sent)
		m.clock.Grant(term, sent.Add(shard.LeaseFor))
		return nil
	case lua.NoFence, lua.NoSale, lua.Restoring: // calls get these answers themselves
		m.heard.Store(&sent)
		m.clock.Grant(term, sent.Add(shard.LeaseFor))
		m.open(term, Report{})
		return nil
	case lua.Late:
		return m.late(ctx, term, seq, r.Number(1))
	case lua.Fenced:
		return m.fenced(ctx, r, term)
	}
	return refused(m.sale, r)
}

// enter notes that the edge sells in a term. If its epoch is new, that is from the next number on, and
// what was promised before is owed no more: the sale was deleted and loaded anew, or rebuilt from the
// ledger and the shop's orders.
func (m *member) enter(term shard.Term, seq int64) {
	if old := m.since.Load(); old != nil && old.epoch == term.Epoch {
		return
	}
	m.own.forgetBefore(term.Epoch)
	m.since.Store(&place{term.Epoch, seq + 1})
}

// refused is the error of an answer that gives no lease.
func refused(sale string, r shard.Reply) error {
	switch r.Code() {
	case lua.OK:
		return nil
	case lua.NewerSchema:
		return shard.ErrNewerSchema
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

// fenced says what the edge knows, and tells again what it was promised and has not read.
func (m *member) fenced(ctx context.Context, r shard.Reply, term shard.Term) error {
	stage, pass, base := r.Text(1), r.Text(2), place{term.Epoch, r.Number(5)}
	m.note(State{Absent: r.Number(3), Stuck: r.Number(4)})
	if fence := strings.TrimSuffix(pass, stage); fence != m.fence {
		m.own.forgetBefore(term.Epoch)
		m.fence, m.given, m.told, m.waits, m.untold = fence, false, false, false, m.own.after(base)
	}
	if r.Number(6) > 0 {
		m.hurry()
	}
	switch {
	case stage == "collect" && !m.given:
		if err := m.give(ctx, base); err != nil {
			return err
		}
		m.given = true
		m.hurry()
	case stage == "tell" && !m.told && len(m.untold) > 0:
		others := r.Number(7) > 0
		if m.waits && others {
			break
		}
		return m.tellInFence(shard.WithPass(ctx, pass), term, others)
	}
	return shard.ErrFenced
}

// tellInFence tells what is untold once, and says how far the edge has come. What fails while others
// have still to tell may follow from that: it waits for them.
func (m *member) tellInFence(ctx context.Context, term shard.Term, others bool) error {
	rest, err := m.tell(ctx, term, m.untold, 1)
	if err != nil {
		return err
	}
	does := "told"
	switch {
	case len(rest) == 0:
	case len(rest) < len(m.untold): // the rest may follow from that
		does = "ready"
	case others:
		does = "waits"
	default:
		does = "lacks"
	}
	b := m.beat(does)
	b.Own = len(rest)
	if _, _, _, err := m.call(ctx, b); err != nil && !errors.Is(err, shard.ErrNotReplicated) {
		return err
	}
	m.untold, m.waits, m.told = rest, does == "waits", does == "told" || does == "lacks"
	if m.told {
		m.giveUp(rest)
	}
	if !m.waits {
		m.hurry()
	}
	return shard.ErrFenced
}

// give sends the entries that the edge has read after base. What they have without a gap need
// not be told again.
func (m *member) give(ctx context.Context, base place) error {
	pieces := m.tail.after(base.epoch, base.seq)
	m.untold = m.own.after(place{base.epoch, m.tail.through(base.epoch, base.seq)})
	for i, piece := range pieces {
		b := m.beat("beat")
		if i == len(pieces)-1 {
			b.Does = "ready"
		}
		b.Own, b.Tail = len(m.untold), piece
		if _, _, _, err := m.call(ctx, b); err != nil && !errors.Is(err, shard.ErrNotReplicated) {
			return err
		}
	}
	return nil
}

// tell tells promises again, in so many rounds at most: what one gives back another one may have held.
// It remembers those that are kept once more, with the numbers that they have now, and returns the others.
func (m *member) tell(ctx context.Context, term shard.Term, promises []reservation.Promise, rounds int) ([]reservation.Promise, error) {
	var seq int64
	var kept []reservation.Promise
	for i := 0; i < rounds && len(promises) > 0; i++ {
		told, err := m.keeper.store.Tell(ctx, m.sale, promises)
		if err != nil {
			return nil, err
		}
		promises, seq, kept = told.Failed, told.Seq, append(kept, told.Kept...)
	}
	for _, p := range kept {
		m.own.add(m.keeper.count, place{term.Epoch, seq}, p)
	}
	return promises, nil
}

// giveUp counts and logs promises that cannot be kept.
func (m *member) giveUp(promises []reservation.Promise) {
	if len(promises) == 0 {
		return
	}
	m.keeper.metrics.Lost(int64(len(promises)), 0, 0)
	m.keeper.log.Error("redis has lost reservations whose units other buyers have by now, or of which no edge knows more: orders that the shop has taken are unbacked or missing; see `caddy stockgate reconcile` with the shop's orders",
		zap.String("sale", m.sale), zap.Int("promises", len(promises)), zap.Strings("some", reservation.IDs(promises, 20)))
}

// late tells again what the edge was promised in a history that the shard does not have any
// more, because the other edges went on without it.
func (m *member) late(ctx context.Context, term shard.Term, seq, last int64) error {
	if m.clock.Known().Term.After(term) {
		m.note(State{Replaced: true})
		return shard.ErrFenced
	}
	lost := place{term.Epoch, last}
	promises := m.own.after(lost)
	level, message := zap.ErrorLevel, "redis goes on without what this edge was promised: it is told again"
	if m.given && (m.told || len(m.untold) == 0) { // in the fence from which this term came: they have other numbers now
		level, message = zap.InfoLevel, "what this edge was promised has other numbers after the fence"
	}
	m.keeper.log.Log(level, message, zap.String("sale", m.sale), zap.Int64("after", last), zap.Int("promises", len(promises)))
	m.own.forget(lost)
	m.tail.cutAfter(last)
	m.clock.Adopt(term.Name, seq)
	rest, err := m.tell(shard.WithPass(ctx, ""), term, promises, tellAgain)
	if err != nil {
		for _, p := range promises { // told again with the next answer
			m.own.add(m.keeper.count, place{term.Epoch, seq + 1}, p)
		}
		return err
	}
	m.giveUp(rest)
	m.hurry()
	return shard.ErrFenced
}

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
	case old != nil && old.Replaced == s.Replaced:
	case s.Replaced:
		m.keeper.log.Error("redis is older than what this edge knows: it may be a primary that has been replaced; not selling, see docs/fence.md",
			sale, zap.String("known", m.clock.Known().Term.Name))
	default:
		m.keeper.log.Error("redis was promoted or started anew: not selling until every edge has said what it knows", sale)
	}
	if s.Stuck > 0 && (old == nil || old.Stuck == 0) {
		m.keeper.log.Error("redis lacks a change that the journal does not tell in full: see docs/fence.md, then `caddy stockgate sale unfence`",
			sale, zap.Int64("entry", s.Stuck))
	}
	m.state.Store(&s)
}

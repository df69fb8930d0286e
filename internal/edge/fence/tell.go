package fence

import (
	"context"
	"errors"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// tellAgain is how often an edge that comes after a fence tells what must be given back first.
const tellAgain = 3

// fenced says what the edge knows, and tells again what it was promised and has not read.
func (m *member) fenced(ctx context.Context, r shard.Reply, term shard.Term, seq int64) error {
	stage, pass, base := r.Text(1), r.Text(2), movementNumber{term.Epoch, r.Number(5)}
	m.note(State{Absent: r.Number(3), Stuck: r.Number(4), Contradicted: r.Number(8) > 0})
	if fence := strings.TrimSuffix(pass, stage); fence != m.fence {
		m.own.forgetBefore(term.Epoch)
		m.fence, m.given, m.told, m.waits, m.untold = fence, false, false, false, m.unread(base)
		m.pledge.look()
		m.askLedger(ctx)
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
		return m.tellInFence(shard.WithPass(ctx, pass), term, seq, others)
	}
	return shard.ErrFenced
}

// unread is what the edge was promised and knows from no journal that the shard has up to a place.
func (m *member) unread(from movementNumber) []reservation.Promise {
	return append(slices.Clip(m.owed), m.own.after(from)...)
}

// tellInFence tells what is untold once, and says how far the edge has come. What fails while others
// have still to tell may follow from that: it waits for them. seq is the shard's before it tells.
func (m *member) tellInFence(ctx context.Context, term shard.Term, seq int64, others bool) error {
	rest, err := m.tell(ctx, term, m.untold, 1)
	if err != nil {
		m.untold = rest
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
	if does == "waits" {
		b.Known = seq
	}
	b.Own = len(rest)
	if _, _, _, err := m.call(ctx, b); err != nil && !errors.Is(err, shard.ErrNotReplicated) {
		return err
	}
	m.untold, m.waits, m.told = rest, does == "waits", does == "told" || does == "lacks"
	if m.told {
		m.owed = nil
		m.giveUp(rest)
	}
	if !m.waits {
		m.hurry()
	}
	return shard.ErrFenced
}

// give sends the entries that the edge has read after base. What they have without a gap need
// not be told again.
func (m *member) give(ctx context.Context, base movementNumber) error {
	pieces := m.tail.after(base.epoch, base.seq)
	m.untold = m.unread(movementNumber{base.epoch, m.tail.through(base.epoch, base.seq)})
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
// It remembers those that are kept once more, with the numbers that they have now, and returns the
// others, also with an error.
func (m *member) tell(ctx context.Context, term shard.Term, promises []reservation.Promise, rounds int) ([]reservation.Promise, error) {
	for ; rounds > 0 && len(promises) > 0; rounds-- {
		told, err := m.keeper.store.Tell(ctx, m.sale, promises)
		for _, p := range told.Kept {
			m.own.add(m.keeper.count, movementNumber{term.Epoch, told.Seq}, p)
		}
		promises = append(told.Failed, told.Untold...)
		if err != nil {
			return promises, err
		}
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
	lost := movementNumber{term.Epoch, last}
	promises := m.own.after(lost)
	level, message := zap.ErrorLevel, "redis goes on without what this edge was promised: it is told again"
	if m.given && (m.told || len(m.untold) == 0) { // in the fence from which this term came: they have other numbers now
		level, message = zap.InfoLevel, "what this edge was promised has other numbers after the fence"
	}
	m.keeper.log.Log(level, message, zap.String("sale", m.sale), zap.Int64("after", last), zap.Int("promises", len(promises)))
	m.own.forget(lost)
	m.tail.cutAfter(last)
	m.clock.Adopt(term.Name, seq)
	m.owed = append(m.owed, promises...)
	if err := m.tellOwed(ctx, term); err != nil {
		return err
	}
	m.hurry()
	return shard.ErrFenced
}

// tellOwed tells again what the edge owes since it came late. Until all of that is told, the edge
// has no lease.
func (m *member) tellOwed(ctx context.Context, term shard.Term) error {
	rest, err := m.tell(shard.WithPass(ctx, ""), term, m.owed, tellAgain)
	if err != nil {
		if s := m.state.Load(); s == nil || s.Owed == 0 {
			m.keeper.log.Error("redis does not take what this edge was promised before the failover: this edge does not sell until it does",
				zap.String("sale", m.sale), zap.Int("promises", len(rest)), zap.Strings("some", reservation.IDs(rest, 20)), zap.Error(err))
		}
		m.owed = rest
		m.note(State{Owed: int64(len(rest))})
		return err
	}
	m.owed = nil
	m.giveUp(rest)
	return nil
}

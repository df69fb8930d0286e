// Package move moves all stock from one Redis to another: from a `store` to a Redis for several edges, or back.
//
// At each moment at most one of the two can sell. The stock is frozen before it is copied, and so the copies are frozen too.
// Once they are complete, the source notes for ever that the stock has left, and only then the copies thaw. If the process
// dies before that note, both are frozen, and the same move or Undo goes on from there.
package move

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// Options name the source and the destination of a move.
type Options struct {
	From *reservation.Store
	Here string // how operators name it
	// Edge is this edge's name in Redis. It must be the only one.
	Edge string
	// Backlog is how many outcomes this edge still has to tell its Redis.
	Backlog func() int
	// Stage is called with the present step, such as a wait for the shop.
	Stage func(what string)
	To    *Destination
	By    string // who asked
}

// Summary is the outcome of a move.
type Summary struct {
	Where string
	Sales []string
	Keys  int
	// Before: an earlier call had moved it.
	Before bool
}

// mover is one move.
type mover struct {
	Options
	from, to *shard.Client
	id       string
	came     string // the move that brought the stock here; empty: none did
	done     Summary
}

// Run moves all stock under the prefix. An error leaves it where it was, and able to sell, unless it says otherwise.
func Run(ctx context.Context, o Options) (*Summary, error) {
	m := &mover{Options: o, from: o.From.Shard(), to: o.To.client, done: Summary{Where: o.To.Where}}
	was, err := m.from.Move(ctx)
	if err == nil && was != nil && was.Stage == shard.Staying {
		err = Undo(ctx, m.From)
		was.Stage = shard.Stays
	}
	if err != nil {
		return nil, err
	}
	if was != nil && was.Stage == shard.Left {
		return m.finish(ctx, was)
	}
	if err := m.check(ctx, was); err != nil {
		return nil, err
	}
	if err := m.copy(ctx); err != nil {
		return nil, errors.Join(err, m.giveUp(context.WithoutCancel(ctx)))
	}
	return m.leave(context.WithoutCancel(ctx))
}

// copy freezes the stock, and copies it.
func (m *mover) copy(ctx context.Context) error {
	if err := m.from.NoteMove(ctx, &shard.MoveNote{ID: m.id, Stage: shard.Leaving, Where: m.To.Where, Came: m.came, By: m.By, At: time.Now()}); err != nil {
		return err
	}
	if err := m.to.NoteMove(ctx, &shard.MoveNote{ID: m.id, Stage: shard.Coming, Where: m.Here, By: m.By, At: time.Now()}); err != nil {
		return fmt.Errorf("%s: %w", m.To.Where, err)
	}
	for _, id := range m.done.Sales {
		if err := m.from.Freeze(ctx, id); err != nil && !errors.Is(err, shard.ErrNoSale) { // Redis had lost it: edges say so
			return err
		}
	}
	if what, err := m.busy(ctx); err != nil || what != "" {
		return errors.Join(err, shard.Refused("%s: it has begun meanwhile", what))
	}
	keys, err := m.from.StockKeys(ctx)
	if err != nil {
		return err
	}
	if err := m.from.FreezeLists(ctx, keys); err != nil {
		return err
	}
	m.done.Keys = len(keys)
	m.Stage(fmt.Sprintf("the stock is frozen, and its %d keys are copied", len(keys)))
	if err := m.from.CopyTo(ctx, m.to, keys); err != nil {
		return fmt.Errorf("%s: %w", m.To.Where, err)
	}
	if keys, err = m.from.StockKeys(ctx); err != nil { // also those that were written since
		return err
	}
	if err := m.from.SameAs(ctx, m.to, keys); err != nil {
		return err
	}
	if what := m.untold(); what != "" { // a shop has answered meanwhile
		return shard.Refused("%s: it tells it now; run the same again", what)
	}
	return nil
}

// giveUp lets the source sell again.
func (m *mover) giveUp(ctx context.Context) error {
	if err := Undo(ctx, m.From); err != nil {
		return fmt.Errorf("the stock is still frozen where it was: `caddy stockgate move --undo` lets it sell again (%w)", err)
	}
	if keys, err := m.to.StockKeys(ctx); err == nil && m.to.DropKeys(ctx, keys) == nil {
		_ = m.to.DropMove(ctx) // else the next move to there does it
	}
	return nil
}

// leave notes that the stock has left.
func (m *mover) leave(ctx context.Context) (*Summary, error) {
	if err := m.from.PassMove(ctx, m.id, shard.Leaving, shard.Left); err != nil {
		return nil, fmt.Errorf("all is copied, and it is unknown whether the present Redis has noted that: run the same again (%w)", err)
	}
	return m.finish(ctx, &shard.MoveNote{ID: m.id, Where: m.To.Where})
}

// finish thaws the copies of a move that has left.
func (m *mover) finish(ctx context.Context, left *shard.MoveNote) (*Summary, error) {
	at, err := m.to.Move(ctx)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", m.To.Where, err)
	case left.Where != m.To.Where:
		return nil, shard.Refused("the stock has left for %s: lead the edges there", left.Where)
	case at == nil || at.ID != left.ID:
		return nil, shard.Refused("the stock has left for %s, which does not have it now: bring that server back as it was", left.Where)
	}
	m.done.Before = at.Stage == shard.Came
	keys, err := m.to.StockKeys(ctx)
	if err == nil && !m.done.Before {
		err = m.thaw(ctx, keys, at)
	}
	if err == nil {
		m.done.Sales, err = m.to.Sales(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("all is copied to %s and frozen there: run the same again (%w)", m.To.Where, err)
	}
	m.done.Keys = len(keys)
	return &m.done, nil
}

// thaw allows the copies to sell.
func (m *mover) thaw(ctx context.Context, keys []string, at *shard.MoveNote) error {
	if err := m.to.Thaw(ctx, keys); err != nil {
		return err
	}
	if err := m.to.EndFences(ctx); err != nil { // no edge has sold there
		return err
	}
	at.Stage = shard.Came
	return m.to.NoteMove(ctx, at)
}

// Undo ends a move that has not finished: the stock sells again where it is. It returns an ErrRefused if it has left.
func Undo(ctx context.Context, from *reservation.Store) error {
	s := from.Shard()
	was, err := s.Move(ctx)
	switch {
	case err != nil:
		return err
	case was != nil && was.Stage == shard.Left:
		return shard.Refused("the stock has left for %s, and may have sold there: move it back from there", was.Where)
	case was == nil || was.Stage == shard.Coming || was.Stage == shard.Came:
		return shard.Refused("no move from here is under way")
	case was.Stage == shard.Leaving: // first: from then on it cannot leave
		if err := s.PassMove(ctx, was.ID, shard.Leaving, shard.Staying); err != nil {
			return err
		}
	}
	keys, err := s.StockKeys(ctx)
	if err != nil {
		return err
	}
	if err := s.Thaw(ctx, keys); err != nil {
		return err
	}
	if was.Stage == shard.Stays {
		return nil
	}
	return s.PassMove(ctx, was.ID, shard.Staying, shard.Stays)
}

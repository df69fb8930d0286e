package move

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/stockgate/stockgate/internal/loop"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

const (
	// settlesWithin bounds how long requests that the shop is answering are waited for, askEvery is the pause between looks.
	settlesWithin = time.Minute
	askEvery      = 50 * time.Millisecond
	// clocksDiffer is by how much the times of the two servers may differ: sales begin and end by them.
	clocksDiffer = 2 * time.Second
)

// check refuses a move before anything is frozen.
func (m *mover) check(ctx context.Context, was *shard.MoveNote) error {
	if m.from.Embedded() {
		return shard.Refused("`redis embedded` is for tests: its stock ends with its process, and is not moved")
	}
	if err := m.goesOn(was); err != nil {
		return err
	}
	var err error
	if m.done.Sales, err = m.From.Journal().Sales(ctx); err != nil {
		return err
	}
	if others, err := m.from.OtherEdges(ctx, m.done.Sales, m.Edge); err != nil || len(others) > 0 {
		return errors.Join(err, edgesLeft(others))
	}
	if err := m.quiet(ctx); err != nil {
		return err
	}
	return m.takes(ctx)
}

// goesOn takes up what an earlier move has noted.
func (m *mover) goesOn(was *shard.MoveNote) error {
	m.id = uuid.NewString()
	if was == nil {
		return nil
	}
	switch was.Stage {
	case shard.Coming:
		return shard.Refused("a move from %s to here has not finished: run it again at the edge there", was.Where)
	case shard.Came:
		m.came = was.ID
	case shard.Leaving:
		if was.Where != m.To.Where {
			return shard.Refused("a move to %s has not finished: run it again with the same destination, or end it with `caddy stockgate move --undo`", was.Where)
		}
		m.id, m.came = was.ID, was.Came
	case shard.Stays: // what it has left at its destination may be dropped
		m.id, m.came = was.ID, was.Came
	}
	return nil
}

func edgesLeft(others []string) error {
	if len(others) == 0 {
		return nil
	}
	return shard.Refused("other edges use this stock, or did until a minute ago: %s. End the Caddy of each, and wait a minute where one was killed", strings.Join(others, ", "))
}

// quiet waits until no shop answers a request whose outcome this Redis is to be told, and refuses where that does not end.
func (m *mover) quiet(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, settlesWithin)
	defer cancel()
	for said := ""; ; {
		what, err := m.busy(ctx)
		if err != nil || what == "" {
			return err
		}
		if what != said {
			said = what
			m.Stage(what)
		}
		if !loop.Rest(within, askEvery, nil) {
			return shard.Refused("%s: wait until that is over", what)
		}
	}
}

// busy says what is not settled; empty: all is.
func (m *mover) busy(ctx context.Context) (string, error) {
	lines, err := m.from.LookAtLines(ctx, m.done.Sales, "+inf", "status")
	if err != nil {
		return "", err
	}
	for i, id := range m.done.Sales {
		if status := lines[i].Meta.Text(0); status == "open" {
			return "", shard.Refused("sale %s is open: pause it first, `caddy stockgate sale pause %s`", id, id)
		}
		if lines[i].AtShop > 0 {
			return fmt.Sprintf("the shop has %d orders from the line of sale %s, or they have their turn; `caddy stockgate queue pause %s` lets no more go", lines[i].AtShop, id, id), nil
		}
		if asked, err := m.isAsked(ctx, id); err != nil || asked {
			return "the shop is answering orders of sale " + id, err
		}
	}
	return m.untold(), nil
}

// untold says what this edge still has to tell its Redis; empty: nothing.
func (m *mover) untold() string {
	if n := m.Backlog(); n > 0 {
		return fmt.Sprintf("this edge has %d outcomes that its Redis does not have", n)
	}
	return ""
}

// isAsked reports whether the shop has a request whose answer decides about a hold.
func (m *mover) isAsked(ctx context.Context, id string) (bool, error) {
	for after := ""; ; {
		holds, next, err := m.From.HoldsAfter(ctx, id, reservation.HoldFilter{State: record.Held}, after, 1000)
		if err != nil {
			return false, err
		}
		for i := range holds {
			if holds[i].Mode == record.ModeResponse {
				return true, nil
			}
		}
		if after = next; next == "" {
			return false, nil
		}
	}
}

// takes refuses a destination that cannot have the stock, and clears what an earlier try has left there.
func (m *mover) takes(ctx context.Context) error {
	if err := m.to.CheckMemoryPolicy(ctx); err != nil {
		return fmt.Errorf("%s: %w", m.To.Where, err)
	}
	if err := m.sameTime(ctx); err != nil {
		return err
	}
	keys, err := m.to.StockKeys(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", m.To.Where, err)
	}
	was, err := m.to.Move(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", m.To.Where, err)
	}
	dead := was != nil && (was.Stage == shard.Left && was.ID == m.came || was.Stage == shard.Coming && was.ID == m.id)
	if len(keys) > 0 && !dead {
		return shard.Refused("%s has keys of stockgate under this key_prefix: stock is moved only to where there is none. Name another server or database, or delete those keys if no edge needs them", m.To.Where)
	}
	return m.to.DropKeys(ctx, keys) // they came from there and are frozen for ever, or are not complete
}

func (m *mover) sameTime(ctx context.Context) error {
	here, err := m.from.ServerTime(ctx)
	if err != nil {
		return err
	}
	there, err := m.to.ServerTime(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", m.To.Where, err)
	}
	if by := there.Sub(here); by.Abs() > clocksDiffer {
		return shard.Refused("the clock of %s differs by %v from the present one, and sales begin and end by it: set the clocks of both machines", m.To.Where, by.Round(time.Second))
	}
	return nil
}

package recovery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// Merged is what the previous life had of a sale and the ledger lacked, and what became of
// it.
type Merged struct {
	// Made are reservations that the ledger did not know, by their state now.
	Made map[record.State]int `json:"made,omitempty"`
	// Settled are those that had ended in Redis but not in the ledger, by their state now.
	Settled     map[record.State]int `json:"settled,omitempty"`
	Adjustments int                  `json:"adjustments,omitempty"`
	Returns     int                  `json:"returns,omitempty"`
	// NoStock are the ids of orders without units, because both lives have sold them. At
	// most 1000 are listed.
	NoStock []string `json:"no_stock,omitempty"`
}

// asRedisHadIt is the cause of what a merge does to reservations that the ledger knows.
const asRedisHadIt = "rebuilt: as redis had it"

// maxNamed bounds the ids that an answer names.
const maxNamed = 1000

// longestText bounds, in bytes, what an answer shows of a record that cannot be read.
const longestText = 1000

// merger is one run that merges the previous life into the present one. Returned units go
// first, so that no reservation fails for lack of units that are about to come back.
type merger struct {
	*rebuilding
	*Merged
	returns map[string][]PreviousReturn // by reservation, those that are not made yet
	// taking are reservations that want units: orders of which something came back, other
	// orders and what has ended, holds, and orders that had no units in Redis either.
	taking [4][]string
	short  map[string]bool // orders that got no units
	// refused are adjustments that take out more than there is yet
	refused []stockChange
}

// merge merges the previous life, and drops it. Every step can be repeated without effect.
func (b *rebuilding) merge(ctx context.Context) error {
	c := &merger{
		rebuilding: b, Merged: &Merged{Made: map[record.State]int{}, Settled: map[record.State]int{}},
		returns: map[string][]PreviousReturn{}, short: map[string]bool{},
	}
	b.out.Merged = c.Merged
	for _, step := range []func(context.Context) error{c.people, c.adjust, c.readReturns, c.settle, c.takeAll, c.confirmAgain, c.returnRest, c.adjustRest} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	for id := range c.short {
		c.NoStock = append(c.NoStock, id)
	}
	slices.Sort(c.NoStock)
	c.NoStock = c.NoStock[:min(len(c.NoStock), maxNamed)]
	if err := NewRestorer(b.store).DropPrevious(ctx, b.id); err != nil {
		return err
	}
	if b.o.Open && b.status == sale.Open {
		if err := b.store.SetStatus(ctx, b.id, sale.Open, b.o.By); err != nil {
			return err
		}
		b.out.Status = sale.Open
	}
	b.advise()
	c.adviseMerged()
	return nil
}

func (b *rebuilding) note(format string, args ...any) {
	b.out.Notes = append(b.out.Notes, fmt.Sprintf(format, args...))
}

// unreadable notes what cannot be merged.
func (c *merger) unreadable(what, text string) {
	if len(text) > longestText {
		text = text[:longestText] + "…"
	}
	c.note("The %s, which redis had, cannot be read and is not merged: %q.", what, text)
}

// settle brings reservations that the ledger knows to their state in Redis, and finds
// those that need units.
func (c *merger) settle(ctx context.Context) error {
	err := NewRestorer(c.store).PreviousReservations(ctx, c.id, c.unreadable, func(id string, r *record.Record) error {
		known, err := NewRestorer(c.store).RecordOf(ctx, c.id, id)
		if err != nil {
			return err
		}
		wants := known == nil || known.State == record.Tombstone || r.State == record.Confirmed && !isHold(known.State) && known.State != record.Confirmed
		switch {
		case lostUnits(known, r):
			c.taking[3] = append(c.taking[3], id)
			return c.giveUp(ctx, id, known)
		case !wants:
			if err := c.settleOne(ctx, id, known, r); err != nil {
				return err
			}
			return c.makeReturns(ctx, id)
		case len(c.returns[id]) > 0:
			c.taking[0] = append(c.taking[0], id)
		case isHold(r.State):
			c.taking[2] = append(c.taking[2], id)
		default:
			c.taking[1] = append(c.taking[1], id)
		}
		return nil
	})
	return err
}

// lostUnits reports whether the shop has confirmed a reservation that had lost its units, and the ledger
// knows neither that nor what became of it since.
func lostUnits(known, r *record.Record) bool {
	switch {
	case known == nil || r.State != record.Unbacked:
		return false
	case known.State == record.Released || known.State == record.Expired: // by giveUp, if a run broke off
		return r.Changed.After(known.Changed) || known.Cause == asRedisHadIt
	}
	return isHold(known.State)
}

// giveUp releases a hold for the order that has got its units in Redis.
func (c *merger) giveUp(ctx context.Context, id string, known *record.Record) error {
	if !isHold(known.State) {
		return nil
	}
	_, err := c.store.Release(ctx, c.id, id, reservation.SourceForce, asRedisHadIt)
	if _, ended := errors.AsType[*reservation.ConflictError](err); ended { // confirmed meanwhile
		return nil
	}
	return err
}

func isHold(state record.State) bool {
	return state == record.Held || state == record.InDoubt
}

// settleOne applies the state that a reservation had reached.
func (c *merger) settleOne(ctx context.Context, id string, known, r *record.Record) error {
	var state record.State
	var err error
	switch {
	case known.State == record.Held && r.State == record.Held && (r.Deadline.After(known.Deadline) || r.Changed.After(known.Changed)):
		_, _, err = NewRestorer(c.store).MergeReservation(ctx, c.id, id, r) // it was extended, or sent
		return err
	case known.State == record.Held && r.State == record.Expired:
		state, _, err = NewRestorer(c.store).MergeReservation(ctx, c.id, id, r)
	case known.State == record.Expired && r.State == record.Released: // the shop cannot confirm it any more
		state, err = c.store.Release(ctx, c.id, id, reservation.SourceForce, asRedisHadIt)
	case known.State == r.State || !isHold(known.State):
		return nil // otherwise the ledger has its later state
	case r.State == record.Confirmed:
		state, err = c.store.Confirm(ctx, c.id, id, reservation.SourceAnswer, asRedisHadIt)
	case r.State == record.Released || r.State == record.Expired:
		state, err = c.store.Release(ctx, c.id, id, reservation.SourceForce, asRedisHadIt)
	case r.State == record.InDoubt:
		if err = c.mergeSent(ctx, id, known, r); err != nil {
			return err
		}
		state, err = c.store.Doubt(ctx, c.id, id, asRedisHadIt)
	default:
		return nil
	}
	if _, ended := errors.AsType[*reservation.ConflictError](err); ended { // settled meanwhile
		return nil
	}
	if err == nil && state != known.State {
		c.Settled[state]++
	}
	return err
}

// mergeSent gives a hold that waits, as the ledger has it, the mode and the times with which it was
// sent before it was in doubt: its token is good as long as they say.
func (c *merger) mergeSent(ctx context.Context, id string, known, r *record.Record) error {
	if known.Mode != record.ModeQueued || r.Mode == known.Mode {
		return nil
	}
	sent := *r
	sent.State = record.Held
	_, _, err := NewRestorer(c.store).MergeReservation(ctx, c.id, id, &sent)
	return err
}

// takeAll merges the reservations that need units, each with its returns.
func (c *merger) takeAll(ctx context.Context) error {
	for _, ids := range c.taking {
		slices.Sort(ids)
		for _, id := range slices.Compact(ids) {
			if err := c.take(ctx, id); err != nil {
				return err
			}
			if err := c.makeReturns(ctx, id); err != nil {
				return err
			}
		}
	}
	return nil
}

func wasSold(state record.State) bool {
	return state == record.Confirmed || state == record.Unbacked
}

func (c *merger) take(ctx context.Context, id string) error {
	r, err := NewRestorer(c.store).PreviousRecord(ctx, c.id, id)
	if err != nil || r == nil {
		return err
	}
	state, made, err := NewRestorer(c.store).MergeReservation(ctx, c.id, id, r)
	switch {
	case err != nil:
		return err
	case made:
		c.Made[state]++
	case wasSold(r.State) && state != record.Confirmed:
		was := state
		if state, err = c.store.Confirm(ctx, c.id, id, reservation.SourceAnswer, asRedisHadIt); err != nil {
			return err
		}
		if state != was {
			c.Settled[state]++
		}
	}
	if state == record.Unbacked && (r.State == record.Confirmed || !made) || state == record.Expired && isHold(r.State) {
		c.short[id] = true
	}
	return nil
}

// confirmAgain gives units that have come back since to orders that got none.
func (c *merger) confirmAgain(ctx context.Context) error {
	for _, id := range slices.Sorted(maps.Keys(c.short)) {
		known, err := NewRestorer(c.store).RecordOf(ctx, c.id, id)
		if err != nil {
			return err
		}
		if known == nil || known.State != record.Unbacked {
			continue
		}
		state, err := c.store.Confirm(ctx, c.id, id, reservation.SourceAnswer, asRedisHadIt)
		if err != nil {
			return err
		}
		if state == record.Confirmed {
			delete(c.short, id)
			c.Settled[state]++
		}
	}
	return nil
}

// adviseMerged notes what was merged.
func (c *merger) adviseMerged() {
	made, settled := 0, 0
	for _, n := range c.Made {
		made += n
	}
	for _, n := range c.Settled {
		settled += n
	}
	c.note("Merged from what redis had: %d reservations that the ledger did not know, %d that had gone on, %d adjustments, %d returns.", made, settled, c.Adjustments, c.Returns)
	if len(c.short) > 0 {
		c.note("%d of them have no units any more, because both lives have sold them: see no_stock, and `caddy stockgate holds %s --state unbacked`.", len(c.short), c.id)
	}
	behind := c.life.Continues.Epoch == c.at.Epoch && c.at.Seq < c.life.Continues.Last // the ledger may lack a change
	if behind || c.life.Version > c.doc.Version && c.out.Found != FoundOther && c.out.Found != FoundUnfinished {
		c.note("The sale's file was changed after the ledger had it last: apply it again.")
	}
}

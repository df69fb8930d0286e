package recovery

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// stockChange is an adjustment of the previous life.
type stockChange struct {
	id string
	record.CellUnits
}

// adjust repeats the adjustments of the previous life, under their ids. One that is refused may
// take out what is given back later.
func (c *merger) adjust(ctx context.Context) error {
	return NewRestorer(c.store).PreviousAdjustments(ctx, c.id, c.unreadable, func(id string, l record.CellUnits) error {
		known, err := NewRestorer(c.store).HasAdjustment(ctx, c.id, id)
		if err != nil || known {
			return err
		}
		a := stockChange{id, l}
		if err = c.adjustOne(ctx, a); errors.Is(err, shard.ErrRefused) {
			c.refused = append(c.refused, a)
			return nil
		}
		return err
	})
}

func (c *merger) adjustOne(ctx context.Context, a stockChange) error {
	_, err := c.store.Adjust(ctx, c.id, a.id, a.Cell, a.Units, c.o.By+" rebuilt")
	if err == nil {
		c.Adjustments++
	}
	return err
}

// adjustRest makes the adjustments that were refused before.
func (c *merger) adjustRest(ctx context.Context) error {
	for _, a := range c.refused {
		err := c.adjustOne(ctx, a)
		if errors.Is(err, shard.ErrRefused) {
			c.note("The adjustment %s of %d units of %s cannot be made again: %v.", a.id, a.Units, a.Cell, err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (c *merger) readReturns(ctx context.Context) error {
	return NewRestorer(c.store).PreviousReturns(ctx, c.id, c.unreadable, func(r PreviousReturn) error {
		c.returns[r.Reservation] = append(c.returns[r.Reservation], r)
		return nil
	})
}

// makeReturns repeats the returns of a reservation, under their ids. A return that
// fails now may succeed later.
func (c *merger) makeReturns(ctx context.Context, id string) error {
	var left []PreviousReturn
	for _, r := range c.returns[id] {
		made, err := NewRestorer(c.store).MergeReturn(ctx, c.id, r, c.o.By+" rebuilt")
		switch {
		case errors.Is(err, shard.ErrUnavailable):
			return err
		case err != nil:
			left = append(left, r)
		case made:
			c.Returns++
		}
	}
	if left == nil {
		delete(c.returns, id)
	} else {
		c.returns[id] = left
	}
	return nil
}

// returnRest makes the returns that failed before.
func (c *merger) returnRest(ctx context.Context) error {
	for _, id := range slices.Sorted(maps.Keys(c.returns)) {
		if err := c.makeReturns(ctx, id); err != nil {
			return err
		}
		for _, r := range c.returns[id] {
			c.note("The return %s of reservation %s cannot be made again: the reservation is not what it was.", r.ID, r.Reservation)
		}
	}
	return nil
}

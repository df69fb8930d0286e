package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/stockgate/stockgate/reservation"
	"github.com/stockgate/stockgate/sale"
)

// Carried is what Redis had of a sale and the ledger had not, and what has become of
// it.
type Carried struct {
	// Made are reservations that the ledger did not know, by the state that they have now.
	Made map[reservation.State]int `json:"made,omitempty"`
	// Settled are those that Redis knew to have ended, and the ledger did not, by the
	// state that they have now.
	Settled     map[reservation.State]int `json:"settled,omitempty"`
	Adjustments int                       `json:"adjustments,omitempty"`
	Returns     int                       `json:"returns,omitempty"`
	// NoStock are orders for which there are no units any more: both lives have sold them.
	// At most mostNamed are named.
	NoStock []string `json:"no_stock,omitempty"`
}

// mostNamed bounds the ids that an answer names.
const mostNamed = 1000

// carry takes over what was set aside, and drops it. Each step changes nothing when it is
// done again.
func (b *rebuilding) carry(ctx context.Context) error {
	c := &Carried{Made: map[reservation.State]int{}, Settled: map[reservation.State]int{}}
	b.out.Carried = c
	if err := b.carryAdjustments(ctx); err != nil {
		return err
	}
	if err := b.store.AsideReservations(ctx, b.id, func(id string, r *reservation.RecordFields) error { return b.carryOne(ctx, id, r) }); err != nil {
		return err
	}
	if err := b.carryReturns(ctx); err != nil {
		return err
	}
	if b.o.Open && b.status == sale.Open {
		if err := b.store.SetStatus(ctx, b.id, sale.Open, b.o.By); err != nil {
			return err
		}
		b.out.Status = sale.Open
	}
	b.advise()
	b.adviseCarried()
	return b.store.DropAside(ctx, b.id)
}

// carryAdjustments makes adjustments of the other life again, under their ids.
func (b *rebuilding) carryAdjustments(ctx context.Context) error {
	return b.store.AsideAdjustments(ctx, b.id, func(id string, l reservation.CellUnits) error {
		known, err := b.store.HasAdjustment(ctx, b.id, id)
		if err != nil || known {
			return err
		}
		if _, err = b.store.Adjust(ctx, b.id, id, l.Cell, l.Units, b.o.By+" rebuilt"); errors.Is(err, reservation.ErrRefused) {
			b.out.Notes = append(b.out.Notes, fmt.Sprintf("The adjustment %s of %d units of %s cannot be made again: %v.", id, l.Units, l.Cell, err))
			return nil
		}
		b.out.Carried.Adjustments++
		return err
	})
}

// carryOne takes a reservation over, or what it had come to.
func (b *rebuilding) carryOne(ctx context.Context, id string, r *reservation.RecordFields) error {
	c := b.out.Carried
	known, err := b.store.RecordOf(ctx, b.id, id)
	if err != nil {
		return err
	}
	if known == nil || known.State == "tombstone" {
		state, made, err := b.store.Carry(ctx, b.id, id, r)
		if made {
			c.Made[state]++
		}
		if state == reservation.Unbacked && r.State == reservation.Confirmed || state == reservation.Expired && r.State != reservation.Expired {
			c.noStock(id)
		}
		return err
	}
	const cause = "rebuilt: as redis had it"
	open := known.State == reservation.Held || known.State == reservation.InDoubt
	var state reservation.State
	switch {
	case known.State == r.State || known.State == reservation.Confirmed:
		return nil
	case r.State == reservation.Confirmed:
		if state, err = b.store.Confirm(ctx, b.id, id, reservation.Answer, cause); state == reservation.Unbacked {
			c.noStock(id)
		}
	case open && (r.State == reservation.Released || r.State == reservation.Expired):
		state, err = b.store.Release(ctx, b.id, id, reservation.Force, cause)
	case open && r.State == reservation.InDoubt:
		state, err = b.store.Doubt(ctx, b.id, id, cause)
	default:
		return nil // the ledger knows what came of it later
	}
	if err == nil && state != known.State {
		c.Settled[state]++
	}
	return err
}

func (c *Carried) noStock(id string) {
	if len(c.NoStock) < mostNamed {
		c.NoStock = append(c.NoStock, id)
	}
}

// carryReturns makes returns of the other life again, under their ids. Those that were
// taken over with their reservation are known by its sum.
func (b *rebuilding) carryReturns(ctx context.Context) error {
	return b.store.AsideReturns(ctx, b.id, func(r reservation.AsideReturn) error {
		made, err := b.store.CarryReturn(ctx, b.id, r, b.o.By+" rebuilt")
		if made {
			b.out.Carried.Returns++
		}
		if err != nil && !errors.Is(err, reservation.ErrUnavailable) {
			b.out.Notes = append(b.out.Notes, fmt.Sprintf("The return %s of reservation %s cannot be made again: %v.", r.ID, r.Reservation, err))
			return nil
		}
		return err
	})
}

// adviseCarried says what was taken over.
func (b *rebuilding) adviseCarried() {
	c := b.out.Carried
	note := func(format string, args ...any) { b.out.Notes = append(b.out.Notes, fmt.Sprintf(format, args...)) }
	made, settled := 0, 0
	for _, n := range c.Made {
		made += n
	}
	for _, n := range c.Settled {
		settled += n
	}
	note("Carried over from what redis had: %d reservations that the ledger did not know, %d that had gone on, %d adjustments, %d returns.", made, settled, c.Adjustments, c.Returns)
	if len(c.NoStock) > 0 {
		note("%d of them have no units any more, because both lives have sold them: see no_stock, and `caddy stockgate holds %s --state unbacked`.", len(c.NoStock), b.id)
	}
	if b.life.Version > b.doc.Version && b.out.Found != FoundOther {
		note("The sale's file was changed after the ledger had it last: apply it again.")
	}
}

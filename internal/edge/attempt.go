package edge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/combine"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// HoldOptions say how long an attempt's stock is held, and what becomes of it at the deadline.
type HoldOptions struct {
	HoldFor time.Duration
	Margin  time.Duration
	Mode    record.Mode
	// KeyTTL is how long an idempotency key belongs to a confirmed reservation; never
	// shorter than until the sale ends.
	KeyTTL time.Duration
	// Gate is the name of the gate, so that the right one asks the shop about a
	// reservation in doubt; empty: it has none.
	Gate string
	// InPlaceOf is the id of a hold of the same buyer and ref, whose cart was changed. Default:
	// none.
	InPlaceOf string
	// Recall lets the edge refuse the attempt from memory if its units go while it waits for Redis.
	// It must be false for an attempt that has an Ask. One with a key or a ref is not refused so: it
	// may belong to a reservation.
	Recall bool
	// Queue lets the order wait for the shop; nil: it goes there at once. A hold in the place of
	// another one does not wait.
	Queue *reservation.QueueOptions
}

// ErrUnknown says that it is not known whether Redis has reserved for an attempt. What it has
// reserved is released as soon as Redis answers.
var ErrUnknown = errors.New("redis may have reserved")

// Hold reserves stock for one attempt within parent, or returns the refusal. lines
// must be those of the attempt as the sale resolved them. If anything goes wrong,
// Hold releases whatever may have been reserved, so that no stock stays without an
// owner. The error is a *reservation.AlreadyBound if the attempt's key or ref, or without a
// key its buyer and lines, belong to another reservation: nothing was charged.
func (e *Edge) Hold(parent context.Context, id string, l *Listing, a *sale.Attempt, lines []sale.Line, o HoldOptions) (reservation.Hold, *sale.Refusal, error) {
	started, saleID := time.Now(), l.Sale.ID
	defer func() { (*e.metrics.Load()).Reserved(saleID, time.Since(started)) }()
	ctx := combine.Within(parent, e.shard.Timeout())

	secret := e.secret.Load()
	if secret == nil {
		return reservation.Hold{}, nil, shard.ErrStarting
	}
	who := person{secret: secret, attempt: a}
	charged, shadow, refusal := charges(l, &who, lines, l.Now())
	var unpaid reservation.Owed
	if refusal == nil {
		unpaid, refusal = owed(l, &who, o.Mode)
	}
	if refusal != nil {
		return e.unasked(parent, l, a, lines, refusal)
	}
	claim := &reservation.ReserveRequest{
		ID: id, Sale: l.Sale.ID, Version: l.Version, Buyer: who.buyer(),
		Lines: lines, Charges: charged, Unpaid: unpaid,
		HoldFor: o.HoldFor, Margin: o.Margin, Mode: o.Mode,
		Binding: bindingOf(secret, l, a, lines, o.KeyTTL), Ref: a.Ref, RefShared: a.RefShared, Gate: o.Gate,
		View: l.view(), Queue: o.Queue,
	}
	mayRecall := o.Recall && a.Key == "" && a.Ref == ""
	var recalled atomic.Bool
	if mayRecall {
		claim.Recall = e.recall(l, lines, &recalled)
	}
	if o.InPlaceOf != "" {
		claim.Queue = nil
	}
	// A try that was sent and not answered may still run, even after a later one.
	// Unless this attempt gets the hold in the end, its id is released.
	sent, ours := false, false
	defer func() {
		if sent && !ours {
			e.abandon(claim.Sale, id, claim.Queue != nil && claim.Queue.Order != nil)
		}
	}()
	for try := 0; ; try++ {
		hold, refusal, err := e.reserve(ctx, l, claim, &who, o.InPlaceOf)
		switch {
		case err == nil && refusal == nil && (hold.State == record.Held || hold.State == record.Waiting):
			ours, hold.Shadow = true, cmp.Or(shadow, hold.Shadow)
			e.own.add(id, hold.Lines)
			e.binds(claim)
			return hold, nil, nil
		case err == nil && refusal == nil:
			return hold, nil, errors.New("the reservation has ended already")
		case err == nil:
			if refusal.Reason == sale.SoldOut || refusal.Reason == sale.AllHeld {
				(*e.metrics.Load()).NothingLeft(recalled.Load())
			}
			return reservation.Hold{}, refusal, nil
		case errors.Is(err, reservation.ErrVersion) && try < 5:
			if l, lines, refusal, err = e.reload(ctx, l, a); err != nil || refusal != nil {
				return reservation.Hold{}, refusal, err
			}
			if charged, shadow, refusal = charges(l, &who, lines, l.Now()); refusal != nil {
				return reservation.Hold{}, refusal, nil
			}
			if claim.Unpaid, refusal = owed(l, &who, o.Mode); refusal != nil {
				return reservation.Hold{}, refusal, nil
			}
			claim.Version, claim.Lines, claim.Charges, claim.View = l.Version, lines, charged, l.view()
			claim.Binding = bindingOf(secret, l, a, lines, o.KeyTTL)
			if mayRecall && !sent {
				claim.Recall = e.recall(l, lines, &recalled)
			}
			continue
		case errors.Is(err, reservation.ErrWindow) && try < 5:
			// the reply has Redis's time, so the sale need not be read again: at midnight
			// every attempt gets this answer
			now := l.Now()
			if w, ok := errors.AsType[*reservation.WindowError](err); ok && w.Now.After(now) {
				now = w.Now
			}
			if claim.Charges, shadow, refusal = charges(l, &who, lines, now); refusal != nil {
				return reservation.Hold{}, refusal, nil
			}
			continue
		case errors.Is(err, reservation.ErrLate), errors.Is(err, reservation.ErrVersion), errors.Is(err, reservation.ErrWindow):
			return reservation.Hold{}, nil, err // nothing was charged
		}
		if _, ok := errors.AsType[*reservation.AlreadyBound](err); ok {
			return reservation.Hold{}, nil, err
		}
		(*e.metrics.Load()).RedisFailed("reserve")
		// the sale may have been found, and only a record of the swap be missing still
		halfSwap := o.InPlaceOf != "" && errors.Is(err, shard.ErrRestoring)
		if sent = sent || halfSwap || !e.shard.NotSent(err); sent {
			claim.Recall = nil // what is gone may be what it has got
		}
		if shard.Repeatable(ctx, err) && try < 2 {
			continue
		}
		if sent {
			err = fmt.Errorf("%w: %w", ErrUnknown, err)
		}
		return reservation.Hold{}, nil, err
	}
}

// recall refuses lines whose units have gone while their attempt waited, and notes that it did.
func (e *Edge) recall(l *Listing, lines []sale.Line, did *atomic.Bool) func() *sale.Refusal {
	return func() *sale.Refusal {
		f := l.view()
		if f == nil {
			return nil
		}
		no, _ := f.recall(lines)
		if no != nil {
			did.Store(true)
		}
		return no
	}
}

// reserve holds stock, in the place of a hold of the same order or of an offer to the person if there is one.
func (e *Edge) reserve(ctx context.Context, l *Listing, claim *reservation.ReserveRequest, who *person, inPlaceOf string) (reservation.Hold, *sale.Refusal, error) {
	identities, accepts := e.accepts(l, who, claim.Lines)
	switch {
	case inPlaceOf == "" && accepts:
		return e.Store.Accept(ctx, claim, identities)
	case inPlaceOf == "":
		return e.Store.Reserve(ctx, claim)
	}
	hold, refusal, err := e.Store.Swap(ctx, claim, inPlaceOf, identities, accepts)
	if err == nil && refusal == nil {
		e.own.take(inPlaceOf)
	}
	return hold, refusal, err
}

// unasked refuses an attempt without a reserve request. If the attempt's key or ref
// belongs to a reservation, it returns that instead.
func (e *Edge) unasked(ctx context.Context, l *Listing, a *sale.Attempt, lines []sale.Line, no *sale.Refusal) (reservation.Hold, *sale.Refusal, error) {
	if a.Key == "" && a.Ref == "" {
		return reservation.Hold{}, no, nil
	}
	isNew, err := e.SurelyNew(l, a)
	if err != nil {
		return reservation.Hold{}, nil, err
	}
	if !isNew {
		if b, err := e.Lookup(ctx, l, a, lines); err != nil {
			return reservation.Hold{}, nil, err
		} else if b != nil {
			return reservation.Hold{}, nil, b
		}
	}
	return reservation.Hold{}, no, nil
}

// reload reads a sale that has changed, and resolves the attempt's lines in it.
func (e *Edge) reload(by *combine.Bounded, l *Listing, a *sale.Attempt) (*Listing, []sale.Line, *sale.Refusal, error) {
	ctx, cancel := by.Waited()
	defer cancel()
	fresh, err := e.loadListing(ctx, l.Sale.ID, l)
	if err != nil {
		return nil, nil, nil, err
	}
	select {
	case e.poke <- struct{}{}: // the catalogue follows
	default:
	}
	if refusal := fresh.Sale.RefusalAt(fresh.Status, fresh.Now()); refusal != nil {
		return nil, nil, refusal, nil
	}
	lines, refusal := fresh.Sale.Resolve(a)
	return fresh, lines, refusal, nil
}

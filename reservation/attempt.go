package reservation

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/sale"
)

// Terms say how long an attempt's stock is held.
type Terms struct {
	HoldFor time.Duration
	Margin  time.Duration
	Mode    Mode
	// KeyTTL is how long an idempotency key belongs to a confirmed reservation; never
	// shorter than until the sale ends.
	KeyTTL time.Duration
	// Gate is the name of the gate, so that the right one asks the shop about a
	// reservation in doubt; empty: it has none.
	Gate string
}

// Hold holds stock for one attempt within parent, or says why not. lines must be
// those of the attempt as the sale resolved them. Whatever goes wrong, no stock
// is left that nobody owns: what may have been reserved is released. The error is
// a *Bound when the attempt's key or ref, or without a key its buyer and lines,
// belong to another reservation: nothing was charged.
func (e *Edge) Hold(parent context.Context, id string, l *Listing, a *sale.Attempt, lines []sale.Line, t Terms) (Hold, *sale.Refusal, error) {
	started := time.Now()
	defer func() { (*e.metrics.Load()).Reserved(time.Since(started)) }()
	ctx := within(parent, e.Store.Timeout())

	secret := e.secret.Load()
	if secret == nil {
		return Hold{}, nil, ErrStarting
	}
	who := person{secret: secret, attempt: a}
	charged, refusal := charges(l, &who, lines, l.Now())
	var unpaid Owed
	if refusal == nil {
		unpaid, refusal = owed(l, &who, t.Mode)
	}
	if refusal != nil {
		return e.unasked(parent, l, a, lines, refusal)
	}
	claim := &Claim{
		ID: id, Sale: l.Sale.ID, Version: l.Version, Buyer: who.buyer(),
		Lines: lines, Charges: charged, Unpaid: unpaid,
		HoldFor: t.HoldFor, Margin: t.Margin, Mode: t.Mode,
		Binding: binding(secret, a, lines, t.KeyTTL), Ref: a.Ref, RefShared: a.RefShared, Gate: t.Gate,
		seen: l.view(),
	}
	// A try that was sent and not answered may still run, even after a later one:
	// unless the hold is ours in the end, its id is released.
	sent, ours := false, false
	defer func() {
		if sent && !ours {
			e.Abandon(claim.Sale, id)
		}
	}()
	for try := 0; ; try++ {
		hold, refusal, err := e.Store.Reserve(ctx, claim)
		switch {
		case err == nil && refusal == nil && hold.State == Held:
			ours = true
			e.own.add(id, hold.Lines)
			e.binds(claim)
			return hold, nil, nil
		case err == nil && refusal == nil:
			return hold, nil, errors.New("the reservation has ended already")
		case err == nil:
			if refusal.Reason == sale.SoldOut || refusal.Reason == sale.AllHeld {
				(*e.metrics.Load()).NothingLeft(false)
			}
			return Hold{}, refusal, nil
		case errors.Is(err, ErrVersion) && try < 5:
			if l, lines, refusal, err = e.reload(ctx, l, a); err != nil || refusal != nil {
				return Hold{}, refusal, err
			}
			if charged, refusal = charges(l, &who, lines, l.Now()); refusal != nil {
				return Hold{}, refusal, nil
			}
			if claim.Unpaid, refusal = owed(l, &who, t.Mode); refusal != nil {
				return Hold{}, refusal, nil
			}
			claim.Version, claim.Lines, claim.Charges, claim.seen = l.Version, lines, charged, l.view()
			claim.Binding = binding(secret, a, lines, t.KeyTTL)
			continue
		case errors.Is(err, ErrWindow) && try < 5:
			// the reply told the time: no need to read the sale again, least of all at
			// midnight, when this is everybody's answer
			now := l.Now()
			if w, ok := errors.AsType[*windowError](err); ok && w.now.After(now) {
				now = w.now
			}
			if claim.Charges, refusal = charges(l, &who, lines, now); refusal != nil {
				return Hold{}, refusal, nil
			}
			continue
		case errors.Is(err, ErrLate), errors.Is(err, ErrVersion), errors.Is(err, ErrWindow):
			return Hold{}, nil, err // nothing was charged
		}
		if _, ok := errors.AsType[*Bound](err); ok {
			return Hold{}, nil, err
		}
		(*e.metrics.Load()).RedisFailed("reserve")
		sent = sent || !e.Store.notSent(err)
		if repeatable(ctx, err) && try < 2 {
			continue
		}
		return Hold{}, nil, err
	}
}

// unasked refuses an attempt that Redis was not asked about. What its key or ref has got
// comes first.
func (e *Edge) unasked(ctx context.Context, l *Listing, a *sale.Attempt, lines []sale.Line, no *sale.Refusal) (Hold, *sale.Refusal, error) {
	if a.Key == "" && a.Ref == "" {
		return Hold{}, no, nil
	}
	isNew, err := e.SurelyNew(l, a)
	if err != nil {
		return Hold{}, nil, err
	}
	if !isNew {
		if b, err := e.Lookup(ctx, l, a, lines); err != nil {
			return Hold{}, nil, err
		} else if b != nil {
			return Hold{}, nil, b
		}
	}
	return Hold{}, no, nil
}

// reload reads a sale that has changed, and what the attempt means in it.
func (e *Edge) reload(by *bounded, l *Listing, a *sale.Attempt) (*Listing, []sale.Line, *sale.Refusal, error) {
	ctx, cancel := by.waited()
	defer cancel()
	fresh, err := e.Store.loadListing(ctx, l.Sale.ID, l)
	if err != nil {
		return nil, nil, nil, err
	}
	select {
	case e.poke <- struct{}{}: // the catalogue follows
	default:
	}
	if refusal := fresh.Sale.Verdict(fresh.Status, fresh.Now()); refusal != nil {
		return nil, nil, refusal, nil
	}
	lines, refusal := fresh.Sale.Resolve(a)
	return fresh, lines, refusal, nil
}

// notSent says that an operation surely did nothing: there was no connection for
// it in time, Redis refused to begin, or a key has another type. A cluster's client repeats on its own, so
// there the last error says nothing about the tries before it.
func (s *Store) notSent(err error) bool {
	if errors.Is(err, ErrNotSent) || s.options.Cluster {
		return errors.Is(err, ErrNotSent)
	}
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" || errors.Is(err, redis.ErrPoolTimeout) || neverBegan(err) || isWrongType(err) ||
		// a wait for the pool; a wait for a reply ends with the network's own error
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// repeatable says whether another try, with the same id, makes sense: the
// connection broke, and there is time left.
func repeatable(ctx context.Context, err error) bool {
	var timeout net.Error
	if ctx.Err() != nil || !errors.Is(err, ErrUnavailable) || errors.As(err, &timeout) && timeout.Timeout() {
		return false
	}
	deadline, _ := ctx.Deadline()
	return time.Until(deadline) > 10*time.Millisecond && brokenConnection(err)
}

package reservation

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

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
	ctx := within(parent, e.Timeout())

	secret := e.secret.Load()
	if secret == nil {
		return Hold{}, nil, ErrStarting
	}
	who := person{secret: secret, attempt: a}
	charged, refusal := charges(l, &who, lines, l.Now())
	if refusal != nil {
		return Hold{}, refusal, nil
	}
	claim := &Claim{
		ID: id, Sale: l.Sale.ID, Version: l.Version, Buyer: who.buyer(),
		Lines: lines, Charges: charged,
		HoldFor: t.HoldFor, Margin: t.Margin, Mode: t.Mode,
		Binding: binding(secret, a, lines, t.KeyTTL), Ref: a.Ref, Gate: t.Gate,
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
		sent = sent || !e.notSent(err)
		if repeatable(ctx, err) && try < 2 {
			continue
		}
		return Hold{}, nil, err
	}
}

// reload reads a sale that has changed, and what the attempt means in it.
func (e *Edge) reload(by *bounded, l *Listing, a *sale.Attempt) (*Listing, []sale.Line, *sale.Refusal, error) {
	ctx, cancel := by.waited()
	defer cancel()
	fresh, err := e.readListing(ctx, l.Sale.ID, nil)
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

// notSent says that an operation surely did not run: there was no connection for
// it in time, or Redis refused to begin. A cluster's client repeats on its own, so
// there the last error says nothing about the tries before it.
func (s *Store) notSent(err error) bool {
	if errors.Is(err, ErrNotSent) || s.options.Cluster {
		return errors.Is(err, ErrNotSent)
	}
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" || errors.Is(err, redis.ErrPoolTimeout) || neverBegan(err) ||
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

// Abandon releases a reservation that was never forwarded, in the background and
// until Redis has heard of it. A reserve that is still under way is refused then.
func (e *Edge) Abandon(saleID, id string) {
	e.backlog.add(outcome{saleID, id, func(ctx context.Context) (State, error) {
		return e.Store.Release(ctx, saleID, id, Unsent, unsent)
	}, unsent})
}

// Confirm tells Redis that the shop took the order. Units that had gone elsewhere
// meanwhile are noted as unbacked. When Redis does not answer it is told later.
func (e *Edge) Confirm(ctx context.Context, saleID, id, cause string) (State, error) {
	state, err := e.settled(ctx, outcome{saleID, id, func(ctx context.Context) (State, error) {
		state, err := e.Store.Confirm(ctx, saleID, id, Answer, cause)
		if state == Unbacked {
			(*e.metrics.Load()).SoldUnbacked()
			e.log.Error("the shop took an order whose units were given back and sold: see `caddy stockgate holds --state unbacked`",
				zap.String("sale", saleID), zap.String("reservation", id))
		}
		return state, err
	}, "confirm"})
	return state, err
}

// Release tells Redis that the order will not come, by the shop's word or because
// it was never sent. When Redis does not answer it is told later.
func (e *Edge) Release(ctx context.Context, saleID, id string, word Word, cause string) (State, error) {
	return e.settled(ctx, outcome{saleID, id, func(ctx context.Context) (State, error) {
		return e.Store.Release(ctx, saleID, id, word, cause)
	}, "release"})
}

// Doubt tells Redis that nobody knows whether the shop took the order. When Redis
// does not answer it is told later.
func (e *Edge) Doubt(ctx context.Context, saleID, id, cause string) (State, error) {
	return e.settled(ctx, outcome{saleID, id, func(ctx context.Context) (State, error) {
		return e.Store.Doubt(ctx, saleID, id, cause)
	}, "in_doubt"})
}

func (e *Edge) settled(ctx context.Context, o outcome) (State, error) {
	lines := e.own.take(o.id)
	state, err := o.tell(within(ctx, e.Timeout()))
	if err == nil && state == Released {
		e.gaveBack(o.sale, lines)
	}
	if errors.Is(err, ErrUnavailable) {
		(*e.metrics.Load()).RedisFailed("settle")
		e.backlog.add(o)
	}
	return state, err
}

package edge

import (
	"context"
	"errors"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/combine"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// DryRun says how Hold would answer an attempt, and holds and charges nothing; see
// reservation.Store.DryRun for sold and for what the answers are. It knows no holds: nothing is
// ever pending because of an attempt that is only decided by a dry run.
func (e *Edge) DryRun(parent context.Context, l *Listing, a *sale.Attempt, lines []sale.Line, t HoldOptions, sold reservation.PriorAnswer) (shadow, refusal *sale.Refusal, err error) {
	ctx := combine.Within(parent, e.shard.Timeout())
	secret := e.secret.Load()
	if secret == nil {
		return nil, nil, shard.ErrStarting
	}
	who := person{secret: secret, attempt: a}
	now := l.Now()
	for try := 0; ; try++ {
		charged, shadowed, refusal := charges(l, &who, lines, now)
		asked := sold
		if refusal != nil && asked == reservation.NotSold {
			return nil, refusal, nil
		} else if refusal != nil {
			asked = reservation.SoldPast
		}
		inScript, no, err := e.Store.DryRun(ctx, &reservation.ReserveRequest{
			Sale: l.Sale.ID, Version: l.Version, Buyer: who.buyer(), Lines: lines, Charges: charged,
			HoldFor: t.HoldFor, Margin: t.Margin, Mode: t.Mode,
			Binding: bindingOf(secret, l, a, lines, t.KeyTTL), Ref: a.Ref, RefShared: a.RefShared,
		}, asked)
		if shadowed == nil {
			shadowed = inScript
		}
		if refusal == nil {
			refusal = no
		}
		switch {
		case try == 3:
		case errors.Is(err, reservation.ErrVersion):
			var gone *sale.Refusal
			if l, lines, gone, err = e.reload(ctx, l, a); err != nil || gone != nil {
				return nil, gone, err
			}
			now = l.Now()
			continue
		case errors.Is(err, reservation.ErrWindow):
			now = l.Now()
			if w, ok := errors.AsType[*reservation.WindowError](err); ok && w.Now.After(now) {
				now = w.Now
			}
			continue
		}
		return shadowed, refusal, err
	}
}

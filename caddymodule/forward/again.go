package forward

import (
	"context"
	"net/http"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/filters/outcome"
)

// endAgain ends the forwarding of an order that was sold before. It reports only a confirm
// to Redis, which changes nothing unless the units went elsewhere in between and are back.
func (f *Forwarding) endAgain(v outcome.Decision, cause string) {
	meter.CountAttempt(f.Hold.Sale, "repeated", "")
	switch v {
	case outcome.Confirm:
		if _, err := f.Slot.runtime.ConfirmEventually(f.ctx, f.Hold.Sale, f.Hold.ID, cause); err != nil {
			f.Log.Debug("redis was not told that the shop took an order again", zap.String("reservation", f.Hold.ID), zap.Error(err))
		}
	case outcome.Release:
		f.Log.Warn("the shop refused an order that it has taken before: the same token should get the same answer",
			zap.String("sale", f.Hold.Sale), zap.String("reservation", f.Hold.ID), zap.String("cause", cause))
	}
}

// remember stores the shop's answer for a repeat with the same idempotency key. If it
// cannot be stored, a later repeat gets a refusal that says that the order was placed.
func (f *Forwarding) remember() {
	a := f.Copy.whole()
	if a == nil || f.Rules.Otherwise == outcome.Keep && a.Status >= http.StatusBadRequest {
		return // a shop that decides later may still decide otherwise
	}
	ctx, cancel := context.WithTimeout(f.ctx, f.Slot.runtime.Store.Shard().Timeout()/2) // leave time for the outcome, which matters more
	defer cancel()
	if err := f.Slot.runtime.Store.StoreAnswer(ctx, f.Hold.Sale, f.Hold.ID, a, f.KeepCopy); err != nil {
		if c := f.Log.Check(zap.DebugLevel, "the answer to an idempotency key was not stored"); c != nil {
			c.Write(zap.String("reservation", f.Hold.ID), zap.Error(err))
		}
	}
}

package forward

import (
	"context"
	"net/http"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/outcome"
)

// endAgain ends the flight of an order that was sold before. Only a confirm is told:
// it changes nothing, unless the units had gone elsewhere and are back.
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

// remember keeps the shop's answer for who sends the same idempotency key again. One
// that cannot be kept is missed later: he is told that he has ordered.
func (f *Forwarding) remember() {
	a := f.Copy.whole()
	if a == nil || f.Rules.Otherwise == outcome.Keep && a.Status >= http.StatusBadRequest {
		return // a failure of a shop that decides later is not its last word
	}
	ctx, cancel := context.WithTimeout(f.ctx, f.Slot.runtime.Store.Shard().Timeout()/2) // what comes after matters more
	defer cancel()
	if err := f.Slot.runtime.Store.StoreAnswer(ctx, f.Hold.Sale, f.Hold.ID, a, f.KeepCopy); err != nil {
		if c := f.Log.Check(zap.DebugLevel, "the answer to an idempotency key was not stored"); c != nil {
			c.Write(zap.String("reservation", f.Hold.ID), zap.Error(err))
		}
	}
}

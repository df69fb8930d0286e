package caddymodule

import (
	"context"
	"net/http"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/outcome"
)

// endAgain ends the flight of an order that was sold before. Only a confirm is told:
// it changes nothing, unless the units had gone elsewhere and are back.
func (f *flight) endAgain(v outcome.Decision, cause string) {
	countAttempt(f.hold.Sale, "repeated", "")
	switch v {
	case outcome.Confirm:
		if _, err := f.place.desk.Confirm(f.ctx, f.hold.Sale, f.hold.ID, cause); err != nil {
			f.log.Debug("redis was not told that the shop took an order again", zap.String("reservation", f.hold.ID), zap.Error(err))
		}
	case outcome.Release:
		f.log.Warn("the shop refused an order that it has taken before: the same token should get the same answer",
			zap.String("sale", f.hold.Sale), zap.String("reservation", f.hold.ID), zap.String("cause", cause))
	}
}

// remember keeps the shop's answer for who sends the same idempotency key again. One
// that cannot be kept is missed later: he is told that he has ordered.
func (f *flight) remember() {
	a := f.copy.whole()
	if a == nil || f.rules.Otherwise == outcome.Keep && a.Status >= http.StatusBadRequest {
		return // a failure of a shop that decides later is not its last word
	}
	ctx, cancel := context.WithTimeout(f.ctx, f.place.desk.Timeout()/2) // what comes after matters more
	defer cancel()
	if err := f.place.desk.StoreAnswer(ctx, f.hold.Sale, f.hold.ID, a, f.keepCopy); err != nil {
		if c := f.log.Check(zap.DebugLevel, "the answer to an idempotency key was not stored"); c != nil {
			c.Write(zap.String("reservation", f.hold.ID), zap.Error(err))
		}
	}
}

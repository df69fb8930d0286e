package edge

import (
	"context"
	"errors"
	"slices"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/loop"
	"github.com/stockgate/stockgate/internal/store/rates"
)

// Rates returns what counts shared rates.
func (e *Edge) Rates() *rates.Rates { return e.rates }

// CountsRates returns why shared rates could not be counted when the edge last asked; nil: they can,
// or it has not asked yet.
func (e *Edge) CountsRates() error {
	if err := e.uncounted.Load(); err != nil {
		return *err
	}
	return nil
}

// watchRates asks the Redis that counts shared rates, also while no attempt comes. Where it is the one with the
// stock, the edge does not sell without it.
func (e *Edge) watchRates(ctx context.Context) {
	if slices.Equal(e.rates.Shard().Options.Addresses, e.shard.Options.Addresses) {
		return
	}
	loop.Every(ctx, e.checkEvery, nil, func() { e.askRates(ctx) })
}

func (e *Edge) askRates(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*e.rates.Shard().Timeout())
	defer cancel()
	err, before := e.rates.Shard().Ping(ctx), e.CountsRates()
	if errors.Is(err, context.Canceled) {
		return
	}
	e.uncounted.Store(&err)
	switch {
	case err != nil && before == nil:
		e.log.Error("shared rates cannot be counted: gates that have one answer 503", zap.Error(err))
	case err == nil && before != nil:
		e.log.Info("shared rates are counted again")
	}
}

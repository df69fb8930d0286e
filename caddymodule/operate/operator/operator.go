package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// operator is one request of the admin API: its caller, and the edge runtime that it is about.
type operator struct {
	ctx     context.Context
	app     *app.App
	runtime *edgeruntime.Runtime
	by      string
	cause   string // of the reservations that the request settles
	log     *zap.Logger
}

// noted logs a change with its caller and its details, and returns its error. This edge
// follows the change at once, the others when Redis notifies them.
func (o *operator) noted(err error, change string, what ...zap.Field) error {
	log := o.log.With(zap.String("by", o.by)).With(what...)
	switch {
	case err == nil:
		log.Info(change)
		if err := o.runtime.Refresh(o.ctx); err != nil {
			log.Warn("the change is made, but this edge cannot read it yet", zap.Error(err))
		}
		return nil
	case errors.Is(err, shard.ErrNotReplicated):
		log.Warn("the change is made, but too few replicas have it: a failover may lose it", zap.String("change", change), zap.Error(err))
		return err
	case errors.Is(err, shard.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		log.Warn("redis did not answer: the change may have been made", zap.String("change", change), zap.Error(err))
		return fmt.Errorf("%w; it is unknown whether the change was made: ask for the same again", err)
	}
	return err
}

// known returns ErrNoSale unless the sale exists.
func (o *operator) known(id string) error {
	ids, err := o.runtime.Store.Journal().Sales(o.ctx)
	if err != nil {
		return err
	}
	if _, found := slices.BinarySearch(ids, id); !found {
		return o.noSale(id, shard.ErrNoSale)
	}
	if l, ok := o.runtime.Catalogue().Sale(id); ok && l.Lost() {
		return o.noSale(id, shard.ErrNoSale)
	}
	return nil
}

// noSale turns the error about a missing sale into one that reports whether it never existed or
// is lost.
func (o *operator) noSale(id string, err error) error {
	if lost, ok := errors.AsType[*edge.LostError](o.runtime.Missing(o.ctx, id, err)); ok {
		return fmt.Errorf("%w: %s", shard.ErrRefused, lost) // a repeated request does not help
	}
	return edgeruntime.NoSale(id, err)
}

// Package serve is what all requests of the admin API have in common: the operator who asks, how their changes
// are logged, and how answers and errors are written.
package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// Operator is one request of the admin API: its caller, and the edge runtime that it is about.
type Operator struct {
	Ctx     context.Context
	App     *app.App
	Runtime *edgeruntime.Runtime
	By      string
	Cause   string // of the reservations that the request settles
	Log     *zap.Logger
}

// Of finds the edge runtime for a request; nil: it has answered that there is none. Every request looks up the
// app, because the admin endpoint is made before the apps and outlives a reload.
func Of(w http.ResponseWriter, r *http.Request) (*Operator, error) {
	w.Header().Set(adminapi.ServedHeader, "1")
	app := app.Active()
	if app == nil || app.Runtime() == nil {
		return nil, refuse(w, caddy.APIError{HTTPStatus: http.StatusServiceUnavailable, Message: noApp})
	}
	return &Operator{App: app, Runtime: app.Runtime(), By: request.By(r), Cause: causeOf(r), Log: caddy.Log().Named("admin.api.stockgate")}, nil
}

// Noted logs a change with its caller and its details, and returns its error. This edge
// follows the change at once, the others when Redis notifies them.
func (o *Operator) Noted(err error, change string, what ...zap.Field) error {
	log := o.Log.With(zap.String("by", o.By)).With(what...)
	switch {
	case err == nil:
		log.Info(change)
		if err := o.Runtime.Refresh(o.Ctx); err != nil {
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

// Known returns ErrNoSale unless the sale exists.
func (o *Operator) Known(id string) error {
	ids, err := o.Runtime.Store.Journal().Sales(o.Ctx)
	if err != nil {
		return err
	}
	if _, found := slices.BinarySearch(ids, id); !found {
		return o.NoSale(id, shard.ErrNoSale)
	}
	if l, ok := o.Runtime.Catalogue().Sale(id); ok && l.Lost() {
		return o.NoSale(id, shard.ErrNoSale)
	}
	return nil
}

// NoSale turns the error about a missing sale into one that reports whether it never existed or
// is lost.
func (o *Operator) NoSale(id string, err error) error {
	if lost, ok := errors.AsType[*edge.LostError](o.Runtime.Missing(o.Ctx, id, err)); ok {
		return fmt.Errorf("%w: %s", shard.ErrRefused, lost) // a repeated request does not help
	}
	return edgeruntime.NoSale(id, err)
}

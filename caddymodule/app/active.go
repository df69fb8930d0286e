package app

import (
	"context"

	"github.com/stockgate/stockgate/edge"
)

// Active returns the edge of the app that started last, or nil if no app runs, and a
// function that waits until no attempt uses that edge and then stops it. Caddy does not
// wait for this when it stops.
func Active() (edge *edge.Edge, drain func(context.Context) error) {
	app := Latest()
	if app == nil || app.Runtime() == nil {
		return nil, nil
	}
	running := app.Runtime()
	return running.Edge, func(ctx context.Context) error {
		running.Wait(ctx)
		return running.Stop(ctx)
	}
}

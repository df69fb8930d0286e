package caddymodule

import (
	"context"

	"github.com/stockgate/stockgate/reservation"
)

// Active returns the edge of the app that started last, nil where none runs, and a
// function that waits until no attempt needs that edge and stops it. Caddy does not wait
// for this when it stops.
func Active() (edge *reservation.Edge, drain func(context.Context) error) {
	app := latest()
	if app == nil || app.currentDesk() == nil {
		return nil, nil
	}
	desk := app.currentDesk()
	return desk.Edge, func(ctx context.Context) error {
		desk.wait(ctx)
		return desk.Stop(ctx)
	}
}
